//! What time alone changes about sessions: a part expires, a child that has ended leaves the lists. Every view shows it
//! from its moment on; the event that records it comes with the next append that looks.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::{Seq, StreamName};
use crate::session::event::{ArchiveReason, ChatType, Json, SessionArchived, Setting};
use crate::session::key::{Channel, Parts, SessionKey};
use crate::session::reset::{AtWork, PartFacts, Rule, Rules, SessionType, Standing, Zone};
use crate::session::upkeep::Limits;

use super::entry::Fate;
use super::row::{Row, Status};
use super::{Entry, Sessions};

/// The rules by which time changes sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeRules {
    /// When parts expire.
    pub resets: Rules,
    /// How long after their end spawned children leave the lists; `None` for never.
    pub archive_after: Option<Duration>,
}

/// Sessions as of a moment, under rules.
#[derive(Clone, Copy, Debug)]
pub struct Lens<'a> {
    /// The rules.
    pub rules: &'a TimeRules,
    /// The moment.
    pub now: Timestamp,
}

impl TimeRules {
    /// The setting that says when children leave the lists.
    pub const ARCHIVE_SETTING: &'static str = "agents.defaults.subagents.archiveAfterMinutes";

    /// Time changes nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { resets: Rules::none(Zone::utc()), archive_after: None }
    }

    /// The reset rule for a session of such a key, with such a chat behind it. The channel of a key `<channel>:<chat>` is
    /// the one that the key names, whatever else is known.
    #[must_use]
    pub fn reset_rule(
        &self,
        key: &StreamName,
        chat_type: Option<ChatType>,
        in_thread: bool,
        channel: Option<&str>,
    ) -> Rule {
        let key = SessionKey::of_stream(key);
        let own = match key.as_ref().map(SessionKey::parts) {
            Some(Parts::Channel { channel, .. }) => Some(channel),
            _ => None,
        };
        let is_chat = own.is_some();
        let channel = own.as_ref().map(Channel::as_str).or(channel);
        self.resets.of(SessionType::of(chat_type, in_thread), channel, is_chat)
    }

    fn reset_of(&self, entry: &Entry) -> Rule {
        let row = &entry.row;
        let channel = entry.opened_channel.as_deref().or(row.last_channel.as_deref());
        self.reset_rule(&row.key, row.chat_type, entry.in_thread, channel)
    }
}

impl Lens<'_> {
    /// Whether a session has left the lists by now.
    pub(super) fn sees_archived(&self, entry: &Entry) -> bool {
        entry.is_archived() || self.leaves_at(entry).is_some_and(|at| at <= self.now)
    }

    /// When a child that has ended leaves the lists.
    fn leaves_at(&self, entry: &Entry) -> Option<Timestamp> {
        let at_rest = entry.runs.is_empty() && entry.own_announces.is_empty();
        let ended_at = entry.ended_at.filter(|_| at_rest && !entry.is_archived())?;
        match entry.fate? {
            Fate::LeavesAtOnce => Some(ended_at),
            Fate::Expires => Some(ended_at.plus(self.rules.archive_after?)),
            Fate::Stays => None,
        }
    }

    fn standing<'e>(&self, entry: &'e Entry) -> Standing<'e> {
        if entry.parts.is_empty() {
            return Standing::Fresh;
        }
        let facts = PartFacts { began_at: entry.entered_at, last_human_at: entry.human_at };
        let runs = entry.runs.iter().map(|(id, run)| AtWork { run: id, since: run.since });
        let run = runs.max_by_key(|run| run.since);
        let rules = self.rules;
        rules.reset_of(entry).standing(facts, run, rules.resets.defer_max, self.now)
    }
}

impl Sessions {
    /// The row of a key as of a moment.
    #[must_use]
    pub fn row_at(&self, key: &StreamName, lens: &Lens<'_>) -> Option<Row> {
        let entry = self.entry(key)?;
        let mut row = entry.row.clone();
        match lens.standing(entry) {
            Standing::Fresh => {}
            Standing::Deferred { run, .. } => row.reset_deferred_by = Some(run.to_owned()),
            Standing::Expired { expiry, .. } => row.expired_at = Some(expiry.at),
        }
        let busy = matches!(row.status, Status::Damaged | Status::Running | Status::Waiting);
        if !busy && lens.sees_archived(entry) {
            row.status = Status::Archived;
        } else if !busy && row.expired_at.is_some() {
            row.status = Status::Expired;
        }
        Some(row)
    }

