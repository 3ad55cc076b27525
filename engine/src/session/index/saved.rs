//! The sessions view as it stands in a snapshot: everything that the fold goes on from and nothing that follows from
//! that. The same view always gives the same bytes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::Timestamp;
use crate::id::{Seq, StreamName, Version};
use crate::projection::{Saved, schema_of};
use crate::session::event::{ChatType, Origin, Role, RunStatus, SessionKind};

use super::entry::{Entry, Fate, RunAtWork, RunPhase};
use super::part::{IdHash, Messages, Part, Recent};
use super::row::Row;
use super::{OpenRun, Sessions};

impl Saved for Sessions {
    const NAME: &'static str = "sessions";

    /// Follows from the sources of the fold, so that a snapshot of a program that folds otherwise is not used.
    fn schema() -> u64 {
        static SCHEMA: OnceLock<u64> = OnceLock::new();
        *SCHEMA.get_or_init(|| {
            schema_of(&[
                include_str!("mod.rs"),
                include_str!("digest.rs"),
                include_str!("entry.rs"),
                include_str!("fold.rs"),
                include_str!("hash.rs"),
                include_str!("part.rs"),
                include_str!("row.rs"),
                include_str!("saved.rs"),
                include_str!("turns.rs"),
                include_str!("../event/mod.rs"),
                include_str!("../event/define.rs"),
                include_str!("../event/exchange.rs"),
                include_str!("../event/head.rs"),
                include_str!("../event/json.rs"),
                include_str!("../event/lifecycle.rs"),
                include_str!("../event/outbound.rs"),
                include_str!("../event/run.rs"),
                include_str!("../event/scan.rs"),
                include_str!("../event/turn.rs"),
                include_str!("../key/mod.rs"),
                include_str!("../key/name.rs"),
            ])
        })
    }
}

#[derive(Serialize, Deserialize)]
struct View<'a> {
    #[serde(borrow)]
    entries: Vec<Session<'a>>,
    /// Run, key, part, agent, tokens.
    #[serde(borrow)]
    runs: Vec<(IdHash, &'a str, &'a str, &'a str, u64)>,
    #[serde(borrow)]
    spawned: Vec<(&'a str, &'a str)>,
    #[serde(borrow)]
    damaged: Vec<&'a str>,
    losses: Vec<(u64, u64)>,
    #[serde(borrow)]
    rowless: Vec<(&'a str, u64)>,
    passed_over: u64,
}

#[derive(Serialize, Deserialize)]
struct Session<'a> {
    key: &'a str,
    kind: SessionKind,
    display_name: Option<&'a str>,
    updated_at: i64,
    own_model: Option<&'a str>,
    last_model: Option<&'a str>,
    context_tokens: Option<u64>,
    thinking_level: Option<&'a str>,
    verbose_level: Option<&'a str>,
    send_policy: Option<&'a str>,
    last_channel: Option<&'a str>,
    last_to: Option<&'a str>,
    /// Channel, recipient, account, thread.
    #[serde(borrow)]
    delivery_context: Option<[Option<&'a str>; 4]>,
    label: Option<&'a str>,
    agent_id: &'a str,
    chat_type: Option<ChatType>,
    parent_key: Option<&'a str>,
    spawn_depth: u32,
    created_at: i64,
    started_at: Option<i64>,
    last_human_at: Option<i64>,
    #[serde(borrow)]
    parts: Vec<SavedPart<'a>>,
    current: u64,
    version: u64,
    damaged: bool,
    archived: bool,
    last_run: Option<RunStatus>,
    #[serde(borrow)]
    runs: Vec<(&'a str, RunPhase, i64)>,
    #[serde(borrow)]
    announces: Vec<&'a str>,
    opened: bool,
    opened_channel: Option<&'a str>,
    entered_at: i64,
    human_at: Option<i64>,
    in_thread: bool,
    sandboxed: bool,
    fate: Option<Fate>,
    #[serde(borrow)]
    own_announces: Vec<&'a str>,
    ended_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct SavedPart<'a> {
    session_id: &'a str,
    span: Option<(u64, u64)>,
    last_seq: Option<u64>,
    all: u64,
    without_results: u64,
    last: Option<(IdHash, Role)>,
    last_without_results: Option<(IdHash, Role)>,
    turns: u64,
    tokens: u64,
    recent: Vec<(IdHash, u64)>,
    run_started: bool,
    source_path: Option<&'a str>,
    #[serde(borrow)]
    agent_session: Option<(&'a str, &'a str)>,
}

impl Serialize for Sessions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut view = View {
            entries: self.entries.values().map(|entry| Session::of(entry)).collect(),
            runs: self
                .runs
                .iter()
                .map(|(id, run)| {
                    let OpenRun { key, session_id, agent_id, tokens } = run;
                    (*id, key.as_str(), session_id.as_str(), agent_id.as_str(), *tokens)
                })
                .collect(),
            spawned: self
                .spawned
                .iter()
                .map(|(child, parent)| (child.as_str(), parent.as_str()))
                .collect(),
            damaged: self.damaged.iter().map(String::as_str).collect(),
            losses: self.losses.iter().map(|(from, to)| (from.0, to.0)).collect(),
            rowless: self
                .rowless
                .iter()
                .map(|(stream, version)| (stream.as_str(), version.0))
                .collect(),
            passed_over: self.passed_over,
        };
        view.entries.sort_unstable_by_key(|entry| entry.key);
        view.runs.sort_unstable();
        view.spawned.sort_unstable();
        view.rowless.sort_unstable();
        view.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sessions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let view = View::deserialize(deserializer)?;
        view.open().ok_or_else(|| serde::de::Error::custom("a name is none"))
    }
}

