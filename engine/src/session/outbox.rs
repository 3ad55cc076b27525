//! The outbox: every announce and every delivery that was accepted, its attempts, and its one end.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::Fields;
use crate::projection::Projection;
use crate::store::Damage;

use super::event::{Announce, Delivery, Event, words};
use super::moment::Moment;

words! {
    /// What is on its way.
    pub enum Cargo {
        /// A child's result, to its requester.
        Announce = "announce",
        /// A reply, an error or a notice, to a channel.
        Delivery = "delivery",
    }
}

words! {
    /// How far it came.
    pub enum Passage {
        /// It is to be sent.
        Requested = "requested",
        /// It is being sent.
        Attempted = "attempted",
        /// It did not arrive, and is tried again.
        Deferred = "deferred",
        /// It arrived.
        Delivered = "delivered",
        /// It is not sent, on purpose.
        Suppressed = "suppressed",
        /// It could not be sent.
        Failed = "failed",
        /// Nobody knows whether it arrived.
        Unknown = "unknown",
        /// It is too old to be sent.
        Expired = "expired",
    }
}

impl Passage {
    /// Whether it has not come to an end.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Attempted | Self::Deferred)
    }
}

/// Something that leaves a session. What an event would say that cannot be read is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outgoing {
    /// What it is.
    pub cargo: Cargo,
    /// The session that it was accepted in.
    pub session_key: String,
    /// The run that it belongs to; of an announce the child's.
    pub run_id: Option<String>,
    /// The child whose result it is.
    pub child_key: Option<String>,
    /// The position of the turn that it carries.
    pub turn_seq: Option<u64>,
    /// How far it came.
    pub state: Passage,
    /// When it was accepted.
    pub requested: Option<Moment>,
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// When it came to its end.
    pub ended: Option<Moment>,
    /// The sink that was named last.
    pub sink: Option<String>,
    /// Why it ended as it did.
    pub reason: Option<String>,
    /// Ends that were told after the first, which is the one that counts.
    pub later_ends: u64,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// When.
    #[serde(flatten)]
    pub moment: Moment,
    /// Its id.
    pub attempt_id: Option<String>,
    /// The sink that it went through.
    pub sink: Option<String>,
    /// Why it did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What makes two steps those of one thing: an announce is one a requester and run, a delivery one a session, run and
/// turn.
type Name = (Cargo, String, Option<String>, Option<u64>);

/// What one event says of it.
struct Step {
    state: Passage,
    moment: Moment,
    attempt_id: Option<String>,
    sink: Option<String>,
    reason: Option<String>,
    turn_seq: Option<u64>,
}

/// All announces and deliveries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outbox(BTreeMap<Name, Outgoing>);

impl Outbox {
    /// Whether an event of this type says something to it.
    #[must_use]
    pub fn folds(kind: &str) -> bool {
        kind.starts_with("announce.") || kind.starts_with("delivery.")
    }

    /// All, in the order of their first steps.
    #[must_use]
    pub fn in_order(&self) -> Vec<&Outgoing> {
        let mut all: Vec<&Outgoing> = self.0.values().collect();
        all.sort_by_key(|outgoing| outgoing.began());
        all
    }

    /// One of them: an announce by session and run, a delivery by session, run and turn.
    #[must_use]
    pub fn get(
        &self,
        cargo: Cargo,
        key: &str,
        run_id: Option<&str>,
        turn_seq: Option<u64>,
    ) -> Option<&Outgoing> {
        self.0.get(&(cargo, key.to_owned(), run_id.map(str::to_owned), turn_seq))
    }

    /// What leaves a session.
    pub fn of_session<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Outgoing> {
        Cargo::ALL.iter().flat_map(move |cargo| {
            let from = (*cargo, key.to_owned(), None, None);
            self.0
                .range(from..)
                .map(|(_, outgoing)| outgoing)
                .take_while(move |outgoing| outgoing.cargo == *cargo && outgoing.session_key == key)
        })
    }

    fn announce(&mut self, stream: &str, event: Announce, state: Passage, moment: Moment) {
        let name = (Cargo::Announce, stream.to_owned(), Some(event.run_id), None);
        let Announce { attempt_id, sink, reason, turn_seq, .. } = event;
        let step = Step { state, moment, attempt_id, sink, reason, turn_seq };
        self.change(name, Some(event.child_key), step);
    }

