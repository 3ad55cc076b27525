//! What the sessions view keeps of one session beside its row: its parts, its open runs, its announces. The row is
//! brought up to date from these after every event.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::clock::Timestamp;
use crate::id::{StreamName, Version};
use crate::session::event::{
    Announce, Ingress, Members, Origin, Role, RunStatus, SessionKind, SessionOpened, TurnHead,
};

use super::row::{Row, Status};

/// One session.
#[derive(Clone, Debug)]
pub(in crate::session) struct Entry {
    pub(in crate::session) row: Row,
    /// The parts by the order in which they came.
    pub(in crate::session) parts: Vec<Part>,
    current: usize,
    /// The version of the last event seen in its stream.
    pub(in crate::session) version: Version,
    pub(in crate::session) damaged: bool,
    archived: bool,
    last_run: Option<RunStatus>,
    runs: BTreeMap<String, RunPhase>,
    announces: BTreeSet<String>,
    /// Whether the event that opens it was seen, and the channel that it named.
    opened: bool,
    opened_channel: Option<String>,
}

/// How far a run is that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunPhase {
    Requested,
    Claimed,
}

/// A part of a session: what lies between two resets.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Part {
    pub(in crate::session) session_id: String,
    /// The versions of its first and last turn.
    pub(in crate::session) span: Option<(Version, Version)>,
    /// Messages, tool results counted and not.
    pub(in crate::session) messages: Messages,
    turns: u64,
    tokens: u64,
    /// Tokens of each message that has an id and may come in pieces.
    pieces: HashMap<MessageHash, u64>,
    run_started: bool,
    source_path: Option<String>,
}

/// How many messages a part has: neighbouring pieces of one message are one.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Messages {
    pub(in crate::session) all: u64,
    pub(in crate::session) without_results: u64,
    last: Option<Piece>,
    last_without_results: Option<Piece>,
}

/// What makes neighbouring turns pieces of one message.
type Piece = (MessageHash, Role);

/// FNV-1a (Fowler, Noll, Vo; 64 bits) of a message's id: a view of a million turns must be small, and two ids of one
/// part that fall together, once in 10^10 for the largest parts seen, would cost one message's numbers.
type MessageHash = u64;

