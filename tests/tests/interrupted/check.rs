//! What must hold of a log whose work has come to rest.

use std::collections::BTreeMap;

use annals_engine::projection::Projection;
use annals_engine::session::event::{Announce, Delivery, Event, RunKind, RunRequested};
use annals_engine::session::run::Limits;
use annals_engine::session::work::Work;
use annals_engine::store::Record;

/// What was found to be wrong.
pub(crate) type Wrong = Vec<String>;

/// The name of something on its way out: its sort, the stream, the run, the turn.
type Name = (char, String, String, Option<u64>);

#[derive(Default)]
struct Seen {
    limits: Option<Limits>,
    runs: BTreeMap<String, RunRequested>,
    /// The runs that have not ended, and whether each is claimed.
    open: BTreeMap<String, bool>,
    ends: BTreeMap<String, u32>,
    /// Sends and spawns that were accepted.
    sends: Vec<String>,
    spawns: Vec<String>,
    exchanges: BTreeMap<String, u32>,
    requested: BTreeMap<Name, u32>,
    attempts: Vec<String>,
    settled: BTreeMap<Name, Vec<String>>,
    wrong: Wrong,
}

/// Everything that must hold of a log at rest, with so many children at the most.
pub(crate) fn log(records: &[Record], limits: Limits) -> Wrong {
    let mut seen = Seen { limits: Some(limits), ..Seen::default() };
    for record in records {
        let before = seen.wrong.len();
        match Event::of(record) {
            Ok(event) => seen.takes(record, &event),
            Err(error) => seen.wrong.push(format!("{} cannot be read: {error}", record.kind)),
        }
        for wrong in &mut seen.wrong[before..] {
            *wrong = format!("at {}: {wrong}", record.seq);
        }
    }
    seen.ends_once();
    seen.leaves_with_a_reason();
    seen.wrong
}

impl Seen {
    fn takes(&mut self, record: &Record, event: &Event) {
        let stream = record.stream.to_string();
        let step = record.kind.as_str().split('.').nth(1).unwrap_or_default().to_owned();
        match event {
            Event::RunRequested(run) => {
                self.runs.insert(run.run_id.clone(), run.clone());
                self.open.insert(run.run_id.clone(), false);
                self.children();
            }
            Event::RunClaimed(claim) => self.claimed(&claim.run_id),
            Event::RunStarted(start) if self.open.get(&start.run_id) != Some(&true) => {
                self.wrong.push(format!("{} was started by nobody", start.run_id));
            }
            Event::RunFinished(end) => {
                *self.ends.entry(end.run_id.clone()).or_default() += 1;
                self.open.remove(&end.run_id);
            }
            Event::SendAccepted(send) => self.sends.push(send.run_id.clone()),
            Event::SpawnAccepted(spawn) => self.spawns.push(spawn.run_id.clone()),
            Event::SendRefused(refusal) | Event::SpawnRefused(refusal)
                if refusal.reason.is_empty() =>
            {
                self.wrong.push("a refusal without a reason".to_owned());
            }
            Event::ExchangeEnded(end) => {
                *self.exchanges.entry(end.run_id.clone()).or_default() += 1;
            }
            Event::AnnounceRequested(e)
            | Event::AnnounceAttempted(e)
            | Event::AnnounceDeferred(e)
            | Event::AnnounceDelivered(e)
            | Event::AnnounceSuppressed(e)
            | Event::AnnounceFailed(e)
            | Event::AnnounceUnknown(e) => {
                let Announce { run_id, attempt_id, reason, .. } = e;
                let name = ('a', stream, run_id.clone(), None);
                self.goes_out(name, &step, (attempt_id.as_ref(), reason.as_ref()));
            }
            Event::DeliveryRequested(e)
            | Event::DeliveryAttempted(e)
            | Event::DeliveryDeferred(e)
            | Event::DeliveryDelivered(e)
            | Event::DeliverySuppressed(e)
            | Event::DeliveryFailed(e)
            | Event::DeliveryUnknown(e)
            | Event::DeliveryExpired(e) => {
                let Delivery { run_id, turn_seq, attempt_id, reason, .. } = e;
                let name = ('d', stream, run_id.clone().unwrap_or_default(), *turn_seq);
                self.goes_out(name, &step, (attempt_id.as_ref(), reason.as_ref()));
            }
            _ => {}
        }
    }

    fn claimed(&mut self, run_id: &str) {
        let Some(run) = self.runs.get(run_id) else {
            return self.wrong.push(format!("{run_id} was claimed and never asked for"));
        };
        if !self.open.contains_key(run_id) {
            self.wrong.push(format!("{run_id} was claimed after its end"));
        }
        let beside = self.open.iter().find(|(other, claimed)| {
            **claimed && *other != run_id && self.runs[*other].session_key == run.session_key
        });
        if let Some((other, _)) = beside {
            self.wrong.push(format!("{run_id} was claimed beside {other}"));
        }
        self.open.insert(run_id.to_owned(), true);
    }

