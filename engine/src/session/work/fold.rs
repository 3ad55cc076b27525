//! How the view of the work at hand takes an event.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::projection::{Digestible, Projection};
use crate::session::event::{
    Announce, Delivery, Event, RunClaimed, RunFinished, RunKind, RunRequested, RunStatus,
    SendAccepted, SpawnAccepted,
};
use crate::store::Damage;

use super::{Address, Claim, Exchange, Job, Outgoing, Terms, Try, Waybill, Work};

/// Where and when an event stands.
#[derive(Clone, Debug)]
struct Place {
    stream: String,
    seq: u64,
    at: Timestamp,
    id: String,
    flow: Option<String>,
}

/// What a stretch of the log says about work, in its order.
#[derive(Debug, Default)]
pub struct Digest(Vec<Step>);

#[derive(Debug)]
enum Step {
    Event(Box<(Place, Event)>),
    /// The batch of the event before it has ended.
    BatchEnds,
}

/// Whether nothing more follows in the same batch.
fn ends_batch(fields: &Fields<'_>) -> bool {
    fields.batch.is_none_or(|(index, count)| index == count)
}

/// The types that say something about it.
fn concerns(kind: &str) -> bool {
    match kind.split_once('.') {
        Some(("run", step)) => step != "output",
        Some(("announce" | "delivery" | "exchange", _)) => true,
        Some(("send" | "spawn", step)) => step == "accepted",
        _ => false,
    }
}