impl View<'_> {
    fn open(self) -> Option<Sessions> {
        let mut sessions = Sessions { passed_over: self.passed_over, ..Sessions::default() };
        sessions.entries.reserve(self.entries.len());
        for session in self.entries {
            let entry = session.open()?;
            sessions.entries.insert(entry.row.key.clone(), Arc::new(entry));
        }
        for (id, key, session_id, agent_id, tokens) in self.runs {
            let (session_id, agent_id) = (session_id.to_owned(), agent_id.to_owned());
            let run = OpenRun { key: name(key)?, session_id, agent_id, tokens };
            sessions.runs.insert(id, run);
        }
        for (child, parent) in self.spawned {
            sessions.spawned.insert(child.to_owned(), name(parent)?);
        }
        sessions.damaged = self.damaged.into_iter().map(str::to_owned).collect();
        sessions.losses = self.losses.into_iter().map(|(from, to)| (Seq(from), Seq(to))).collect();
        sessions.rowless = self
            .rowless
            .into_iter()
            .map(|(stream, version)| Some((name(stream)?, Version(version))))
            .collect::<Option<HashMap<_, _>>>()?;
        Some(sessions)
    }
}

impl<'a> Session<'a> {
    fn of(entry: &'a Entry) -> Self {
        let row = &entry.row;
        let origin = |o: &'a Origin| {
            [&o.channel, &o.to, &o.account_id, &o.thread_id].map(|text| text.as_deref())
        };
        Self {
            key: row.key.as_str(),
            kind: row.kind,
            display_name: row.display_name.as_deref(),
            updated_at: row.updated_at.as_micros(),
            own_model: entry.own_model.as_deref(),
            last_model: entry.last_model.as_deref(),
            context_tokens: row.context_tokens,
            thinking_level: row.thinking_level.as_deref(),
            verbose_level: row.verbose_level.as_deref(),
            send_policy: row.send_policy.as_deref(),
            last_channel: row.last_channel.as_deref(),
            last_to: row.last_to.as_deref(),
            delivery_context: row.delivery_context.as_ref().map(origin),
            label: row.label.as_deref(),
            agent_id: &row.agent_id,
            chat_type: row.chat_type,
            parent_key: row.parent_key.as_deref(),
            spawn_depth: row.spawn_depth,
            created_at: row.created_at.as_micros(),
            started_at: row.started_at.map(Timestamp::as_micros),
            last_human_at: row.last_human_at.map(Timestamp::as_micros),
            parts: entry.parts.iter().map(SavedPart::of).collect(),
            current: entry.current as u64,
            version: entry.version.0,
            damaged: entry.damaged,
            archived: entry.archived,
            last_run: entry.last_run,
            runs: entry.runs.iter().map(Self::run_of).collect(),
            announces: entry.announces.iter().map(String::as_str).collect(),
            opened: entry.opened,
            opened_channel: entry.opened_channel.as_deref(),
            entered_at: entry.entered_at.as_micros(),
            human_at: entry.human_at.map(Timestamp::as_micros),
            in_thread: entry.in_thread,
            sandboxed: entry.sandboxed,
            fate: entry.fate,
            own_announces: entry.own_announces.iter().map(String::as_str).collect(),
            ended_at: entry.ended_at.map(Timestamp::as_micros),
        }
    }

    fn run_of((id, run): (&'a String, &RunAtWork)) -> (&'a str, RunPhase, i64) {
        (id.as_str(), run.phase, run.since.as_micros())
    }

    fn open_run((id, phase, since): (&str, RunPhase, i64)) -> (String, RunAtWork) {
        (id.to_owned(), RunAtWork { phase, since: Timestamp::from_micros(since) })
    }

    /// The entry; what follows from the rest of it is worked out again.
    fn open(self) -> Option<Entry> {
        let created_at = Timestamp::from_micros(self.created_at);
        let row = Row {
            display_name: owned(self.display_name),
            updated_at: Timestamp::from_micros(self.updated_at),
            context_tokens: self.context_tokens,
            thinking_level: owned(self.thinking_level),
            verbose_level: owned(self.verbose_level),
            send_policy: owned(self.send_policy),
            last_channel: owned(self.last_channel),
            last_to: owned(self.last_to),
            delivery_context: self.delivery_context.map(|[channel, to, account_id, thread_id]| {
                Origin {
                    channel: owned(channel),
                    to: owned(to),
                    account_id: owned(account_id),
                    thread_id: owned(thread_id),
                }
            }),
            label: owned(self.label),
            agent_id: self.agent_id.to_owned(),
            chat_type: self.chat_type,
            parent_key: owned(self.parent_key),
            spawn_depth: self.spawn_depth,
            started_at: self.started_at.map(Timestamp::from_micros),
            last_human_at: self.last_human_at.map(Timestamp::from_micros),
            ..Row::new(name(self.key)?, self.kind, created_at)
        };
        let mut entry = Entry {
            row,
            parts: self.parts.into_iter().map(SavedPart::open).collect(),
            current: usize::try_from(self.current).ok()?,
            version: Version(self.version),
            damaged: self.damaged,
            archived: self.archived,
            last_run: self.last_run,
            runs: self.runs.into_iter().map(Self::open_run).collect(),
            announces: self.announces.into_iter().map(str::to_owned).collect(),
            opened: self.opened,
            opened_channel: owned(self.opened_channel),
            own_model: owned(self.own_model),
            last_model: owned(self.last_model),
            entered_at: Timestamp::from_micros(self.entered_at),
            human_at: self.human_at.map(Timestamp::from_micros),
            in_thread: self.in_thread,
            sandboxed: self.sandboxed,
            fate: self.fate,
            own_announces: self.own_announces.into_iter().map(str::to_owned).collect(),
            ended_at: self.ended_at.map(Timestamp::from_micros),
        };
        entry.settle();
        Some(entry)
    }
}

