//! The story that the records of a part tell together: what comes twice, what is copied from elsewhere, what points at
//! nothing. It holds of a record only its identity, and it changes nothing: what is odd is said and kept.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::Duration;

use super::damage::DamageClass;
use super::dialect::Memory;
use super::pi::Call;
use super::records::Flaw;
use crate::clock::Timestamp;
use crate::id::EventId;
use crate::session::event::{Ingress, Role, Turn};

/// What is remembered of a part while its files are read.
#[derive(Default)]
pub(crate) struct Story {
    /// The records by the hashes of their ids, with the first bytes of the hashes of their bytes.
    seen: HashMap<u64, u64>,
    /// Tool calls by id: where they were made and to which tool; `None` once they are answered.
    calls: HashMap<String, Option<Open>>,
    /// Messages of a model's interface that came in pieces, by the hashes of their ids.
    messages: HashSet<u64>,
    records: u64,
    entries: u64,
    /// When the last entry was written.
    last: Option<Timestamp>,
    /// How much older than the one before a record may be without a word.
    slack: Duration,
    opened: bool,
    task_told: bool,
    titled: bool,
    replay: Option<Replay>,
    repeat: Option<Repeat>,
    /// What dialects remember.
    pub(crate) memory: Memory,
}

/// A tool call that waits for its result.
struct Open {
    range: Range<u64>,
    tool: String,
}

/// A fork that repeats the records of the session that it was forked from.
struct Replay {
    hashes: HashSet<u64>,
    range: Option<Range<u64>>,
    records: u64,
    /// Whether the records are not taken, because an earlier session has them.
    left_there: bool,
}

/// Records that the part has already, one behind the other.
struct Repeat {
    range: Range<u64>,
    records: u64,
}

/// What identifies a record in its part.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) id: EventId,
    /// The hash of its own id, or of its place and bytes: see [`key`].
    pub(crate) key: u64,
    /// The first bytes of its hash.
    pub(crate) hash: u64,
    pub(crate) range: Range<u64>,
}

