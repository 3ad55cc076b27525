//! The decision of a push: made under the append lock, on as much of the session's state as it needs.

mod events;
mod loading;

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, Seq};
use crate::session::change::manual_reset;
use crate::session::event::{Event, Json, Members, ResetReason, Role, SessionReset};
use crate::session::key::SessionKey;
use crate::session::reset::{AtWork, Rule, Standing};
use crate::store::{Append, Cursor, Decider, Item, NewEvent};

use super::command::{Command, SendSwitch};
use super::talk::Talk;
use super::{Push, Terms, Wanted};

/// The decision, with as much of the session's state as it needs: which part is current, what it is called, when a
/// person last wrote in it, and whether this very turn is there.
pub(super) struct Pusher<'a> {
    push: &'a Push,
    terms: &'a Terms<'a>,
    pub(super) key: SessionKey,
    /// What the message is instead of a turn.
    pub(super) command: Option<Command>,
    pub(super) turn_id: EventId,
    /// The run that is wanted, and its id.
    pub(super) run: Option<(EventId, &'a Wanted)>,
    ids: Ids,
    seen: Option<Cursor>,
    talk: Talk,
    /// Runs at work on the session, once they were looked at.
    runs: Option<BTreeMap<String, Timestamp>>,
    /// Whether the last decision failed for not knowing them.
    pub(super) wants_runs: bool,
    /// What became of this very push when it was carried out before.
    repeat: Option<Repeat>,
    /// The request of its run, when it was asked for before.
    requested: Option<NewEvent>,
    /// The position of the first event that is decided next.
    first: Seq,
    /// Whether the last decision was to open, and why it began another part.
    pub(super) opens: bool,
    pub(super) reset: Option<ResetReason>,
}

/// A push that was carried out before.
struct Repeat {
    /// The part that the turn is in.
    part: String,
    /// Where it stands.
    seq: Seq,
    /// The event of a command.
    obeyed: Option<NewEvent>,
}

/// The ids of what a push may add beside its turn.
#[derive(Clone, Debug)]
struct Ids {
    opening: EventId,
    patch: EventId,
    reset: EventId,
    part: String,
}

impl Ids {
    fn new(now: Timestamp) -> Self {
        Self {
            opening: EventId::new(now),
            patch: EventId::new(now),
            reset: EventId::new(now),
            part: EventId::new(now).to_string(),
        }
    }
}

impl<'a> Pusher<'a> {
    /// A decision that has seen nothing.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be pushed.
    pub(super) fn new(push: &'a Push, terms: &'a Terms<'a>, now: Timestamp) -> Result<Self> {
        let key = push.check()?;
        let turn_id = push.keyed_turn_id(&key)?.unwrap_or_else(|| EventId::new(now));
        let run_id = push.keyed_run_id()?.unwrap_or_else(|| EventId::new(now));
        let mut pusher = Self {
            push,
            terms,
            key,
            command: None,
            turn_id,
            run: push.run.as_ref().map(|wanted| (run_id, wanted)),
            ids: Ids::new(now),
            seen: None,
            talk: Talk::default(),
            runs: None,
            wants_runs: false,
            repeat: None,
            requested: None,
            first: Seq::ZERO,
            opens: false,
            reset: None,
        };
        pusher.command = pusher.read_command();
        Ok(pusher)
    }

    /// The command that the message is, if whoever sent it may command.
    fn read_command(&self) -> Option<Command> {
        let command = Command::read(&self.push.text).filter(|_| self.push.role == Role::User)?;
        let obeys = self.push.door.is_owners(&self.source_channel(), self.terms.owners);
        obeys.then_some(command)
    }

    /// The part that the turn is in, or goes into.
    pub(super) fn session_id(&self) -> &str {
        if let Some(repeat) = &self.repeat {
            return &repeat.part;
        }
        match &self.talk.current {
            Some(current) if self.reset.is_none() => &current.session_id,
            _ => &self.ids.part,
        }
    }

    /// Whether a user's turn comes: nothing else begins another part. It need not be a person's, or a job's session whose
    /// time is over would never be used again.
    fn may_reset(&self) -> bool {
        self.push.role == Role::User && self.command.is_none()
    }

    fn rule(&self) -> Rule {
        let talk = &self.talk;
        let stream = self.key.stream();
        self.terms.rules.reset_rule(stream, talk.chat_type, talk.in_thread, talk.channel())
    }

