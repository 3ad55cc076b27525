//! Who calls from inside a session or a run: bound by the session's key, or by the token that a run was given.

use annals_engine::config::Config;
use annals_engine::engine::Engine;
use annals_engine::id::StreamName;
use annals_engine::session::index::Sessions;
use annals_engine::session::key::{AgentId, MainBucket, Parts, SessionKey};
use annals_engine::{Error, ErrorKind, Result};

use super::{Caller, Toolset};
use crate::run::worker::hash_of;
use crate::visibility::Visibility;

/// The SHA-256 of a token, in lower-case hexadecimal: all that is ever kept of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl TokenHash {
    /// The hash of a token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(hash_of(token))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Caller {
    /// The operator as the settings have it: `main` is the bucket of the agent that sessions belong to when nobody says
    /// otherwise.
    ///
    /// # Errors
    /// `InvalidInput` for settings in which no agent is the default.
    pub fn operator_of(config: &Config) -> Result<Self> {
        let agent = config.default_agent().map_or_else(|| AgentId::parse("main"), Ok)?;
        Ok(Self { main: main_bucket(config), ..Self::operator(agent) })
    }

    /// The run that a token was made for, in the session that it works on. The token lives as long as the run: from its
    /// claim to its end.
    ///
    /// # Errors
    /// `Refused` for a token of no run at work; whatever reading meets.
    pub fn of_token(engine: &Engine, config: &Config, token: &str) -> Result<Self> {
        Self::of_token_hash(engine, config, &TokenHash::of(token))
    }

    /// The same by the token's hash.
    ///
    /// # Errors
    /// As [`Caller::of_token`].
    pub fn of_token_hash(engine: &Engine, config: &Config, token: &TokenHash) -> Result<Self> {
        let work = engine.work()?;
        let Some(run) = work.state().holder_of(token.as_str()) else {
            let message = "the token belongs to no run that is at work";
            return Err(Error::new(ErrorKind::Refused, message)
                .field("token")
                .hint("a run's token ends with the run; one that has ended calls no tools"));
        };
        let key = StreamName::new(run.session_key.as_str())?;
        let caller = Self::in_session(engine.sessions()?.state(), config, key)?;
        let agent = AgentId::parse(&run.agent_id)?;
        Ok(Self { agent, run: Some(run.run_id.clone()), ..caller })
    }

    /// A session as the settings have it: what it sees, and which tools it has. A spawned child has those of children.
    ///
    /// # Errors
    /// `InvalidInput` for settings in which no agent is the default.
    pub fn in_session(sessions: &Sessions, config: &Config, key: StreamName) -> Result<Self> {
        let row = sessions.row(&key);
        let named = SessionKey::of_stream(&key);
        let of_row = row.and_then(|row| AgentId::parse(&row.agent_id).ok());
        let of_key = || named.as_ref().and_then(SessionKey::agent);
        let of_config = || config.default_agent().map_or_else(|| AgentId::parse("main"), Ok);
        let agent = of_row.or_else(of_key).map_or_else(of_config, Ok)?;
        let child = named.as_ref().is_some_and(|key| matches!(key.parts(), Parts::Subagent { .. }))
            || row.is_some_and(|row| row.spawn_depth > 0);
        let tools = if child { Toolset::of_child(config) } else { Toolset::All };
        let main = main_bucket(config);
        Ok(Self { main, tools, ..Self::session(agent, key, Visibility::of(config)) })
    }
}

/// What `main` stands for.
fn main_bucket(config: &Config) -> MainBucket {
    match config.text("session.scope") {
        Some("global") => MainBucket::Shared,
        _ => MainBucket::OfAgent,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use annals_engine::clock::{ManualClock, Timestamp};
    use annals_engine::format::Payload;
    use annals_engine::id::{EventId, EventType};
    use annals_engine::session::event::{Event, Links};
    use annals_engine::store::Append;

    use super::*;
    use crate::caller::Seat;

    fn tell(engine: &Engine, stream: &str, kind: &str, data: &str) {
        let data = Payload::from_json(&data.replace('\'', "\"")).unwrap();
        let event = Event::parse(&EventType::new(kind).unwrap(), &data).unwrap();
        let id = EventId::new(engine.clock().now());
        let new = event.to_new(StreamName::new(stream).unwrap(), id, Links::default()).unwrap();
        engine.append(Append::new(vec![new])).unwrap();
    }

    fn run(engine: &Engine, id: &str, session: &str) {
        let hash = hash_of(&format!("token of {id}"));
        let more = "'chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false";
        let asked = format!(
            "{{'runId':'{id}','sessionKey':'{session}','sessionId':'s','kind':'ask','agentId':'ops',{more}}}"
        );
        let stream = format!("run:{id}");
        tell(engine, &stream, "run.requested", &asked);
        let until = "'leaseUntil':'2026-04-02T00:00:00.000000Z'";
        let process = "'pid':1,'processStart':'1','bootId':'b','host':'h'";
        let claimed =
            format!("{{'runId':'{id}','worker':'w',{process},{until},'tokenSha256':'{hash}'}}");
        tell(engine, &stream, "run.claimed", &claimed);
    }

    /// Goal: a token names its run, and with it session, agent and tools, as long as the run is at work and no longer; any
    /// other text names nobody. Method: a run of a person's session and one of a child, one of which ends.
    #[test]
    fn tokens_name_their_runs() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_775_001_600_000)));
        let engine = Engine::in_memory(clock);
        let config = Config::defaults();
        run(&engine, "r1", "cli:default");
        run(&engine, "r2", "agent:ops:subagent:7");
        let of = |token: &str| Caller::of_token(&engine, &config, token);

        let caller = of("token of r1").unwrap();
        assert!(matches!(&caller.seat, Seat::Session { key, .. } if key.as_str() == "cli:default"));
        assert_eq!((caller.agent.as_str(), caller.run.as_deref()), ("ops", Some("r1")));
        assert_eq!(caller.tools, Toolset::All);
        assert!(!of("token of r2").unwrap().tools.has("sessions_list"));
        for nobody in ["", "r1", "token of r3", &hash_of("token of r1")] {
            assert_eq!(*of(nobody).unwrap_err().kind(), ErrorKind::Refused, "{nobody}");
        }
        tell(&engine, "run:r1", "run.finished", "{'runId':'r1','status':'ok','runtimeMs':1}");
        assert_eq!(*of("token of r1").unwrap_err().kind(), ErrorKind::Refused);
        assert!(of("token of r2").is_ok());
    }
}