    fn delivery(&mut self, stream: &str, event: Delivery, state: Passage, moment: Moment) {
        let Delivery { run_id, turn_seq, attempt_id, sink, reason, .. } = event;
        let name = (Cargo::Delivery, stream.to_owned(), run_id, turn_seq);
        self.change(name, None, Step { state, moment, attempt_id, sink, reason, turn_seq });
    }

    fn change(&mut self, name: Name, child_key: Option<String>, step: Step) {
        let outgoing = self.0.entry(name).or_insert_with_key(|(cargo, key, run, _)| Outgoing {
            cargo: *cargo,
            session_key: key.clone(),
            run_id: run.clone(),
            child_key,
            turn_seq: None,
            state: Passage::Requested,
            requested: None,
            attempts: Vec::new(),
            ended: None,
            sink: None,
            reason: None,
            later_ends: 0,
        });
        outgoing.take(step);
    }
}

impl Outgoing {
    /// The first that is known of it.
    #[must_use]
    pub fn began(&self) -> Option<Moment> {
        let attempt = self.attempts.first().map(|attempt| attempt.moment);
        [self.requested, attempt, self.ended].into_iter().flatten().min()
    }

    fn take(&mut self, step: Step) {
        let Step { state, moment, attempt_id, sink, reason, turn_seq } = step;
        if self.ended.is_some() {
            self.later_ends += u64::from(!state.is_open());
            return;
        }
        self.turn_seq = turn_seq.or(self.turn_seq);
        self.state = match (self.state, state) {
            // What was requested once and tried is not as if it had not been tried.
            (now, Passage::Requested) => now,
            (_, next) => next,
        };
        match state {
            Passage::Requested => {
                self.requested.get_or_insert(moment);
            }
            Passage::Attempted => {
                self.attempts.push(Attempt {
                    moment,
                    attempt_id,
                    sink: sink.clone(),
                    reason: None,
                });
            }
            Passage::Deferred => self.failed(attempt_id.as_deref(), reason),
            _ => {
                self.ended = Some(moment);
                self.failed(attempt_id.as_deref(), reason);
            }
        }
        self.sink = sink.or(self.sink.take());
    }
}

impl Outgoing {
    /// Keeps why it did not arrive: of the whole the last reason counts, of each try its own.
    fn failed(&mut self, attempt_id: Option<&str>, reason: Option<String>) {
        let mut tries = self.attempts.iter_mut().rev();
        if let Some(id) = attempt_id
            && let Some(attempt) = tries.find(|one| one.attempt_id.as_deref() == Some(id))
        {
            attempt.reason.clone_from(&reason);
        }
        self.reason = reason;
    }
}

