//! What a push looks at before it decides, and what it learns from events that come.

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::Version;
use crate::session::event::{Event, run_stream};
use crate::session::push::command::Command;
use crate::session::push::talk::{RunStep, Talk, run_step};
use crate::session::push::wanted::as_new;
use crate::session::reset::Standing;
use crate::store::{Cursor, Decider, EventStore, Item, Record, View};

use super::{Pusher, Repeat, send_policy};

/// How many turns are looked at first for the last one of a person.
const STEP: u64 = 16;

impl Pusher<'_> {
    /// Sees what the session's own stream tells of its parts and its chat, so that the store need not show it the whole
    /// log. Turns are passed over, except where a reset depends on when a person last wrote: a repeat of one in the
    /// current part is known by the store, and any other is found by [`Pusher::load_turns`].
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(in crate::session::push) fn load(
        &mut self,
        store: &dyn EventStore,
        now: Timestamp,
    ) -> Result<()> {
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        let stream = self.key.stream().clone();
        for item in store.read_stream_of(&stream, &Talk::TELLING)? {
            self.see(&item?, end);
        }
        if !self.talk.knows_its_part && store.head(&stream)? > Version::ZERO {
            // What opened it is lost: the first part that is named is the current one, which a turn may have named.
            self.talk = Talk::default();
            for item in store.read_stream(&stream, Version::ZERO)? {
                self.see(&item?, end);
                if self.talk.current.is_some() {
                    break;
                }
            }
            for item in store.read_stream_of(&stream, &Talk::TELLING)? {
                self.see(&item?, end);
            }
        }
        self.seen = Some(end);
        // Whether the rule of this session changes before the decision is not known: one rule is enough to look.
        if self.may_reset() && !self.terms.rules.resets.are_off() {
            self.load_last_human(store, end)?;
        }
        let over = self.may_reset() && !matches!(self.standing(now), Standing::Fresh);
        if over || self.command == Some(Command::Reset) {
            self.load_runs()?;
        }
        Ok(())
    }

    /// Looks from the stream's end for the last turn of a person in the current part: the last in the order of the log,
    /// which of imported turns need not be the latest.
    fn load_last_human(&mut self, store: &dyn EventStore, end: Cursor) -> Result<()> {
        let Some(current) = &self.talk.current else { return Ok(()) };
        let first = current.since.1;
        let stream = self.key.stream().clone();
        let mut last = store.head(&stream)?;
        let mut step = STEP;
        while last >= first && self.talk.current.as_ref().is_some_and(|c| c.last_human_at.is_none())
        {
            let begin =
                Version(last.0.saturating_sub(step)).max(Version(first.0.saturating_sub(1)));
            for item in store.read_stream(&stream, begin)? {
                match item? {
                    Item::Record(record) if record.version > last => break,
                    Item::Record(record)
                        if record.kind.as_str() == "turn" && record.seq <= end.seq() =>
                    {
                        self.talk.take(&record);
                    }
                    Item::Record(_) | Item::Gap(_) => {}
                }
            }
            if begin.0 < first.0 {
                break;
            }
            last = begin;
            step = step.saturating_mul(4);
        }
        Ok(())
    }

    /// Looks at the runs that are at work on the session.
    pub(in crate::session::push) fn load_runs(&mut self) -> Result<()> {
        let sessions = (self.terms.sessions)()?;
        let runs = sessions.state().open_runs(self.key.stream());
        self.runs = Some(runs.map(|(run, since)| (run.to_owned(), since)).collect());
        self.wants_runs = false;
        // What was seen beyond them is to be shown again: there runs may have begun and ended. Taking the rest of the
        // session's own stream twice does no harm.
        let behind = |seen: &Cursor| sessions.cursor().is_none_or(|of| of.seq() < seen.seq());
        if self.seen.as_ref().is_some_and(behind) {
            self.seen = sessions.cursor();
        }
        Ok(())
    }

    /// Sees the whole stream, for a turn that may stand in a part that is not the current one any more, and the request of
    /// its run.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(in crate::session::push) fn load_turns(&mut self, store: &dyn EventStore) -> Result<()> {
        self.restart();
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        let mut streams = vec![self.key.stream().clone()];
        if let Some((run, _)) = &self.run {
            streams.push(run_stream(&run.to_string())?);
        }
        for stream in streams {
            for item in store.read_stream(&stream, Version::ZERO)? {
                self.see(&item?, end);
            }
        }
        self.seen = Some(end);
        Ok(())
    }

    fn see(&mut self, item: &Item, end: Cursor) {
        if let Item::Record(record) = item
            && record.seq <= end.seq()
        {
            self.take(record);
        }
    }

    /// Whether an append was refused because the turn, or another under its key, is there already.
    pub(in crate::session::push) fn may_repeat(&self, error: &Error) -> bool {
        let known = matches!(error.kind(), ErrorKind::IdReused | ErrorKind::PartialDuplicate);
        known && self.push.idempotency_key.is_some() && self.repeat.is_none()
    }

    pub(super) fn take(&mut self, record: &Record) {
        if let Some(runs) = &mut self.runs {
            match run_step(record, self.key.stream()) {
                Some(RunStep::Began(run, at)) => drop(runs.insert(run, at)),
                Some(RunStep::Ended(run)) => drop(runs.remove(&run)),
                None => {}
            }
        }
        if let Some((run, wanted)) = self.run
            && record.id == run
        {
            self.requested = wanted.requested_by(record);
        }
        if record.stream != *self.key.stream() {
            return;
        }
        if record.id == self.turn_id {
            self.take_repeat(record);
        }
        self.talk.take(record);
    }

    /// This very push was carried out before.
    fn take_repeat(&mut self, record: &Record) {
        let part = match Event::of(record) {
            Ok(Event::Turn(turn)) if self.command.is_none() => turn.session_id,
            Ok(Event::SessionReset(e)) if self.command == Some(Command::Reset) => e.session_id,
            Ok(Event::SessionPatched(e)) => match self.command {
                Some(Command::Send(switch)) if e.set == send_policy(switch) => e.session_id,
                _ => return,
            },
            _ => return,
        };
        let obeyed = self.command.map(|_| as_new(record));
        self.repeat = Some(Repeat { part, seq: record.seq, obeyed });
    }
}