impl<'a> SavedPart<'a> {
    fn of(part: &'a Part) -> Self {
        Self {
            session_id: &part.session_id,
            span: part.span.map(|(first, last)| (first.0, last.0)),
            last_seq: part.last_seq.map(|seq| seq.0),
            all: part.messages.all,
            without_results: part.messages.without_results,
            last: part.messages.last,
            last_without_results: part.messages.last_without_results,
            turns: part.turns,
            tokens: part.tokens,
            recent: part.recent.0.clone(),
            run_started: part.run_started,
            source_path: part.source_path.as_deref(),
            agent_session: part.agent_session.as_ref().map(|(agent, id)| (&**agent, &**id)),
        }
    }

    fn open(self) -> Part {
        Part {
            session_id: self.session_id.to_owned(),
            span: self.span.map(|(first, last)| (Version(first), Version(last))),
            last_seq: self.last_seq.map(Seq),
            messages: Messages {
                all: self.all,
                without_results: self.without_results,
                last: self.last,
                last_without_results: self.last_without_results,
            },
            turns: self.turns,
            tokens: self.tokens,
            recent: Recent(self.recent),
            run_started: self.run_started,
            source_path: owned(self.source_path),
            agent_session: self.agent_session.map(|(agent, id)| (agent.to_owned(), id.to_owned())),
        }
    }
}

fn name(text: &str) -> Option<StreamName> {
    StreamName::new(text).ok()
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}
