//! The audit view: who sent what to whom, and what became of it. One message at most for each event; everything that
//! stays inside one session is passed over.

mod snippet;

pub use snippet::snippet;

use std::collections::HashMap;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::Seq;
use crate::store::Record;

use super::event::{
    Announce, Delivery, Event, Ingress, Origin, Provenance, Refusal, RunFinished, RunKind,
    SendAccepted, SpawnAccepted, Turn, TurnBlocked, TurnHead, happened_at, words,
};

/// The types that tell about events that come later: whose they are, and who speaks to whom in them.
pub const ORIGINS: [&str; 3] = ["session.opened", "run.requested", "spawn.accepted"];

words! {
    /// What sort of message it is.
    pub enum MessageKind {
        /// Another session's words in a session.
        Turn = "turn",
        /// A send and what came of it.
        Send = "send",
        /// A spawn and what came of it.
        Spawn = "spawn",
        /// A child's result on its way to its requester.
        Announce = "announce",
        /// Something on its way to a channel.
        Delivery = "delivery",
        /// Something that was not allowed.
        Refusal = "refusal",
        /// A setting that has another value.
        Policy = "policy",
    }
}

/// What stands for somebody or something that is not known.
pub const NOBODY: &str = "?";

/// One line of the audit view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The event's position in the log.
    #[serde(serialize_with = "number")]
    pub seq: Seq,
    /// When it happened.
    pub at: Timestamp,
    /// What sort of message.
    pub kind: MessageKind,
    /// Who: a session's key, or what stands for somebody outside; [`NOBODY`] when that is not known.
    pub from: String,
    /// To whom, likewise.
    pub to: String,
    /// The run that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The round of an exchange, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// What was decided, or what came of it, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The beginning of the text, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What one event alone does not say: which session a run works on and for whom, and who spawned whom. It is given
/// every record in order.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    runs: HashMap<String, Run>,
    parents: HashMap<String, String>,
}

#[derive(Clone, Debug)]
struct Run {
    session: String,
    requester: Option<String>,
    kind: Option<RunKind>,
    round: Option<u32>,
}

impl Audit {
    /// The message that an event is; `None` when it is none, or cannot be read. At most `chars` characters of its text
    /// are shown; 0 for none.
    pub fn message(&mut self, record: &Record, chars: usize) -> Option<Message> {
        self.learn(record);
        let mut message = match record.kind.as_str() {
            "turn" => {
                let head = TurnHead::read(record.data.as_str())?;
                (head.from == Ingress::InterSession).then(|| self.turn(record))??
            }
            "run.requested" | "run.output" => return None,
            _ => self.of_event(record, Event::of(record).ok()?)?,
        };
        message.text =
            message.text.map(|text| snippet(&text, chars)).filter(|text| !text.is_empty());
        Some(message)
    }

    /// The session that spawned this one.
    #[must_use]
    pub fn parent(&self, key: &str) -> Option<&str> {
        self.parents.get(key).map(String::as_str)
    }

    fn learn(&mut self, record: &Record) {
        if !matches!(record.kind.as_str(), "run.requested" | "session.opened" | "spawn.accepted") {
            return;
        }
        let stream = record.stream.to_string();
        match Event::of(record) {
            Ok(Event::RunRequested(e)) => {
                let run = Run {
                    session: e.session_key,
                    requester: e.requester_key,
                    kind: Some(e.kind),
                    round: e.round,
                };
                self.runs.insert(e.run_id, run);
            }
            Ok(Event::SessionOpened(e)) => {
                self.parents.extend(e.parent_key.map(|parent| (stream, parent)));
            }
            Ok(Event::SpawnAccepted(e)) => {
                self.parents.extend(e.target_key.map(|child| (child, stream)));
            }
            _ => {}
        }
    }

    fn of_event(&self, record: &Record, event: Event) -> Option<Message> {
        use MessageKind::{Policy, Send};
        Some(match event {
            Event::SendAccepted(e) => self.send(record, e),
            Event::SpawnAccepted(e) => self.spawn(record, e),
            Event::RunFinished(e) => self.outcome(record, e)?,
            Event::SendRefused(e) | Event::SpawnRefused(e) => refusal(record, e, "refused"),
            Event::AccessDenied(e) => refusal(record, e, "denied"),
            Event::TurnBlocked(e) => self.blocked(record, e),
            Event::ExchangeEnded(e) => {
                let to = self.runs.get(&e.run_id).map(|run| run.session.clone());
                let message = Message::new(record, Send, Some(record.stream.to_string()), to);
                message
                    .run(e.run_id)
                    .round(Some(e.rounds))
                    .decided("ended")
                    .because(e.reason.as_str())
            }
            Event::PolicyChanged(e) => {
                let message = Message::new(record, Policy, e.file, Some(e.path)).decided("changed");
                message.text(Some(format!("{} -> {}", e.old.as_str(), e.new.as_str())))
            }
            other => return step(record, other),
        })
    }

    fn turn(&self, record: &Record) -> Option<Message> {
        let Ok(Event::Turn(turn)) = Event::of(record) else { return None };
        let Turn { run_id, provenance, silent, content, .. } = turn;
        let origin = provenance.unwrap_or_default();
        let run_id = origin.run_id.clone().or(run_id);
        let run = run_id.as_ref().and_then(|id| self.runs.get(id));
        let round = origin.round.or_else(|| run.and_then(|run| run.round));
        let from = self.sender(record, origin, run);
        let mut message =
            Message::new(record, MessageKind::Turn, from, Some(record.stream.to_string()));
        message.run = run_id;
        message.decision = silent.map(|_| "silent".to_owned());
        Some(message.round(round).text(content.map(|content| content.plain_text())))
    }

