//! What a session's own stream tells of it, as far as a push must know.

use crate::clock::Timestamp;
use crate::id::{StreamName, Version};
use crate::session::event::{ChatType, Event, Ingress, Origin, Role, TurnHead, happened_at};
use crate::session::reset::PartFacts;
use crate::store::Record;

/// A session as its stream tells it.
#[derive(Clone, Debug, Default)]
pub(super) struct Talk {
    /// The current part.
    pub(super) current: Option<Current>,
    /// Whether an event said which part that is, and not only one that belongs to it.
    pub(super) knows_its_part: bool,
    pub(super) display_name: Option<String>,
    pub(super) chat_type: Option<ChatType>,
    /// Where answers go.
    pub(super) delivery: Option<Origin>,
    pub(super) in_thread: bool,
    pub(super) opened_channel: Option<String>,
    /// The agent that it belongs to.
    pub(super) agent: Option<String>,
    pub(super) send_policy: Option<String>,
}

/// The current part.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) session_id: String,
    /// When it became current, and with which event of the stream.
    pub(super) since: (Timestamp, Version),
    /// When a person last wrote in it, as far as that was looked at.
    pub(super) last_human_at: Option<Timestamp>,
}

impl Current {
    pub(super) const fn facts(&self) -> PartFacts {
        PartFacts { began_at: self.since.0, last_human_at: self.last_human_at }
    }
}

impl Talk {
    /// The types of the events that tell of parts and of the chat.
    pub(super) const TELLING: [&str; 4] =
        ["session.opened", "session.patched", "session.reset", "session.resumed"];

    /// Takes an event of the session's stream.
    pub(super) fn take(&mut self, record: &Record) {
        let since = (happened_at(record.time, record.data.as_str()), record.version);
        if record.kind.as_str() == "turn" {
            self.turn(record, since);
            return;
        }
        match Event::of(record) {
            Ok(Event::SessionOpened(e)) => {
                self.enter(e.session_id, since);
                self.display_name = self.display_name.take().or(e.display_name);
                self.chat_type = self.chat_type.or(e.chat_type);
                self.delivery = self.delivery.take().or(e.origin);
                self.in_thread |= e.thread_id.is_some_and(|id| !id.is_empty());
                self.opened_channel = self.opened_channel.take().or(e.channel);
                self.agent = self.agent.take().or(Some(e.agent_id));
            }
            Ok(Event::SessionReset(e)) => self.enter(e.session_id, since),
            Ok(Event::SessionResumed(e)) => self.enter(e.session_id, since),
            Ok(Event::SessionPatched(e)) => {
                self.enter_first(&e.session_id, since);
                for (field, value) in &e.set.0 {
                    match field.as_str() {
                        "displayName" => value.patch(&mut self.display_name),
                        "chatType" => value.patch(&mut self.chat_type),
                        "deliveryContext" => value.patch(&mut self.delivery),
                        "sendPolicy" => value.patch(&mut self.send_policy),
                        _ => {}
                    }
                }
            }
            Ok(Event::SessionArchived(e)) => self.enter_first(&e.session_id, since),
            _ => {}
        }
    }

    /// Of a session whose opening is lost, the first part that is named is the current one.
    fn enter_first(&mut self, session_id: &str, since: (Timestamp, Version)) {
        if self.current.is_none() {
            self.enter(session_id.to_owned(), since);
            self.knows_its_part = false;
        }
    }

    fn enter(&mut self, session_id: String, since: (Timestamp, Version)) {
        self.knows_its_part = true;
        self.current = Some(Current { session_id, since, last_human_at: None });
    }

    /// A turn tells when a person wrote, and of a session whose opening is lost which part is current.
    fn turn(&mut self, record: &Record, since: (Timestamp, Version)) {
        let Some(head) = TurnHead::read(record.data.as_str()) else { return };
        self.enter_first(&head.session_id, since);
        let human = head.role == Role::User && head.from == Ingress::External;
        if let Some(current) = self.current.as_mut().filter(|_| human)
            && current.session_id == *head.session_id
        {
            current.last_human_at = current.last_human_at.max(Some(since.0));
        }
    }

    /// The channel that a reset rule is looked up for.
    pub(super) fn channel(&self) -> Option<&str> {
        let of_delivery = || self.delivery.as_ref().and_then(|origin| origin.channel.as_deref());
        self.opened_channel.as_deref().or_else(of_delivery)
    }
}

/// A run that begins or ends on a session.
pub(super) enum RunStep {
    /// With the moment at which it was asked for.
    Began(String, Timestamp),
    Ended(String),
}

/// What an event of a run's stream says about runs on a session.
pub(super) fn run_step(record: &Record, key: &StreamName) -> Option<RunStep> {
    if !record.kind.as_str().starts_with("run.") {
        return None;
    }
    match Event::of(record) {
        Ok(Event::RunRequested(e)) if e.session_key == key.as_str() => {
            Some(RunStep::Began(e.run_id, happened_at(record.time, record.data.as_str())))
        }
        Ok(Event::RunFinished(e)) => Some(RunStep::Ended(e.run_id)),
        _ => None,
    }
}
