//! The decision of a push: made under the append lock, on as much of the session's state as it needs.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, StreamName, Version};
use crate::projection::Projection;
use crate::session::change::manual_reset;
use crate::session::event::{
    ChatType, Event, Ingress, Json, Links, Members, Origin, Provenance, ResetReason, Role,
    SessionKind, SessionOpened, SessionPatched, SessionReset, Turn, idempotency_id,
};
use crate::session::key::{Parts, SessionKey};
use crate::session::policy::{POLICY_SETTINGS, POLICY_STREAM, PolicyState};
use crate::session::reset::{AtWork, Rule, Standing};
use crate::store::{Append, Cursor, Decider, EventStore, Item, NewEvent, Record, View};

use super::command::{Command, SendSwitch};
use super::talk::{RunStep, Talk, run_step};
use super::{Push, Terms};

/// The decision, with as much of the session's state as it needs: which part is current, what it is called, when a
/// person last wrote in it, and whether this very turn is there.
pub(super) struct Pusher<'a> {
    push: &'a Push,
    terms: &'a Terms<'a>,
    pub(super) key: SessionKey,
    /// What the message is instead of a turn.
    pub(super) command: Option<Command>,
    turn_id: EventId,
    ids: Ids,
    seen: Option<Cursor>,
    talk: Talk,
    policy: PolicyState,
    /// Runs at work on the session, once they were looked at.
    runs: Option<BTreeMap<String, Timestamp>>,
    /// Whether the last decision failed for not knowing them.
    pub(super) wants_runs: bool,
    /// The part that this turn is in already.
    pushed_in: Option<String>,
    /// The event of this command, when it was obeyed before.
    obeyed: Option<NewEvent>,
    /// Whether the last decision was to open, and why it began another part.
    pub(super) opens: bool,
    pub(super) reset: Option<ResetReason>,
}

/// The ids of what a push may add beside its turn.
#[derive(Clone, Debug)]
struct Ids {
    opening: EventId,
    patch: EventId,
    reset: EventId,
    part: String,
    policy: Vec<EventId>,
}

impl Ids {
    fn new(now: Timestamp) -> Self {
        Self {
            opening: EventId::new(now),
            patch: EventId::new(now),
            reset: EventId::new(now),
            part: EventId::new(now).to_string(),
            policy: POLICY_SETTINGS.iter().map(|_| EventId::new(now)).collect(),
        }
    }
}

/// How many turns are looked at first for the last one of a person.
const STEP: u64 = 16;

impl<'a> Pusher<'a> {
    /// A decision that has seen nothing.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be pushed.
    pub(super) fn new(push: &'a Push, terms: &'a Terms<'a>, now: Timestamp) -> Result<Self> {
        let key = push.check()?;
        let turn_id = match &push.idempotency_key {
            Some(given) => idempotency_id("session.push", key.as_str(), given)?,
            None => EventId::new(now),
        };
        let obeys = push.owner && push.role == Role::User;
        Ok(Self {
            push,
            terms,
            key,
            command: Command::read(&push.text).filter(|_| obeys),
            turn_id,
            ids: Ids::new(now),
            seen: None,
            talk: Talk::default(),
            policy: PolicyState::default(),
            runs: None,
            wants_runs: false,
            pushed_in: None,
            obeyed: None,
            opens: false,
            reset: None,
        })
    }