impl Projection for Outbox {
    fn apply(&mut self, fields: &Fields<'_>) {
        if !Self::folds(fields.kind) {
            return;
        }
        let (stream, moment) = (&*fields.stream, Moment::of(fields));
        let Some(event) = Event::told_by(fields) else { return };
        match event {
            Event::AnnounceRequested(e) => self.announce(stream, e, Passage::Requested, moment),
            Event::AnnounceAttempted(e) => self.announce(stream, e, Passage::Attempted, moment),
            Event::AnnounceDeferred(e) => self.announce(stream, e, Passage::Deferred, moment),
            Event::AnnounceDelivered(e) => self.announce(stream, e, Passage::Delivered, moment),
            Event::AnnounceSuppressed(e) => self.announce(stream, e, Passage::Suppressed, moment),
            Event::AnnounceFailed(e) => self.announce(stream, e, Passage::Failed, moment),
            Event::AnnounceUnknown(e) => self.announce(stream, e, Passage::Unknown, moment),
            Event::DeliveryRequested(e) => self.delivery(stream, e, Passage::Requested, moment),
            Event::DeliveryAttempted(e) => self.delivery(stream, e, Passage::Attempted, moment),
            Event::DeliveryDeferred(e) => self.delivery(stream, e, Passage::Deferred, moment),
            Event::DeliveryDelivered(e) => self.delivery(stream, e, Passage::Delivered, moment),
            Event::DeliverySuppressed(e) => self.delivery(stream, e, Passage::Suppressed, moment),
            Event::DeliveryFailed(e) => self.delivery(stream, e, Passage::Failed, moment),
            Event::DeliveryUnknown(e) => self.delivery(stream, e, Passage::Unknown, moment),
            Event::DeliveryExpired(e) => self.delivery(stream, e, Passage::Expired, moment),
            _ => {}
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::Folded;
    use crate::session::scene::Scene;
    use crate::store::View;

    const PARENT: &str = "agent:main:main";

    fn outbox(scene: &Scene) -> Outbox {
        Folded::<Outbox>::of(&scene.store, View::Durable).unwrap().state().clone()
    }

    fn announce(scene: &Scene, step: &str, run: &str, more: &str) {
        let data = format!("{{'runId':'{run}','childKey':'agent:main:subagent:1'{more}}}");
        scene.event(PARENT, &format!("announce.{step}"), &data);
    }

    /// Goal: each announce has its attempts and one end, and what comes after the end changes nothing. Method: one that
    /// is tried twice, fails and arrives, is said to fail afterwards and is tried once more; one that is suppressed; one open.
    #[test]
    fn announces() {
        let scene = Scene::new();
        announce(&scene, "requested", "r1", "");
        announce(&scene, "attempted", "r1", ",'attemptId':'a1','sink':'exec'");
        announce(&scene, "deferred", "r1", ",'attemptId':'a1','reason':'exit: 3'");
        announce(&scene, "attempted", "r1", ",'attemptId':'a2'");
        announce(&scene, "delivered", "r1", ",'attemptId':'a2','turnSeq':9");
        announce(&scene, "failed", "r1", ",'reason':'busy'");
        announce(&scene, "attempted", "r1", ",'attemptId':'a3'");
        announce(&scene, "requested", "r2", "");
        announce(&scene, "suppressed", "r2", ",'reason':'policy'");
        announce(&scene, "requested", "r3", "");
        let outbox = outbox(&scene);
        let told: Vec<_> = outbox
            .of_session(PARENT)
            .map(|o| {
                (o.state, o.attempts.len(), o.reason.as_deref(), o.later_ends, o.state.is_open())
            })
            .collect();
        assert_eq!(
            told,
            [
                (Passage::Delivered, 2, None, 1, false),
                (Passage::Suppressed, 0, Some("policy"), 0, false),
                (Passage::Requested, 0, None, 0, true),
            ]
        );
        let reasons = |run: &str| -> Vec<Option<String>> {
            let outgoing = outbox.get(Cargo::Announce, PARENT, Some(run), None).unwrap();
            outgoing.attempts.iter().map(|attempt| attempt.reason.clone()).collect()
        };
        assert_eq!(reasons("r1"), [Some("exit: 3".to_owned()), None]);
        let first = outbox.in_order()[0];
        assert_eq!((first.sink.as_deref(), first.turn_seq), (Some("exec"), Some(9)));
        assert_eq!((first.requested.unwrap().seq + 4, 9), (first.ended.unwrap().seq, 9));
    }

    /// Goal: deliveries are told apart by session, run and turn, and one of which only the end is left is there. Method:
    /// two turns of one run, and an end without a beginning in another session.
    #[test]
    fn deliveries() {
        let scene = Scene::new();
        for turn in [3, 4] {
            let data = format!("{{'runId':'r1','turnSeq':{turn}}}");
            scene.event("telegram:1", "delivery.requested", &data);
        }
        scene.event("telegram:1", "delivery.delivered", "{'runId':'r1','turnSeq':4}").event(
            "telegram:2",
            "delivery.expired",
            "{'runId':'r1','turnSeq':4,'reason':'old'}",
        );
        let outbox = outbox(&scene);
        let states = |key: &str| outbox.of_session(key).map(|o| o.state).collect::<Vec<_>>();
        assert_eq!(states("telegram:1"), [Passage::Requested, Passage::Delivered]);
        assert_eq!(states("telegram:2"), [Passage::Expired]);
        assert!(states("telegram:").is_empty());
        assert_eq!(outbox.in_order()[2].requested, None);
    }
}
