//! The life of a session: opened, patched, reset, resumed, archived, trimmed; and the policy that all of them share.

use serde::{Deserialize, Deserializer};

use crate::clock::Timestamp;

use super::define::{payload, words};
use super::json::{Json, Members};

words! {
    /// What a session is for, decided when it opens.
    pub enum SessionKind {
        /// An agent's main bucket.
        Main = "main",
        /// A group chat or a channel.
        Group = "group",
        /// A scheduled job.
        Cron = "cron",
        /// A webhook.
        Hook = "hook",
        /// A node.
        Node = "node",
        /// Everything else: direct chats, per-channel sessions, spawned children, imports.
        Other = "other",
    }
}

words! {
    /// What sort of chat is behind a session.
    pub enum ChatType {
        /// Two parties.
        Direct = "direct",
        /// A group.
        Group = "group",
        /// A channel.
        Channel = "channel",
    }
}

payload! {
    /// Where a session's answers go.
    #[derive(Default)]
    pub struct Origin {
        /// The channel.
        channel: Option<String>,
        /// The recipient there.
        to: Option<String>,
        /// The account on that channel.
        account_id: Option<String>,
        /// The thread. Some channels count theirs: a number is read as its text.
        #[serde(deserialize_with = "text_or_number")]
        thread_id: Option<String>,
    }
}

fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Thread {
        Text(String),
        Count(u64),
        Below(i64),
    }
    Ok(Option::<Thread>::deserialize(from)?.map(|thread| match thread {
        Thread::Text(text) => text,
        Thread::Count(count) => count.to_string(),
        Thread::Below(count) => count.to_string(),
    }))
}

payload! {
    /// `session.opened`: a key has its first part.
    pub struct SessionOpened {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The id of the part.
        session_id: String,
        /// What it is for.
        kind: SessionKind,
        /// The agent that it belongs to.
        agent_id: String,
        /// The channel that it came over.
        channel: Option<String>,
        /// What sort of chat.
        chat_type: Option<ChatType>,
        /// The chat on that channel.
        chat_id: Option<String>,
        /// The account on that channel.
        account_id: Option<String>,
        /// The thread.
        thread_id: Option<String>,
        /// The key of the session that spawned it.
        parent_key: Option<String>,
        /// The id of the part that spawned it.
        parent_session_id: Option<String>,
        /// How many spawns lie above it; 0 for a session that nobody spawned.
        spawn_depth: u32,
        /// Whether its agent is confined.
        sandboxed: Option<bool>,
        /// A short name given by the caller.
        label: Option<String>,
        /// The name that its channel shows.
        display_name: Option<String>,
        /// Where its answers go, captured once.
        origin: Option<Origin>,
        /// The program that it was imported from.
        program: Option<String>,
        /// The file that it was imported from.
        source_path: Option<String>,
    }
}

impl SessionOpened {
    /// An opening with nothing but what every session has.
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        kind: SessionKind,
        agent_id: impl Into<String>,
    ) -> Self {
        Self {
            at: None,
            session_id: session_id.into(),
            kind,
            agent_id: agent_id.into(),
            channel: None,
            chat_type: None,
            chat_id: None,
            account_id: None,
            thread_id: None,
            parent_key: None,
            parent_session_id: None,
            spawn_depth: 0,
            sandboxed: None,
            label: None,
            display_name: None,
            origin: None,
            program: None,
            source_path: None,
        }
    }
}

payload! {
    /// `session.patched`: fields of a session's row were set.
    pub struct SessionPatched {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The part that was current.
        session_id: String,
        /// The fields that changed and nothing else; `null` takes a field back.
        set: Members,
    }
}

words! {
    /// Why a session was reset.
    pub enum ResetReason {
        /// Somebody asked for it.
        Manual = "manual",
        /// Nobody wrote for too long.
        Idle = "idle",
        /// The hour of the day came.
        Daily = "daily",
        /// An import found the parts and not why the first one ended.
        Imported = "imported",
    }
}

words! {
    /// When sessions are reset by themselves.
    pub enum ResetMode {
        /// Never.
        None = "none",
        /// After a time without a human turn.
        Idle = "idle",
        /// At an hour of the day.
        Daily = "daily",
    }
}

payload! {
    /// The reset rule in force.
    pub struct ResetRule {
        /// Its mode.
        mode: ResetMode,
        /// The hour of the local day, 0 to 23.
        at_hour: Option<u8>,
        /// Minutes without a human turn.
        idle_minutes: Option<u64>,
        /// The zone in which the hour is read.
        time_zone: Option<String>,
    }
}

payload! {
    /// `session.reset`: the current part ended and the next one began.
    pub struct SessionReset {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The new part.
        session_id: String,
        /// The part that ended.
        previous_session_id: String,
        /// Why.
        reason: ResetReason,
        /// The moment from which it counts.
        effective_at: Timestamp,
        /// The rule in force.
        rule: Option<ResetRule>,
        /// The run that it waited for.
        deferred_by: Option<String>,
    }
}

payload! {
    /// `session.resumed`: an earlier part is current again.
    pub struct SessionResumed {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The part that was reopened.
        session_id: String,
        /// The part that was left.
        previous_session_id: String,
    }
}

words! {
    /// Why a session was archived.
    pub enum ArchiveReason {
        /// It had ended and its time was over.
        Ended = "ended",
        /// Its spawn asked for it.
        Cleanup = "cleanup",
        /// There were too many sessions, or it was too old.
        Maintenance = "maintenance",
        /// Somebody asked for it.
        Manual = "manual",
    }
}

payload! {
    /// A setting and the value that it had.
    pub struct Setting {
        /// The setting's path in the configuration.
        name: String,
        /// Its value.
        value: Json,
    }
}

payload! {
    /// `session.archived`: the session leaves the lists and stays readable.
    pub struct SessionArchived {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The part that was current.
        session_id: String,
        /// Why.
        reason: ArchiveReason,
        /// The moment from which it counts.
        effective_at: Timestamp,
        /// The setting in force.
        rule: Option<Setting>,
    }
}

payload! {
    /// `session.trimmed`: the window of a run's context moved.
    pub struct SessionTrimmed {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The part.
        session_id: String,
        /// How many turns the context keeps.
        kept: u64,
        /// The first position that it leaves out.
        from_seq: u64,
        /// The last position that it leaves out.
        to_seq: u64,
    }
}

payload! {
    /// `policy.changed`: a setting has another value from here on.
    pub struct PolicyChanged {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The setting's path in the configuration.
        path: String,
        /// What it was; `null` when it was not set.
        old: Json,
        /// What it is; `null` when it is not set any more.
        new: Json,
        /// The file that it came from.
        file: Option<String>,
        /// SHA-256 of that file, in lower-case hexadecimal.
        sha256: Option<String>,
    }
}
