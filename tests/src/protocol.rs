//! A server of the Model Context Protocol over a store in memory that holds two chats, without a process and without anybody
//! at work.
#![expect(clippy::expect_used, reason = "a scene that cannot be set fails the test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::SystemClock;
use annals_engine::config::{Sources, load};
use annals_engine::engine::Engine;
use annals_engine::id::{EventId, StreamName};

use annals_engine::session::event::{Role, SessionOpened};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::{AgentId, SessionKey};
use annals_engine::session::push::Push;
use annals_tools::desk::{OperatorSession, Presence, Staff};
use annals_tools::mcp;
use annals_tools::run::Setup;
use annals_tools::{Host, Identity};
use tokio::io::{AsyncRead, AsyncWrite};

/// What nobody but the owner says, in the chat `cli:default`.
pub const SECRET: &str = "the owner's plans";

/// The chat that a server speaks for; it sees itself alone.
pub const CHAT: &str = "telegram:42";

/// A store with two chats, and what serves it.
#[derive(Debug)]
pub struct Served {
    /// The store.
    pub engine: Engine,
    host: Host,
}

/// Nobody is at work, and nobody can be called.
struct Nobody;

impl Staff for Nobody {
    fn called(&self, _: &str) -> annals_engine::Result<Presence> {
        Ok(Presence::Nobody("nobody works here".to_owned()))
    }
}

impl Default for Served {
    fn default() -> Self {
        let engine = Engine::in_memory(Arc::new(SystemClock));
        let text = "{agents: {list: [{id: 'main', run: {command: '/bin/true'}}]}}";
        let file = Some((std::path::Path::new("/nowhere/annals.json5"), text));
        let (config, _) =
            load(&Sources { flags: &[], variable: &|_| None, file }).expect("settings");
        let setup = Setup::of(&config, PathBuf::from("/nowhere")).expect("settings");
        let key = SessionKey::of_chat("cli", "default").expect("a key");
        let part = EventId::derived("key", "test", "part").to_string();
        let opening = SessionOpened::new(part, key.kind_at_opening(), "main");
        let operator = OperatorSession { key: key.stream().clone(), opening };
        let host =
            Host::new(engine.clone(), Arc::new(setup), Arc::new(Nobody), operator, Duration::ZERO);
        let served = Self { engine, host };
        served.push("cli", "default", SECRET);
        served.push("telegram", "42", "hello");
        served
    }
}

impl Served {
    /// Somebody says something in a chat.
    pub fn push(&self, channel: &str, chat: &str, text: &str) {
        let agent = AgentId::parse("main").expect("an id");
        let push = Push::new(channel, chat, Role::User, text, agent);
        self.engine.push(&push, &TimeRules::none()).expect("pushed");
    }

    /// Serves [`CHAT`] until the input ends.
    pub async fn serve<R, W>(&self, read: R, write: W)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let who = Identity::Session(StreamName::new(CHAT).expect("a key"));
        // What does not begin as the protocol does is told to whoever started the server.
        drop(mcp::serve(self.host.clone(), who, read, write).await);
    }
}