/// The hash that a record's own id is remembered by. Two ids that fall together cost a record its own id and nothing
/// else: it is told as one whose id is in use.
pub(crate) fn key(id: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Story {
    /// A part that was forked from a session with records of these hashes.
    pub(crate) fn forked(hashes: HashSet<u64>) -> Self {
        let replay = Some(Replay { hashes, range: None, records: 0, left_there: false });
        Self { replay, ..Self::default() }
    }

    /// A part whose program writes down what happens at once in any order.
    pub(crate) fn with_slack(slack: Duration) -> Self {
        Self { slack, ..Self::default() }
    }

    /// How many records were taken.
    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// Whether a header or another record was taken.
    pub(crate) const fn has_begun(&self) -> bool {
        self.opened || self.records > 0
    }

    /// Whether the event that opens the part was made.
    pub(crate) const fn is_opened(&self) -> bool {
        self.opened
    }

    /// Whether a user's turn was there, so that the next one is not the task of a spawn.
    pub(crate) const fn is_task_told(&self) -> bool {
        self.task_told
    }

    /// Whether a record of this id is there; see [`key`].
    pub(crate) fn has_key(&self, key: u64) -> bool {
        self.seen.contains_key(&key)
    }

    /// The tool that an open call was made to, where it was told.
    pub(crate) fn tool_of(&self, call: &str) -> Option<&str> {
        let open = self.calls.get(call)?.as_ref()?;
        Some(open.tool.as_str()).filter(|tool| !tool.is_empty())
    }

    /// Whether a person gave the session a title.
    pub(crate) const fn is_titled(&self) -> bool {
        self.titled
    }

    /// A person gives the session a title.
    pub(crate) const fn titled(&mut self) {
        self.titled = true;
    }

    /// Whether a piece is the first one of its message.
    pub(crate) fn begins_message(&mut self, message: u64) -> bool {
        self.messages.insert(message)
    }

    /// Remembers a record that is not taken, because an earlier session has it.
    pub(crate) fn replayed(&mut self, identity: &Identity) {
        let none = || Replay { hashes: HashSet::new(), range: None, records: 0, left_there: true };
        let replay = self.replay.get_or_insert_with(none);
        let start = replay.range.as_ref().map_or(identity.range.start, |range| range.start);
        replay.range = Some(start..identity.range.end);
        replay.records += 1;
        self.remember(identity);
    }

    /// Whether the record is one of the session that this one was forked from.
    pub(crate) fn is_replayed(&self, hash: u64) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.hashes.contains(&hash))
    }

    /// Whether the part has a record of this id already: `Some(true)` with these bytes, `Some(false)` with others.
    pub(crate) fn has(&self, identity: &Identity) -> Option<bool> {
        self.seen.get(&identity.key).map(|hash| *hash == identity.hash)
    }

    /// Remembers a record that the part has already. Those that follow each other are told as one.
    pub(crate) fn repeated(&mut self, range: &Range<u64>) -> Option<Flaw> {
        if let Some(repeat) = &mut self.repeat
            && repeat.range.end + 2 >= range.start
        {
            repeat.range.end = range.end;
            repeat.records += 1;
            return None;
        }
        let before = self.settle();
        self.repeat = Some(Repeat { range: range.clone(), records: 1 });
        before
    }

    /// What there is to say of repeated records once another one follows.
    pub(crate) fn settle(&mut self) -> Option<Flaw> {
        let Repeat { range, records } = self.repeat.take()?;
        let detail = format!("{records} records that the part has already");
        Some(flaw(DamageClass::Duplicate, &range, 0, detail))
    }

    /// Takes the header.
    pub(crate) fn open(&mut self, identity: &Identity) {
        self.opened = true;
        self.remember(identity);
    }

    /// Says that the header holds turns itself.
    pub(crate) const fn header_speaks(&mut self) {
        self.entries += 1;
    }

    /// Opens the part without a header; says so.
    pub(crate) fn open_without_header(&mut self) -> Option<Flaw> {
        if std::mem::replace(&mut self.opened, true) {
            return None;
        }
        Some(flaw(DamageClass::MissingHeader, &(0..0), 0, "the file has no header".to_owned()))
    }

    /// Takes an entry. `parent` is the entry that it names as the one before, with the hash
    /// of its id.
    pub(crate) fn take(
        &mut self,
        identity: &Identity,
        at: Option<Timestamp>,
        parent: Option<(&str, u64)>,
    ) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        if self.is_replayed(identity.hash) {
            if let Some(replay) = &mut self.replay {
                let start = replay.range.as_ref().map_or(identity.range.start, |range| range.start);
                replay.range = Some(start..identity.range.end);
                replay.records += 1;
            }
        } else {
            flaws.extend(self.end_replay());
        }
        if let (Some(at), Some(last)) = (at, self.last)
            && at.plus(self.slack) < last
        {
            let detail = format!("{at} follows {last}");
            flaws.push(flaw(DamageClass::ClockBack, &identity.range, 1, detail));
        }
        if let Some((parent, key)) = parent
            && !self.seen.contains_key(&key)
        {
            let detail = format!("the parent {parent} is not in the file");
            flaws.push(flaw(DamageClass::OrphanParent, &identity.range, 1, detail));
        }
        self.last = at.or(self.last);
        self.entries += 1;
        self.remember(identity);
        flaws
    }

    fn remember(&mut self, identity: &Identity) {
        self.seen.insert(identity.key, identity.hash);
        self.records += 1;
    }

    /// Follows the calls that a turn makes or answers.
    pub(crate) fn turn(
        &mut self,
        turn: &Turn,
        calls: &[Call<'_>],
        range: &Range<u64>,
    ) -> Option<Flaw> {
        self.task_told |= turn.role == Role::User && turn.from != Ingress::Internal;
        for call in calls {
            let open = Open { range: range.clone(), tool: call.name.clone().into_owned() };
            self.calls.insert(call.id.clone().into_owned(), Some(open));
        }
        let call = turn.call_id.as_deref().filter(|_| turn.role == Role::ToolResult)?;
        if let Some(open) = self.calls.get_mut(call) {
            *open = None;
            return None;
        }
        let detail = format!("no call {call} comes before this result");
        Some(flaw(DamageClass::OrphanResult, range, 1, detail))
    }

    fn end_replay(&mut self) -> Option<Flaw> {
        let Replay { range, records, left_there, .. } = self.replay.take()?;
        let whose = if left_there {
            "of an earlier session, which has them"
        } else {
            "of the session that this one was forked from"
        };
        let detail = format!("{records} records {whose}");
        Some(flaw(DamageClass::ReplayedFork, &range?, records, detail))
    }

    /// What only the end of the part can tell. `bytes` is the length of its last file.
    pub(crate) fn end(&mut self, bytes: u64) -> Vec<Flaw> {
        let mut flaws: Vec<Flaw> = self.end_replay().into_iter().collect();
        let mut open: Vec<(Range<u64>, String)> = Vec::new();
        for (call, range) in self.calls.drain() {
            open.extend(range.map(|open| (open.range, call)));
        }
        open.sort_by(|(a, x), (b, y)| (a.start, x).cmp(&(b.start, y)));
        for calls in open.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((range, _)) = calls.first() else { continue };
            let ids: Vec<&str> = calls.iter().map(|(_, call)| call.as_str()).collect();
            let detail = format!("no result follows for {}", ids.join(", "));
            flaws.push(flaw(DamageClass::UnansweredCall, range, 1, detail));
        }
        if self.entries == 0 && bytes == 0 {
            flaws.push(flaw(DamageClass::EmptyFile, &(0..0), 0, "the file is empty".to_owned()));
        } else if self.entries == 0 && self.opened {
            let detail = "a header and nothing else".to_owned();
            flaws.push(flaw(DamageClass::HeaderOnly, &(0..bytes), 1, detail));
        }
        flaws
    }
}

fn flaw(class: DamageClass, range: &Range<u64>, recovered: u64, detail: String) -> Flaw {
    let (offset, bytes) = (range.start, range.end - range.start);
    Flaw { class, offset, bytes, recovered, detail: detail.into() }
}