    /// Sees what the session's own stream tells of its parts and its chat, so that the store need not show it the whole
    /// log. Turns are passed over, except where a reset depends on when a person last wrote: a repeat of one in the
    /// current part is known by the store, and any other is found by [`Pusher::load_turns`].
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn load(&mut self, store: &dyn EventStore, now: Timestamp) -> Result<()> {
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
        if self.terms.policy.is_some() {
            for item in store.read_stream(&StreamName::new(POLICY_STREAM)?, Version::ZERO)? {
                if let Item::Record(record) = item?
                    && record.seq <= end.seq()
                {
                    self.policy.apply(&record.fields());
                }
            }
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
    pub(super) fn load_runs(&mut self) -> Result<()> {
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

    /// Sees the whole stream, for a turn that may stand in a part that is not the current one any more.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn load_turns(&mut self, store: &dyn EventStore) -> Result<()> {
        self.restart();
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        let stream = self.key.stream().clone();
        for item in store.read_stream(&stream, Version::ZERO)? {
            self.see(&item?, end);
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
    pub(super) fn may_repeat(&self, error: &Error) -> bool {
        let known = matches!(error.kind(), ErrorKind::IdReused | ErrorKind::PartialDuplicate);
        known && self.push.idempotency_key.is_some() && self.pushed_in.is_none()
    }

    fn take(&mut self, record: &Record) {
        self.policy.apply(&record.fields());
        if let Some(runs) = &mut self.runs {
            match run_step(record, self.key.stream()) {
                Some(RunStep::Began(run, at)) => drop(runs.insert(run, at)),
                Some(RunStep::Ended(run)) => drop(runs.remove(&run)),
                None => {}
            }
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
        self.obeyed = self.command.map(|_| NewEvent {
            id: record.id,
            stream: record.stream.clone(),
            kind: record.kind.clone(),
            cause: record.cause,
            flow: record.flow,
            data: record.data.clone(),
        });
        self.pushed_in = Some(part);
    }

    /// The part that the turn is in, or goes into.
    pub(super) fn session_id(&self) -> &str {
        if let Some(part) = &self.pushed_in {
            return part;
        }
        match &self.talk.current {
            Some(current) if self.reset.is_none() => &current.session_id,
            _ => &self.ids.part,
        }
    }

    /// Whether a turn from outside comes: nothing else begins another part.
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

    fn event(&self, event: &Event, id: EventId) -> Result<NewEvent> {
        let links = Links { cause: None, flow: Some(self.turn_id) };
        event.to_new(self.key.stream().clone(), id, links)
    }

    fn turn(&self) -> Result<NewEvent> {
        let external = self.push.role == Role::User;
        let from = if external { Ingress::External } else { Ingress::Internal };
        let content = Json::of(&self.push.text)?;
        let provenance =
            Provenance { source_channel: Some(self.channel()), ..Provenance::default() };
        let event = Event::Turn(Turn {
            provenance: external.then_some(provenance),
            ..Turn::new(self.session_id(), self.push.role, from, content)
        });
        self.event(&event, self.turn_id)
    }

    fn opening(&self) -> Result<NewEvent> {
        let push = self.push;
        let group = matches!(push.chat_type, Some(ChatType::Group | ChatType::Channel));
        let kind = if group { SessionKind::Group } else { self.key.kind_at_opening() };
        let event = Event::SessionOpened(SessionOpened {
            channel: Some(self.channel()),
            chat_type: push.chat_type,
            chat_id: Some(push.chat.clone()),
            account_id: push.account.clone(),
            thread_id: push.thread.clone(),
            display_name: push.display_name.clone(),
            origin: Some(self.delivery(None)),
            ..SessionOpened::new(self.ids.part.clone(), kind, push.agent.as_str())
        });
        self.event(&event, self.ids.opening)
    }

    /// The event that says what has changed about an open session.
    fn patch(&self) -> Result<Option<NewEvent>> {
        let mut set = Vec::new();
        if let Some(name) = &self.push.display_name
            && self.talk.display_name.as_ref() != Some(name)
        {
            set.push(("displayName".to_owned(), Json::of(name)?));
        }
        if let Some(sort) = self.push.chat_type
            && self.talk.chat_type != Some(sort)
        {
            set.push(("chatType".to_owned(), Json::of(&sort)?));
        }
        let known = self.talk.delivery.as_ref();
        let delivery = self.delivery(known);
        if (self.push.account.is_some() || self.push.thread.is_some()) && known != Some(&delivery) {
            set.push(("deliveryContext".to_owned(), Json::of(&delivery)?));
        }
        if set.is_empty() {
            return Ok(None);
        }
        self.patched(Members(set), self.ids.patch).map(Some)
    }

    fn patched(&self, set: Members, id: EventId) -> Result<NewEvent> {
        let session_id = self.session_id().to_owned();
        self.event(&Event::SessionPatched(SessionPatched { at: None, session_id, set }), id)
    }

    /// What the policy file says anew.
    fn policy_changes(&self) -> Result<Vec<NewEvent>> {
        let Some(file) = self.terms.policy else { return Ok(Vec::new()) };
        let stream = StreamName::new(POLICY_STREAM)?;
        let changes = self.policy.changes(file).into_iter().zip(&self.ids.policy);
        changes
            .map(|(change, id)| {
                let links = Links { cause: None, flow: Some(self.turn_id) };
                Event::PolicyChanged(change).to_new(stream.clone(), *id, links)
            })
            .collect()
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

    /// Where answers to this turn go: as it says, and where it says nothing, as it is known.
    fn delivery(&self, known: Option<&Origin>) -> Origin {
        let push = self.push;
        let known = known.cloned().unwrap_or_default();
        Origin {
            channel: Some(self.channel()),
            to: Some(push.chat.clone()),
            account_id: push.account.clone().or(known.account_id),
            thread_id: push.thread.clone().or(known.thread_id),
        }
    }

    /// An error in the words of who pushed: he knows keys, not ids.
    pub(super) fn explain(&self, error: Error) -> Error {
        let Some(key) = self.push.idempotency_key.as_ref() else { return error };
        if *error.kind() != ErrorKind::IdReused {
            return error;
        }
        let message =
            format!("the idempotency key {key:?} was used for another turn of {}", self.key);
        let explained = Error::new(ErrorKind::IdReused, message)
            .field("idempotencyKey")
            .hint("a repeat has the same role and text; give another turn a key of its own");
        match error.place().seq {
            Some(seq) => explained.seq(seq),
            None => explained,
        }
    }

    fn channel(&self) -> String {
        match self.key.parts() {
            Parts::Channel { channel, .. } => channel.to_string(),
            _ => self.push.channel.clone(),
        }
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
        self.policy = PolicyState::default();
        self.runs = self.runs.take().map(|_| BTreeMap::new());
        self.pushed_in = None;
        self.obeyed = None;
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        self.opens = false;
        self.reset = None;
        if let Some(event) = &self.obeyed {
            return Ok(Append::new(vec![event.clone()]));
        }
        if self.pushed_in.is_some() {
            return Ok(Append::new(vec![self.turn()?]));
        }
        let mut events = self.policy_changes()?;
        if let Some(command) = self.command {
            events.push(self.obey(command, now)?);
            return Ok(Append::new(events));
        }
        self.opens = self.talk.current.is_none();
        if self.opens {
            events.push(self.opening()?);
        } else {
            if self.may_reset() {
                events.extend(self.expired(now)?);
            }
            events.extend(self.patch()?);
        }
        events.push(self.turn()?);
        Ok(Append::new(events))
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