impl Projection for Digest {
    fn apply(&mut self, fields: &Fields<'_>) {
        self.event(fields);
        if ends_batch(fields) && matches!(self.0.last(), Some(Step::Event(_))) {
            self.0.push(Step::BatchEnds);
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

impl Digest {
    fn event(&mut self, fields: &Fields<'_>) {
        if !concerns(fields.kind) {
            return;
        }
        let Some(event) = Event::told_by(fields) else { return };
        let place = Place {
            stream: fields.stream.to_string(),
            seq: fields.seq.0,
            at: fields.time,
            id: fields.id.to_string(),
            flow: fields.flow.map(|flow| flow.to_string()),
        };
        self.0.push(Step::Event(Box::new((place, event))));
    }
}

impl Projection for Work {
    fn apply(&mut self, fields: &Fields<'_>) {
        let mut digest = Digest::default();
        digest.event(fields);
        self.take(digest);
        if ends_batch(fields) {
            self.settle();
        }
    }

    /// What is lost says nothing. A run whose end is lost stays at hand, and a worker finds that nobody is at it.
    fn gap(&mut self, _: &Damage) {}
}

impl Digestible for Work {
    type Digest = Digest;

    fn take(&mut self, digest: Digest) {
        for step in digest.0 {
            match step {
                Step::Event(told) => {
                    let (place, event) = *told;
                    self.event(place, event);
                }
                Step::BatchEnds => self.settle(),
            }
        }
    }
}

impl Work {
    fn event(&mut self, place: Place, event: Event) {
        match event {
            Event::RunRequested(e) => self.requested(place, e),
            Event::RunClaimed(e) => self.claimed(&place, e),
            Event::RunStarted(e) => self.change(&e.run_id, |run| run.started_at = Some(place.at)),
            Event::RunKillRequested(e) => self.change(&e.run_id, |run| {
                run.kill.get_or_insert((e.by, e.reason));
            }),
            Event::RunFinished(e) => self.finished(&e),
            Event::SendAccepted(e) if e.at.is_none() => self.sent(place, e),
            Event::SpawnAccepted(e) if e.at.is_none() => self.spawned(place, e),
            Event::ExchangeEnded(e) => drop(self.exchanges.remove(&e.run_id)),
            Event::AnnounceRequested(e) if e.at.is_none() => self.announce(place, e),
            Event::DeliveryRequested(e) if e.at.is_none() => self.delivery(place, e),
            other => self.step(&place, &other),
        }
    }

    /// A step of something on its way out.
    fn step(&mut self, place: &Place, event: &Event) {
        let (waybill, attempt_id, sink, turn_seq) = match event {
            Event::AnnounceAttempted(e)
            | Event::AnnounceDeferred(e)
            | Event::AnnounceDelivered(e)
            | Event::AnnounceSuppressed(e)
            | Event::AnnounceFailed(e)
            | Event::AnnounceUnknown(e) => {
                (announced(&place.stream, e), &e.attempt_id, &e.sink, e.turn_seq)
            }
            Event::DeliveryAttempted(e)
            | Event::DeliveryDeferred(e)
            | Event::DeliveryDelivered(e)
            | Event::DeliverySuppressed(e)
            | Event::DeliveryFailed(e)
            | Event::DeliveryUnknown(e)
            | Event::DeliveryExpired(e) => {
                (delivered(&place.stream, e), &e.attempt_id, &e.sink, e.turn_seq)
            }
            _ => return,
        };
        let Some(outgoing) = self.outgoing.get_mut(&waybill).map(Arc::make_mut) else { return };
        match event {
            Event::AnnounceAttempted(_) | Event::DeliveryAttempted(_) => {
                outgoing.tries += 1;
                outgoing.turn_seq = turn_seq.or(outgoing.turn_seq);
                outgoing.trying = Some(Try {
                    attempt_id: attempt_id.clone().unwrap_or_default(),
                    sink: sink.clone().unwrap_or_default(),
                    seq: place.seq,
                    at: place.at,
                });
            }
            Event::AnnounceDeferred(_) | Event::DeliveryDeferred(_) => {
                outgoing.trying = None;
                outgoing.deferred_at = Some(place.at);
            }
            _ => drop(self.outgoing.remove(&waybill)),
        }
    }

    fn requested(&mut self, place: Place, event: RunRequested) {
        if event.imported == Some(true) {
            return;
        }
        *self.chains.entry(event.chain_id.clone()).or_default() += 1;
        self.follows_up(&event);
        let run = Job {
            seq: place.seq,
            at: place.at,
            request: place.id,
            flow: place.flow,
            session_key: event.session_key,
            session_id: event.session_id,
            kind: event.kind,
            agent_id: event.agent_id,
            requester_key: event.requester_key,
            chain_id: event.chain_id,
            hop: event.hop,
            round: event.round,
            timeout_seconds: event.timeout_seconds,
            deliver: event.deliver,
            follows: event.follows_run_id,
            model: event.model,
            thinking: event.thinking,
            turn_seq: event.turn_seq,
            claim: None,
            claims: 0,
            started_at: None,
            kill: None,
            terms: None,
            run_id: event.run_id.clone(),
        };
        self.runs.entry(event.run_id).or_insert_with(|| Arc::new(run));
    }

    /// A round of an exchange, or the words of a child on its result. What a requester is woken for by an announce follows
    /// the same run up, in its own session.
    fn follows_up(&mut self, event: &RunRequested) {
        let Some(first) = &event.follows_run_id else { return };
        match (event.kind, self.exchanges.get_mut(first)) {
            (RunKind::Reply, Some(exchange)) => Arc::make_mut(exchange).rounds += 1,
            (RunKind::Announce, None) => {
                let step = super::Step { run_id: event.run_id.clone(), ended: false };
                self.announce_of(first, |outgoing| {
                    if outgoing.child_key.as_ref() == Some(&event.session_key) {
                        outgoing.step = Some(step);
                    }
                });
            }
            _ => {}
        }
    }

    fn announce_of(&mut self, run: &str, change: impl FnOnce(&mut Outgoing)) {
        let of_run =
            |name: &Waybill| matches!(name, Waybill::Announce { run_id, .. } if run_id == run);
        if let Some((_, outgoing)) = self.outgoing.iter_mut().find(|(name, _)| of_run(name)) {
            change(Arc::make_mut(outgoing));
        }
    }

    fn claimed(&mut self, place: &Place, event: RunClaimed) {
        let claim = Claim {
            seq: place.seq,
            worker: event.worker,
            pid: event.pid,
            process_start: event.process_start,
            boot_id: event.boot_id,
            host: event.host,
            lease_until: event.lease_until,
            token_sha256: event.token_sha256,
        };
        self.change(&event.run_id, |run| {
            run.claim = Some(claim);
            run.claims += 1;
        });
    }

    fn finished(&mut self, event: &RunFinished) {
        let Some(run) = self.runs.remove(&event.run_id) else { return };
        self.ended = true;
        let first = run.follows.as_deref().unwrap_or(&run.run_id);
        if run.kind == RunKind::Announce {
            self.announce_of(first, |outgoing| {
                if let Some(step) = outgoing.step.as_mut().filter(|s| s.run_id == run.run_id) {
                    step.ended = true;
                }
            });
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(first)
            && event.status == RunStatus::Ok
        {
            let exchange = Arc::make_mut(exchange);
            exchange.first_reply = exchange.first_reply.or(event.reply_seq);
            exchange.last_reply = event.reply_seq.or(exchange.last_reply);
        }
    }

    fn sent(&mut self, place: Place, event: SendAccepted) {
        let waits = event.timeout_seconds.filter(|seconds| *seconds > 0);
        let waits_until = waits.map(|s| place.at.plus(std::time::Duration::from_secs(s)));
        let terms = Terms {
            requester: place.stream.clone(),
            waits_until,
            spawn: None,
            origin: event.origin.map(Address::from),
        };
        self.agreed(&event.run_id, terms);
        let Some(target) = event.target_key else { return };
        let exchange = Exchange {
            run_id: event.run_id.clone(),
            flow: place.flow,
            requester: place.stream,
            target,
            turn_seq: event.turn_seq,
            rounds_max: event.reply_rounds_max.unwrap_or(0),
            rounds: 0,
            first_reply: None,
            last_reply: None,
        };
        self.exchanges.entry(event.run_id).or_insert_with(|| Arc::new(exchange));
    }

    fn spawned(&mut self, place: Place, event: SpawnAccepted) {
        let terms = Terms {
            requester: place.stream,
            waits_until: None,
            spawn: Some((event.mode, event.cleanup)),
            origin: event.origin.map(Address::from),
        };
        self.agreed(&event.run_id, terms);
    }

    /// The acceptance stands in one batch with the request, behind it.
    fn agreed(&mut self, run_id: &str, terms: Terms) {
        self.change(run_id, |run| run.terms = Some(terms));
    }

    /// A chain is over when it has no run at hand at the end of a batch: what follows from an end stands in its batch.
    fn settle(&mut self) {
        if std::mem::take(&mut self.ended) {
            let runs = &self.runs;
            self.chains.retain(|chain, _| runs.values().any(|run| run.chain_id == *chain));
        }
    }

    fn announce(&mut self, place: Place, event: Announce) {
        let waybill = announced(&place.stream, &event);
        let child_key = Some(event.child_key);
        self.on_its_way_from(place, waybill, child_key, (event.target.map(Address::from), None));
    }

    fn delivery(&mut self, place: Place, event: Delivery) {
        let waybill = delivered(&place.stream, &event);
        let carried = (event.target.map(Address::from), event.reason);
        self.on_its_way_from(place, waybill, None, carried);
    }

    fn on_its_way_from(
        &mut self,
        place: Place,
        waybill: Waybill,
        child_key: Option<String>,
        (target, reason): (Option<Address>, Option<String>),
    ) {
        let turn_seq = match &waybill {
            Waybill::Delivery { turn_seq, .. } => *turn_seq,
            Waybill::Announce { .. } => None,
        };
        let outgoing = Outgoing {
            seq: place.seq,
            at: place.at,
            flow: place.flow,
            child_key,
            target: target.unwrap_or_default(),
            reason,
            turn_seq,
            step: None,
            tries: 0,
            trying: None,
            deferred_at: None,
        };
        self.outgoing.entry(waybill).or_insert_with(|| Arc::new(outgoing));
    }

    fn change(&mut self, run_id: &str, change: impl FnOnce(&mut Job)) {
        if let Some(run) = self.runs.get_mut(run_id) {
            change(Arc::make_mut(run));
        }
    }
}

fn announced(stream: &str, event: &Announce) -> Waybill {
    Waybill::Announce { requester: stream.to_owned(), run_id: event.run_id.clone() }
}

fn delivered(stream: &str, event: &Delivery) -> Waybill {
    Waybill::Delivery {
        session: stream.to_owned(),
        run_id: event.run_id.clone(),
        turn_seq: event.turn_seq,
    }
}