    /// Who sent a turn, as far as it says, or as far as its run or its spawn say.
    fn sender(&self, record: &Record, origin: Provenance, run: Option<&Run>) -> Option<String> {
        let spawned = origin.source_tool.as_deref() == Some("sessions_spawn");
        let here = record.stream.as_str();
        origin
            .source_session_key
            .or_else(|| run.filter(|run| run.session == here)?.requester.clone())
            .or_else(|| spawned.then(|| self.parent(here).map(str::to_owned))?)
    }

    fn send(&self, record: &Record, event: SendAccepted) -> Message {
        let run = self.runs.get(&event.run_id);
        let to = event.target_key.or_else(|| run.map(|run| run.session.clone())).or(event.label);
        let from = Some(record.stream.to_string());
        let round = event.round.or_else(|| run.and_then(|run| run.round));
        Message::new(record, MessageKind::Send, from, to)
            .run(event.run_id)
            .round(round)
            .decided("accepted")
    }

    fn spawn(&self, record: &Record, event: SpawnAccepted) -> Message {
        let run = self.runs.get(&event.run_id);
        let to = event.target_key.or_else(|| run.map(|run| run.session.clone()));
        let mut message =
            Message::new(record, MessageKind::Spawn, Some(record.stream.to_string()), to);
        message.text = event.label;
        message.run(event.run_id).round(event.round).decided("accepted")
    }

    /// How a run ended that another session asked for.
    fn outcome(&self, record: &Record, event: RunFinished) -> Option<Message> {
        let run = self.runs.get(&event.run_id)?;
        let kind = match run.kind? {
            RunKind::Spawn => MessageKind::Spawn,
            RunKind::Send | RunKind::Reply => MessageKind::Send,
            RunKind::Announce => MessageKind::Announce,
            RunKind::Ask | RunKind::Webhook | RunKind::Watch => return None,
        };
        let mut message =
            Message::new(record, kind, Some(run.session.clone()), run.requester.clone());
        message.reason = event.reason;
        Some(message.run(event.run_id).round(run.round).decided(event.status.as_str()))
    }

    fn blocked(&self, record: &Record, event: TurnBlocked) -> Message {
        let origin = event.provenance.unwrap_or_default();
        let from = origin.source_session_key.or(origin.sender).or(origin.source_channel);
        let to = Some(record.stream.to_string());
        Message::new(record, MessageKind::Refusal, from, to)
            .decided("blocked")
            .because(&format!("{}/{}", event.gate, event.rule))
    }
}

fn refusal(record: &Record, event: Refusal, decision: &str) -> Message {
    let mut message = Message::new(
        record,
        MessageKind::Refusal,
        Some(record.stream.to_string()),
        Some(event.target),
    );
    message.text = event.detail;
    message.decided(decision).because(&event.reason)
}

/// A step of an announce or of a delivery: what follows the dot in the type's name is what was decided.
fn step(record: &Record, event: Event) -> Option<Message> {
    let decision = record.kind.as_str().split_once('.').map_or("", |(_, step)| step);
    match event {
        Event::AnnounceRequested(e)
        | Event::AnnounceAttempted(e)
        | Event::AnnounceDeferred(e)
        | Event::AnnounceDelivered(e)
        | Event::AnnounceSuppressed(e)
        | Event::AnnounceFailed(e)
        | Event::AnnounceUnknown(e) => Some(announce(record, e).decided(decision)),
        Event::DeliveryRequested(e)
        | Event::DeliveryAttempted(e)
        | Event::DeliveryDeferred(e)
        | Event::DeliveryDelivered(e)
        | Event::DeliverySuppressed(e)
        | Event::DeliveryFailed(e)
        | Event::DeliveryUnknown(e)
        | Event::DeliveryExpired(e) => Some(delivery(record, e).decided(decision)),
        _ => None,
    }
}

fn announce(record: &Record, event: Announce) -> Message {
    let to = Some(record.stream.to_string());
    let mut message = Message::new(record, MessageKind::Announce, Some(event.child_key), to);
    message.reason = event.reason;
    message.run(event.run_id).text(event.text)
}

fn delivery(record: &Record, event: Delivery) -> Message {
    let address = |target: Origin| match (target.channel, target.to) {
        (Some(channel), Some(to)) => Some(format!("{channel}:{to}")),
        (channel, to) => channel.or(to),
    };
    let to = event.target.and_then(address).or(event.sink);
    let mut message =
        Message::new(record, MessageKind::Delivery, Some(record.stream.to_string()), to);
    message.reason = event.reason;
    message.run = event.run_id;
    message
}

impl Message {
    fn new(record: &Record, kind: MessageKind, from: Option<String>, to: Option<String>) -> Self {
        let name = |who: Option<String>| who.unwrap_or_else(|| NOBODY.to_owned());
        Self {
            seq: record.seq,
            at: happened_at(record.time, record.data.as_str()),
            kind,
            from: name(from),
            to: name(to),
            run: None,
            round: None,
            decision: None,
            reason: None,
            text: None,
        }
    }

    fn run(mut self, run_id: String) -> Self {
        self.run = Some(run_id);
        self
    }

    fn round(mut self, round: Option<u32>) -> Self {
        self.round = round;
        self
    }

    fn decided(mut self, decision: &str) -> Self {
        self.decision = Some(decision.to_string());
        self
    }

    fn because(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_string());
        self
    }

    fn text(mut self, text: Option<String>) -> Self {
        self.text = text;
        self
    }
}

fn number<S: serde::Serializer>(seq: &Seq, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(seq.0)
}

#[cfg(test)]
mod tests;
