//! Who did what to whom, and what came of it: each send, spawn, announce, delivery and refusal once, with its outcome,
//! put together from the messages of the audit view. And the same as a graph: who has to do with whom, how often, with
//! what outcomes.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::clock::Timestamp;

use super::audit::{Message, MessageKind, NOBODY};
use super::event::{RunStatus, words};

words! {
    /// What somebody did.
    pub enum DeedKind {
        /// Sent a message.
        Send = "send",
        /// Answered in an exchange.
        Reply = "reply",
        /// Spawned a child.
        Spawn = "spawn",
        /// Told its requester what came of its task.
        Announce = "announce",
        /// Said something to a channel.
        Delivery = "delivery",
        /// Said something of which nothing else is known: its send or spawn stands in no log that was read.
        Message = "message",
        /// Wanted something that was not allowed.
        Refusal = "refusal",
    }
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deed {
    /// The position of the event that it begins with.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: DeedKind,
    /// Who; `?` when that is not known.
    pub from: String,
    /// To whom, likewise.
    pub to: String,
    /// The run that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What came of it: how the run ended, the last step of an announce or a delivery; `open` as long as nothing did.
    pub outcome: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it came to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The rounds of the exchange that followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The beginning of what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What stands for an outcome that is not there yet.
pub const OPEN: &str = "open";

/// All deeds, in the order in which the log tells of them.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    all: Vec<Deed>,
    /// Where each is, by what makes its events those of one deed.
    places: HashMap<(DeedKind, String), usize>,
    /// The last words of a round from one session to another, which the run that answers them does not name.
    rounds: HashMap<(String, String), Message>,
}

impl Deeds {
    /// Takes the next message of the audit view. Returns the place, in [`Deeds::all`], of the deed that it is part of;
    /// `None` when it is part of none.
    pub fn take(&mut self, message: &Message) -> Option<usize> {
        let decision = message.decision.as_deref().unwrap_or_default();
        let run = message.run.as_deref().unwrap_or_default();
        let ended = RunStatus::from_word(decision).is_some();
        match message.kind {
            MessageKind::Send if decision == "accepted" => {
                Some(self.began(DeedKind::Send, message, run))
            }
            MessageKind::Spawn if decision == "accepted" => {
                Some(self.began(DeedKind::Spawn, message, run))
            }
            MessageKind::Send if decision == "ended" => {
                let place = self.place(DeedKind::Send, run)?;
                self.all.get_mut(place)?.rounds = message.round;
                Some(place)
            }
            MessageKind::Send if ended => Some(self.run_ended(DeedKind::Send, message, run)),
            MessageKind::Spawn if ended => Some(self.run_ended(DeedKind::Spawn, message, run)),
            // A run that words an announce is none; the announce has its own steps.
            MessageKind::Announce if ended => None,
            MessageKind::Announce => Some(self.step(DeedKind::Announce, message)),
            MessageKind::Delivery => Some(self.step(DeedKind::Delivery, message)),
            MessageKind::Refusal => Some(self.push(DeedKind::Refusal, message, decision)),
            MessageKind::Turn => Some(self.said(message, run)),
            MessageKind::Send | MessageKind::Spawn | MessageKind::Policy => None,
        }
    }

    /// All, in the order in which the log tells of them, which need not be that in which they happened.
    #[must_use]
    pub fn all(&self) -> &[Deed] {
        &self.all
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_all(self) -> Vec<Deed> {
        self.all
    }

    fn place(&self, kind: DeedKind, name: &str) -> Option<usize> {
        self.places.get(&(kind, name.to_owned())).copied()
    }

    fn push(&mut self, kind: DeedKind, message: &Message, outcome: &str) -> usize {
        self.all.push(Deed {
            seq: message.seq.0,
            at: message.at,
            kind,
            from: message.from.clone(),
            to: message.to.clone(),
            run: message.run.clone(),
            outcome: outcome.to_owned(),
            reason: message.reason.clone(),
            ended_at: None,
            rounds: None,
            text: message.text.clone(),
        });
        self.all.len() - 1
    }

    /// One more, whose events go by a name.
    fn push_named(&mut self, kind: DeedKind, name: &str, message: &Message) -> usize {
        let place = self.push(kind, message, OPEN);
        self.places.insert((kind, name.to_owned()), place);
        place
    }

    fn began(&mut self, kind: DeedKind, message: &Message, run: &str) -> usize {
        // Its first words may have been seen before it: they stand ahead in one batch.
        let Some(place) = self.places.remove(&(DeedKind::Message, run.to_owned())) else {
            return self.push_named(kind, run, message);
        };
        self.places.insert((kind, run.to_owned()), place);
        if let Some(deed) = self.all.get_mut(place) {
            deed.kind = kind;
            OPEN.clone_into(&mut deed.outcome);
            deed.from.clone_from(&message.from);
            deed.to.clone_from(&message.to);
        }
        place
    }

    /// The answer goes back to who asked: the deed is his.
    fn run_ended(&mut self, kind: DeedKind, message: &Message, run: &str) -> usize {
        // A reply is known by its first end, as a send or a spawn is.
        let replied = if kind == DeedKind::Send { DeedKind::Reply } else { kind };
        let known = self.place(kind, run).or_else(|| self.place(replied, run));
        let place = known.unwrap_or_else(|| {
            let ends = (message.to.clone(), message.from.clone());
            let words = self.rounds.remove(&ends);
            let (seq, at) = words.as_ref().map_or((message.seq, message.at), |w| (w.seq, w.at));
            let (from, to) = ends;
            let text = words.and_then(|words| words.text);
            let asked = Message { seq, at, from, to, reason: None, text, ..message.clone() };
            self.push_named(replied, run, &asked)
        });
        self.ends(place, message);
        place
    }

    fn ends(&mut self, place: usize, message: &Message) {
        let outcome = message.decision.as_deref().unwrap_or(OPEN);
        let Some(deed) = self.all.get_mut(place) else { return };
        if deed.ended_at.is_none() {
            outcome.clone_into(&mut deed.outcome);
            deed.reason.clone_from(&message.reason);
            deed.ended_at = Some(message.at);
        }
    }

    /// A step of an announce or of a delivery.
    fn step(&mut self, kind: DeedKind, message: &Message) -> usize {
        let run = message.run.as_deref().unwrap_or_default();
        let name = format!("{run} {} {}", message.from, message.to);
        let known = self.place(kind, &name);
        let place = known.unwrap_or_else(|| self.push_named(kind, &name, message));
        let decision = message.decision.as_deref().unwrap_or_default();
        match decision {
            "requested" | "attempted" | "deferred" => {
                if let Some(deed) = self.all.get_mut(place).filter(|deed| deed.ended_at.is_none()) {
                    decision.clone_into(&mut deed.outcome);
                }
            }
            _ => self.ends(place, message),
        }
        place
    }

    /// Words of another session. They are those of a deed that is known, or a deed of their own.
    fn said(&mut self, message: &Message, run: &str) -> usize {
        let announced = format!("{run} {} {}", message.from, message.to);
        let known = [DeedKind::Send, DeedKind::Spawn, DeedKind::Announce, DeedKind::Reply]
            .into_iter()
            .find_map(|kind| self.place(kind, run))
            .or_else(|| self.place(DeedKind::Announce, &announced));
        if let Some(place) = known.filter(|_| !run.is_empty()) {
            if message.round > Some(1) {
                let ends = (message.from.clone(), message.to.clone());
                self.rounds.insert(ends, message.clone());
            }
            return place;
        }
        let place = self.push(DeedKind::Message, message, "said");
        if !run.is_empty() {
            self.places.insert((DeedKind::Message, run.to_owned()), place);
        }
        place
    }
}

/// How many of these are known at one end alone.
#[must_use]
pub fn unjoined(deeds: &[Deed]) -> usize {
    deeds.iter().filter(|deed| deed.from == NOBODY || deed.to == NOBODY).count()
}

/// Who has to do with whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Who.
    pub from: String,
    /// With whom.
    pub to: String,
    /// What he did.
    pub kind: DeedKind,
    /// How often.
    pub count: u64,
    /// How often with each outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// When first.
    pub first: Timestamp,
    /// When last.
    pub last: Timestamp,
}

/// The graph of deeds, in the order in which each edge came first.
#[must_use]
pub fn graph(deeds: &[Deed]) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut places: HashMap<(&str, &str, DeedKind), usize> = HashMap::new();
    for deed in deeds {
        let place = *places.entry((&deed.from, &deed.to, deed.kind)).or_insert_with(|| {
            edges.push(Edge {
                from: deed.from.clone(),
                to: deed.to.clone(),
                kind: deed.kind,
                count: 0,
                outcomes: BTreeMap::new(),
                first: deed.at,
                last: deed.at,
            });
            edges.len() - 1
        });
        let Some(edge) = edges.get_mut(place) else { continue };
        edge.count += 1;
        *edge.outcomes.entry(deed.outcome.clone()).or_default() += 1;
        edge.first = edge.first.min(deed.at);
        edge.last = edge.last.max(deed.at);
    }
    edges
}

#[cfg(test)]
mod tests;