fn message_hash(head: &TurnHead<'_>) -> Option<MessageHash> {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    head.message_id.as_deref().map(|id| id.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

impl Entry {
    pub(super) fn new(key: StreamName, kind: SessionKind, at: Timestamp) -> Self {
        Self {
            row: Row::new(key, kind, at),
            parts: Vec::new(),
            current: 0,
            version: Version::ZERO,
            damaged: false,
            archived: false,
            last_run: None,
            runs: BTreeMap::new(),
            announces: BTreeSet::new(),
            opened: false,
            opened_channel: None,
        }
    }

    /// Notes that an event of its stream was seen; a version left out is damage.
    pub(super) fn saw(&mut self, version: Version) {
        self.damaged |= version != self.version.next();
        self.version = version;
    }

    /// Takes what opening says. A key that opens again, because two names of it were joined, gets a part and keeps what
    /// it is.
    pub(super) fn opened(&mut self, event: SessionOpened, at: Timestamp) {
        let index = self.enter(&event.session_id);
        if let Some(part) = self.parts.get_mut(index) {
            part.source_path = event.source_path;
        }
        self.archived = false;
        self.touched(at);
        let row = &mut self.row;
        row.label = row.label.take().or(event.label);
        row.display_name = row.display_name.take().or(event.display_name);
        row.chat_type = row.chat_type.or(event.chat_type);
        if self.opened {
            return;
        }
        self.opened = true;
        row.created_at = at;
        row.kind = event.kind;
        row.agent_id = event.agent_id;
        row.spawn_depth = event.spawn_depth;
        row.parent_key = event.parent_key.or(row.parent_key.take());
        if row.parent_key.is_none() {
            let origin = event.origin.unwrap_or_default();
            row.last_channel = origin.channel.clone().or_else(|| event.channel.clone());
            row.last_to = origin.to.clone().or(event.chat_id);
            row.delivery_context = (origin != Origin::default()).then_some(origin);
        }
        self.opened_channel = event.channel;
    }

    pub(super) fn patched(&mut self, set: &Members) {
        let row = &mut self.row;
        for (field, value) in &set.0 {
            match field.as_str() {
                "label" => row.label = value.read(),
                "displayName" => row.display_name = value.read(),
                "sendPolicy" => row.send_policy = value.read(),
                "model" => row.model = value.read(),
                "contextTokens" => row.context_tokens = value.read(),
                "thinkingLevel" => row.thinking_level = value.read(),
                "verboseLevel" => row.verbose_level = value.read(),
                "lastChannel" => row.last_channel = value.read(),
                "lastTo" => row.last_to = value.read(),
                "deliveryContext" => row.delivery_context = value.read(),
                "chatType" => row.chat_type = value.read(),
                _ => {}
            }
        }
    }

    /// A part becomes the current one, new or again.
    pub(super) fn entered(&mut self, session_id: &str, at: Timestamp) {
        self.enter(session_id);
        self.archived = false;
        self.touched(at);
    }

    pub(super) fn archived(&mut self) {
        self.archived = true;
    }

    /// Takes a turn; what it adds to the part's tokens is returned.
    pub(super) fn turn(&mut self, head: &TurnHead<'_>, version: Version, at: Timestamp) -> u64 {
        if self.parts.is_empty() {
            self.enter(&head.session_id);
        }
        if head.role == Role::User && head.from == Ingress::External {
            self.human(head, at);
        }
        if let (Role::Assistant, Some(model)) = (head.role, &head.model) {
            set(&mut self.row.model, model);
        }
        self.touched(at);
        let index = self.part_of(&head.session_id);
        self.parts.get_mut(index).map_or(0, |part| part.turn(head, version))
    }

    fn human(&mut self, head: &TurnHead<'_>, at: Timestamp) {
        self.archived = false;
        self.row.last_human_at = self.row.last_human_at.max(Some(at));
        let channel = head.provenance.as_ref().and_then(|p| p.source_channel.as_deref());
        if let Some(channel) = channel {
            set(&mut self.row.last_channel, channel);
        }
    }

    pub(super) fn run(&mut self, run_id: &str, phase: RunPhase) {
        self.runs.insert(run_id.to_owned(), phase);
    }

    pub(super) fn run_started(&mut self, run_id: &str, at: Timestamp) {
        self.runs.insert(run_id.to_owned(), RunPhase::Claimed);
        self.row.started_at = Some(at);
        if let Some(part) = self.parts.get_mut(self.current) {
            part.run_started = true;
        }
        self.touched(at);
    }

    /// A run ended.
    pub(super) fn run_finished(&mut self, run_id: &str, status: RunStatus, at: Timestamp) {
        self.runs.remove(run_id);
        self.last_run = Some(status);
        self.touched(at);
    }

    /// Adds tokens of a run that no turn of it has told.
    pub(super) fn add_tokens(&mut self, session_id: &str, tokens: u64) {
        if let Some(part) = self.parts.iter_mut().rfind(|part| part.session_id == session_id) {
            part.tokens = part.tokens.saturating_add(tokens);
        }
    }

    pub(super) fn announce_requested(&mut self, announce: &Announce) {
        self.announces.insert(announce.run_id.clone());
    }

    pub(super) fn announce_settled(&mut self, announce: &Announce) {
        self.announces.remove(&announce.run_id);
    }

    pub(super) fn touched(&mut self, at: Timestamp) {
        self.row.updated_at = self.row.updated_at.max(at);
    }

    /// Whether it has left the lists.
    pub(super) const fn is_archived(&self) -> bool {
        self.archived
    }

    /// The current part; `None` before the first.
    pub(in crate::session) fn current(&self) -> Option<&Part> {
        self.parts.get(self.current)
    }

    /// Brings the row up to date with everything else.
    pub(super) fn settle(&mut self) {
        if self.row.channel != self.channel() {
            self.row.channel = self.channel().to_owned();
        }
        let status = self.status();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let row = &mut self.row;
        row.status = status;
        row.open_runs = count(self.runs.len());
        row.pending_announces = count(self.announces.len());
        row.parts = count(self.parts.len());
        row.aborted_last_run =
            self.last_run.is_some_and(|s| !matches!(s, RunStatus::Ok | RunStatus::Error));
        if let Some(part) = self.parts.get(self.current) {
            row.session_id.clone_from(&part.session_id);
            row.turns = part.turns;
            row.total_tokens = part.tokens;
            row.system_sent = part.run_started;
            row.transcript_path.clone_from(&part.source_path);
        }
    }

    fn status(&self) -> Status {
        if self.damaged {
            Status::Damaged
        } else if self.runs.values().any(|phase| *phase == RunPhase::Claimed) {
            Status::Running
        } else if !self.runs.is_empty() {
            Status::Waiting
        } else if self.archived {
            Status::Archived
        } else {
            self.last_run.map_or(Status::Idle, Status::after)
        }
    }

    fn channel(&self) -> &str {
        let known = match self.row.kind {
            SessionKind::Cron | SessionKind::Hook | SessionKind::Node => Some("internal"),
            SessionKind::Group => self.opened_channel.as_deref(),
            SessionKind::Main | SessionKind::Other => {
                self.row.last_channel.as_deref().or(self.opened_channel.as_deref())
            }
        };
        known.unwrap_or("unknown")
    }

    fn enter(&mut self, session_id: &str) -> usize {
        self.current = self.part_of(session_id);
        self.current
    }

    /// The place of a part, which is made when there is none of that id.
    fn part_of(&mut self, session_id: &str) -> usize {
        let known = self.parts.iter().rposition(|part| part.session_id == session_id);
        known.unwrap_or_else(|| {
            self.parts.push(Part { session_id: session_id.to_owned(), ..Part::default() });
            self.parts.len() - 1
        })
    }
}

impl Part {
    fn turn(&mut self, head: &TurnHead<'_>, version: Version) -> u64 {
        self.span = Some((self.span.map_or(version, |(first, _)| first), version));
        let message = message_hash(head);
        self.messages.count(message, head.role);
        let known = message.and_then(|id| self.pieces.get(&id)).copied();
        if known.is_none() && matches!(head.role, Role::User | Role::Assistant) {
            self.turns += 1;
        }
        let tokens = head.tokens.as_ref().map_or(0, |t| t.r#in.saturating_add(t.out));
        let added = tokens.saturating_sub(known.unwrap_or(0));
        self.tokens = self.tokens.saturating_add(added);
        if let Some(id) = message {
            self.pieces.insert(id, tokens.max(known.unwrap_or(0)));
        }
        added
    }
}

impl Messages {
    fn count(&mut self, message: Option<MessageHash>, role: Role) {
        let piece = message.map(|id| (id, role));
        if role != Role::ToolResult {
            self.without_results += next(&mut self.last_without_results, piece);
        }
        self.all += next(&mut self.last, piece);
    }
}

/// Sets a field that mostly holds the same text already.
fn set(field: &mut Option<String>, text: &str) {
    if field.as_deref() != Some(text) {
        *field = Some(text.to_owned());
    }
}

/// 1 when a piece begins a message, 0 when it goes on with the last one.
fn next(last: &mut Option<Piece>, piece: Option<Piece>) -> u64 {
    let begins = piece.is_none() || *last != piece;
    *last = piece;
    u64::from(begins)
}