    /// Says in a row which file holds the last turn of the current part, unless it was imported from one of its own.
    /// `files` are those of the store ([`EventStore::files`]).
    ///
    /// [`EventStore::files`]: crate::store::EventStore::files
    pub fn locate(&self, row: &mut Row, files: &[(Seq, PathBuf)]) {
        if row.transcript_path.is_some() {
            return;
        }
        let last = self.entry(&row.key).and_then(Entry::current).and_then(|part| part.last_seq);
        let holds = |last: Seq| files.partition_point(|(first, _)| *first <= last).checked_sub(1);
        let file = last.and_then(holds).and_then(|index| files.get(index));
        row.transcript_path = file.map(|(_, path)| path.display().to_string());
    }

    /// How a session's current part stands at a moment.
    #[must_use]
    pub fn standing(&self, key: &StreamName, lens: &Lens<'_>) -> Standing<'_> {
        self.entry(key).map_or(Standing::Fresh, |entry| lens.standing(entry))
    }

    /// The reset rule in force for a session; `None` when there is no such session.
    #[must_use]
    pub fn reset_rule(&self, key: &StreamName, rules: &TimeRules) -> Option<Rule> {
        self.entry(key).map(|entry| rules.reset_of(entry))
    }

    /// What time has archived by a moment and no event says yet: the streams, by name, and the events.
    #[must_use]
    pub fn archives_due(&self, lens: &Lens<'_>) -> Vec<(StreamName, SessionArchived)> {
        let due = |entry: &Entry| {
            let effective_at = lens.leaves_at(entry).filter(|at| *at <= lens.now)?;
            let at_once = entry.fate == Some(Fate::LeavesAtOnce);
            let minutes = lens.rules.archive_after.map_or(0, |after| after.as_secs() / 60);
            let setting = || {
                let value = Json::of(&minutes).ok()?;
                Some(Setting { name: TimeRules::ARCHIVE_SETTING.to_owned(), value })
            };
            let event = SessionArchived {
                at: None,
                session_id: entry.row.session_id.clone(),
                reason: if at_once { ArchiveReason::Cleanup } else { ArchiveReason::Ended },
                effective_at,
                rule: if at_once { None } else { setting() },
            };
            Some((entry.row.key.clone(), event))
        };
        let mut due: Vec<_> = self.entries.values().filter_map(|entry| due(entry)).collect();
        due.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        due
    }

    /// Whether time has archived a session by a moment and no event says yet.
    pub(in crate::session) fn time_archives(&self, key: &StreamName, lens: &Lens<'_>) -> bool {
        let entry = self.entry(key);
        entry.is_some_and(|entry| !entry.is_archived() && lens.sees_archived(entry))
    }

    /// The sessions over the limits that may leave the lists, the oldest first: at rest, with nothing on the way.
    #[must_use]
    pub fn over_limits(
        &self,
        lens: &Lens<'_>,
        limits: Limits,
    ) -> Vec<(StreamName, SessionArchived)> {
        if limits.entries_max.is_none() && limits.age_max.is_none() {
            return Vec::new();
        }
        let listed = self.entries.values().filter(|entry| !lens.sees_archived(entry));
        let mut listed: Vec<&Entry> = listed.map(|entry| &**entry).collect();
        listed.sort_unstable_by_key(|entry| (entry.row.updated_at, &entry.row.key));
        let count = u64::try_from(listed.len()).unwrap_or(u64::MAX);
        let mut too_many = limits.entries_max.map_or(0, |most| count.saturating_sub(most));
        let eldest = limits.age_max.map(|age| lens.now.minus(age));
        let mut over = Vec::new();
        for entry in listed.into_iter().filter(|entry| entry.is_at_rest()) {
            let (name, value) = if eldest.is_some_and(|eldest| entry.row.updated_at < eldest) {
                let days = limits.age_max.map_or(0, |age| age.as_secs() / 86_400);
                ("session.maintenance.pruneAfterDays", days)
            } else if too_many > 0 {
                ("session.maintenance.maxEntries", limits.entries_max.unwrap_or(0))
            } else {
                continue;
            };
            too_many = too_many.saturating_sub(1);
            let rule = Json::of(&value).ok().map(|value| Setting { name: name.to_owned(), value });
            let event = SessionArchived {
                at: None,
                session_id: entry.row.session_id.clone(),
                reason: ArchiveReason::Maintenance,
                effective_at: lens.now,
                rule,
            };
            over.push((entry.row.key.clone(), event));
        }
        over
    }
}