    fn standing(&self, now: Timestamp) -> Standing<'_> {
        let Some(current) = &self.talk.current else { return Standing::Fresh };
        let runs = self.runs.iter().flatten();
        let run =
            runs.map(|(run, since)| AtWork { run, since: *since }).max_by_key(|run| run.since);
        self.rule().standing(current.facts(), run, self.terms.rules.resets.defer_max, now)
    }

    /// The event that begins another part because the current one's time is over.
    fn expired(&mut self, now: Timestamp) -> Result<Option<NewEvent>> {
        let Standing::Expired { expiry, deferred_by } = self.standing(now) else { return Ok(None) };
        let event = Event::SessionReset(SessionReset {
            at: None,
            session_id: self.ids.part.clone(),
            previous_session_id: self.session_id().to_owned(),
            reason: expiry.reason,
            effective_at: expiry.at,
            rule: Some(self.rule().to_event()),
            deferred_by: deferred_by.map(str::to_owned),
        });
        self.known_runs()?;
        self.reset = Some(expiry.reason);
        self.event(&event, self.ids.reset).map(Some)
    }

    /// The runs at work.
    ///
    /// # Errors
    /// `Refused` when they were not looked at yet: then the decision is made again with them.
    fn known_runs(&mut self) -> Result<&BTreeMap<String, Timestamp>> {
        self.wants_runs = self.runs.is_none();
        self.runs.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Refused, "the runs of the session are not known yet")
        })
    }

    /// What a command does. It opens no session.
    fn obey(&mut self, command: Command, now: Timestamp) -> Result<NewEvent> {
        if self.talk.current.is_none() {
            let message = format!("there is no session {:?} for the command", self.key.as_str());
            return Err(Error::new(ErrorKind::NotFound, message)
                .field("sessionKey")
                .hint("a session opens with its first turn"));
        }
        match command {
            Command::Reset => {
                let run = self.known_runs()?.keys().next().cloned();
                let (current, part) = (self.session_id().to_owned(), self.ids.part.clone());
                let key = self.key.stream();
                let event = manual_reset(key, &current, &part, run.as_deref(), now)?;
                self.reset = Some(ResetReason::Manual);
                self.event(&event, self.turn_id)
            }
            Command::Send(switch) => self.patched(send_policy(switch), self.turn_id),
        }
    }

    /// The same batch as before, as far as it is this push's own.
    fn again(&self, repeat: &Repeat) -> Result<Append> {
        if let Some(event) = &repeat.obeyed {
            return Ok(Append::new(vec![event.clone()]));
        }
        let mut events: Vec<NewEvent> = self.push.ahead.iter().cloned().collect();
        events.push(self.turn()?);
        match &self.requested {
            Some(request) => events.push(request.clone()),
            None => events.extend(self.request(repeat.seq)?),
        }
        Ok(Append::new(events))
    }
}

impl Decider for Pusher<'_> {
    fn seen(&self) -> Option<Cursor> {
        self.seen
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        if let Item::Record(record) = item {
            self.take(record);
        }
        self.seen = Some(*cursor);
    }

    fn restart(&mut self) {
        self.seen = None;
        self.talk = Talk::default();
        self.runs = self.runs.take().map(|_| BTreeMap::new());
        self.repeat = None;
        self.requested = None;
    }

    fn begins(&mut self, first: Seq) {
        self.first = first;
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        self.opens = false;
        self.reset = None;
        if let Some(repeat) = &self.repeat {
            return self.again(repeat);
        }
        if let Some(command) = self.command {
            return Ok(Append::new(vec![self.obey(command, now)?]));
        }
        let mut events = Vec::new();
        self.opens = self.talk.current.is_none();
        if self.opens {
            events.push(self.opening()?);
        } else {
            if self.may_reset() {
                events.extend(self.expired(now)?);
            }
            events.extend(self.patch()?);
        }
        events.extend(self.push.ahead.clone());
        let before = u64::try_from(events.len()).unwrap_or(u64::MAX);
        events.push(self.turn()?);
        events.extend(self.request(Seq(self.first.0.saturating_add(before)))?);
        let expectations = self.push.expects.iter().cloned().collect();
        Ok(Append { expectations, ..Append::new(events) })
    }
}

/// What `/send` sets.
fn send_policy(switch: Option<SendSwitch>) -> Members {
    let word = match switch {
        Some(SendSwitch::On) => Json::of("allow"),
        Some(SendSwitch::Off) => Json::of("deny"),
        None => Ok(Json::null()),
    };
    Members(vec![("sendPolicy".to_owned(), word.unwrap_or_else(|_| Json::null()))])
}