    fn children(&mut self) {
        let mut of: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for run in self.open.keys().map(|id| &self.runs[id]).filter(|r| r.kind == RunKind::Spawn) {
            *of.entry(run.requester_key.as_deref()).or_default() += 1;
        }
        let most = of.values().copied().max().unwrap_or(0);
        let all: usize = of.values().sum();
        if self.limits.is_some_and(|limits| most > limits.of_one || all > limits.of_all) {
            self.wrong.push(format!("{most} children of one, {all} of all"));
        }
    }

    fn goes_out(
        &mut self,
        name: Name,
        step: &str,
        (attempt, reason): (Option<&String>, Option<&String>),
    ) {
        match step {
            "requested" => *self.requested.entry(name).or_default() += 1,
            "attempted" => {
                if self.settled.contains_key(&name) {
                    self.wrong.push(format!("{name:?} was tried after its end"));
                }
                self.attempts.extend(attempt.cloned());
            }
            "deferred" => {}
            _ => {
                if step != "delivered" && reason.is_none() {
                    self.wrong.push(format!("{name:?} ended as {step} without a reason"));
                }
                self.settled.entry(name).or_default().push(step.to_owned());
            }
        }
    }

    /// What was accepted has one end.
    fn ends_once(&mut self) {
        let wrong = &mut self.wrong;
        for run in self.runs.keys() {
            let ends = self.ends.get(run).copied().unwrap_or(0);
            if ends != 1 {
                wrong.push(format!("the run {run} has {ends} ends"));
            }
        }
        for run in &self.sends {
            let ends = self.exchanges.get(run).copied().unwrap_or(0);
            if ends != 1 {
                wrong.push(format!("the exchange of {run} has {ends} ends"));
            }
        }
        for run in &self.spawns {
            let announces =
                self.requested.keys().filter(|(sort, _, id, _)| (*sort, id) == ('a', run));
            if announces.count() != 1 {
                wrong.push(format!("the child of {run} has not one announce"));
            }
        }
        for (name, count) in &self.requested {
            let ends = self.settled.get(name).map_or(0, Vec::len);
            if (*count, ends) != (1, 1) {
                wrong.push(format!("{name:?} was asked for {count} times and has {ends} ends"));
            }
        }
        for (name, ends) in &self.settled {
            if ends.len() > 1 {
                wrong.push(format!("{name:?} has the ends {ends:?}"));
            }
        }
    }

    /// What people wait for comes, or an event says why not.
    fn leaves_with_a_reason(&mut self) {
        let told =
            |run: &str| self.settled.keys().any(|(sort, _, id, _)| (*sort, &**id) == ('d', run));
        for run in self.runs.values() {
            let step = run.kind == RunKind::Announce && !run.deliver;
            if run.deliver && !step && !told(&run.run_id) {
                self.wrong.push(format!("nobody was told the end of {run:?}"));
            }
        }
        for first in &self.sends {
            let of_exchange = |run: &&RunRequested| {
                run.run_id == *first || run.follows_run_id.as_ref() == Some(first)
            };
            if !self.runs.values().filter(of_exchange).any(|run| told(&run.run_id)) {
                self.wrong.push(format!("nobody was told the end of the exchange of {first}"));
            }
        }
    }
}

/// The ids of the tries that were recorded.
pub(crate) fn attempts(records: &[Record]) -> Vec<String> {
    let mut seen = Seen::default();
    for record in records {
        if let Ok(event) = Event::of(record) {
            seen.takes(record, &event);
        }
    }
    seen.attempts
}

/// The view is the same from a snapshot, and has nothing left.
pub(crate) fn view(records: &[Record], cuts: &[usize]) -> Wrong {
    let mut wrong = Wrong::new();
    let take = |work: &mut Work, records: &[Record]| {
        records.iter().for_each(|record| work.apply(&record.fields()));
    };
    for cut in cuts {
        let (before, after) = records.split_at(*cut);
        let mut work = Work::default();
        take(&mut work, before);
        let saved = serde_json::to_string(&work).unwrap();
        let mut read: Work = serde_json::from_str(&saved).unwrap();
        if read != work {
            wrong.push(format!("after {cut} events a snapshot says something else"));
        }
        take(&mut read, after);
        if read != Work::default() {
            wrong.push(format!("from a snapshot after {cut} events there is left: {read:?}"));
        }
    }
    wrong
}
