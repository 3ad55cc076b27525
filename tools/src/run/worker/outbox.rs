//! What goes out: announces and deliveries that are due, each as a task of its own, so that one that waits holds up no
//! other.

use std::sync::{Arc, Mutex, PoisonError};

use annals_engine::Result;
use annals_engine::id::StreamName;
use annals_engine::session::run::{
    Batch, Stage, Trial, Tried, Wording, announce, attempt, give_up, tried,
};
use annals_engine::session::silent::{Lane, Silence};
use annals_engine::session::work::{Outgoing, Waybill, Work};

use super::carrier::Parcel;
use super::shift::{Done, Shift};
use super::{Worker, blocking};

/// So many things are sent at a time: after an outage all that waited is due at once, and each may be a process.
const SENDS_MAX: usize = 16;

impl Shift<'_> {
    /// Nobody knows what became of tries that a worker before this one made and did not tell the end of, or a task of this
    /// shift.
    pub(super) async fn settle_tries_of_nobody(&self) -> Result<()> {
        let work = self.work_at_hand().await?;
        for (waybill, outgoing) in work.outgoing() {
            let Some(trying) = &outgoing.trying else { continue };
            if self.sending.contains(waybill) {
                continue;
            }
            let unknown = Tried::Unknown("unconfirmed".to_owned());
            self.worker.tried(waybill.clone(), trying.attempt_id.clone(), unknown).await?;
        }
        Ok(())
    }

    /// Begins to send what is due, as much as may be on its way. Of one session one thing at a time goes out, in the order in
    /// which it was asked for. Whether there was anything.
    pub(super) fn send_what_is_due(&mut self, work: &Arc<Work>) -> bool {
        let now = self.worker.engine.clock().now();
        let mut did = false;
        for (waybill, outgoing) in work.outgoing() {
            if self.sending.len() >= SENDS_MAX {
                break;
            }
            let is_due = work.is_due(outgoing, now);
            let waits = match waybill {
                Waybill::Announce { requester, .. } => {
                    outgoing.turn_seq.is_none()
                        && !work.is_too_old(outgoing, now)
                        && (work.is_busy(requester) || self.tells(requester))
                }
                Waybill::Delivery { session, .. } => self.delivers(session),
            };
            if !is_due || waits || !self.sending.insert(waybill.clone()) {
                continue;
            }
            did = true;
            let (worker, done) = (self.worker.clone(), self.done.clone());
            let (waybill, outgoing) = (waybill.clone(), Arc::clone(outgoing));
            self.tasks.spawn(async move {
                let sent = worker.send(&waybill, &outgoing).await;
                // The shift may be over.
                let _ = done.send(Done::Sending(waybill));
                sent
            });
        }
        did
    }

    /// Whether something of this session is being delivered.
    fn delivers(&self, of: &str) -> bool {
        let is_of = |waybill: &Waybill| matches!(waybill, Waybill::Delivery { session, .. } if session == of);
        self.sending.iter().any(is_of)
    }

    /// Whether an announce to this session is on its way already: the next one follows it, so that they come in the order
    /// of the ends.
    fn tells(&self, to: &str) -> bool {
        self.sending.iter().any(
            |waybill| matches!(waybill, Waybill::Announce { requester, .. } if requester == to),
        )
    }
}

impl Worker {
    async fn send(&self, waybill: &Waybill, outgoing: &Arc<Outgoing>) -> Result<()> {
        // What it says is read before a try is recorded: that it cannot be read says nothing of a sink.
        let (wording, text) = match self.words(waybill, outgoing).await {
            Err(error) if error.kind().is_about_one_thing() => {
                return self.give_up(waybill.clone(), "unreadable").await;
            }
            other => other?,
        };
        let Trial::Send { attempt_id, target, turn_seq, .. } =
            self.attempt(waybill, wording).await?
        else {
            return Ok(());
        };
        let parcel = Parcel {
            attempt_id: attempt_id.clone(),
            idempotency_key: key_of(waybill, outgoing),
            run_id: waybill.run_id().map(str::to_owned),
            session_key: waybill.stream().to_owned(),
            channel: target.channel.unwrap_or_default(),
            to: target.to,
            account_id: target.account_id,
            thread_id: target.thread_id,
            text,
            kind: kind_of(waybill, outgoing).to_owned(),
            turn_seq,
        };
        let became = self.carrier.carry(parcel).await;
        self.tried(waybill.clone(), attempt_id, became).await
    }

    /// Records that a try begins. One that nobody knew to be recorded, and that was, is this one: it was not made yet.
    async fn attempt(&self, waybill: &Waybill, wording: Wording) -> Result<Trial> {
        let keys = StreamName::new(waybill.stream()).into_iter().collect();
        let (rules, name) = (self.setup.rules.clone(), waybill.clone());
        let begun = Arc::new(Mutex::new(None::<Trial>));
        let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
            let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            let going_on = stage.work.on_its_way(&name).and_then(|out| out.trying.as_ref());
            if let (Some(trial @ Trial::Send { attempt_id, .. }), Some(going_on)) =
                (&*begun, going_on)
                && going_on.attempt_id == *attempt_id
            {
                return Ok(trial.clone());
            }
            let trial = attempt(stage, batch, &rules, (&name, &wording))?;
            *begun = Some(trial.clone());
            Ok(trial)
        };
        self.record(keys, rule).await
    }

    /// Ends what can never be sent.
    async fn give_up(&self, waybill: Waybill, reason: &'static str) -> Result<()> {
        let rules = self.setup.rules.clone();
        let keys = StreamName::new(waybill.stream()).into_iter().collect();
        let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
            give_up(stage, batch, &rules, (&waybill, reason))
        };
        self.record(keys, rule).await
    }

    pub(super) async fn tried(
        &self,
        waybill: Waybill,
        attempt_id: String,
        became: Tried,
    ) -> Result<()> {
        let rules = self.setup.rules.clone();
        let keys = StreamName::new(waybill.stream()).into_iter().collect();
        let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
            tried(stage, batch, &rules, (&waybill, &attempt_id), &became)
        };
        self.record(keys, rule).await
    }

    /// What goes out: for an announce that nobody was told yet its words; the turn without silent tokens; for a run that
    /// failed a notice.
    async fn words(
        &self,
        waybill: &Waybill,
        outgoing: &Arc<Outgoing>,
    ) -> Result<(Wording, String)> {
        let (engine, rules) = (self.engine.clone(), self.setup.rules.clone());
        let (waybill, outgoing) = (waybill.clone(), Arc::clone(outgoing));
        blocking(move || {
            let store = engine.store();
            let without_tokens = |said: &str| {
                Silence::of(said, &rules.silent, Lane::Foreground).outbound().to_owned()
            };
            if outgoing.turn_seq.is_some() {
                let said = announce::text_at(store, waybill.stream(), outgoing.turn_seq)?;
                return Ok((Wording::default(), without_tokens(&said)));
            }
            if let Waybill::Announce { run_id, .. } = &waybill {
                let wording = announce::wording(store, run_id, &outgoing, &rules.silent)?;
                let text = without_tokens(&wording.text);
                return Ok((wording, text));
            }
            let told = announce::told(store, waybill.run_id().unwrap_or_default())?;
            let Some(end) = told.finished else { return Ok((Wording::default(), String::new())) };
            let why = end.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            let text = format!("The run ended without an answer: {}{why}.", end.status);
            Ok((Wording::default(), text))
        })
        .await
    }
}

/// The key that goes with each try of one thing: who takes it can tell that it is the same.
fn key_of(waybill: &Waybill, outgoing: &Outgoing) -> String {
    match waybill {
        Waybill::Announce { run_id, .. } => {
            let child = outgoing.child_key.as_deref().unwrap_or_default();
            format!("announce:v1:{child}:{run_id}")
        }
        Waybill::Delivery { session, run_id, turn_seq } => {
            let run_id = run_id.as_deref().unwrap_or_default();
            let turn = turn_seq.map(|seq| seq.to_string()).unwrap_or_default();
            format!("delivery:v1:{session}:{run_id}:{turn}")
        }
    }
}

fn kind_of<'a>(waybill: &Waybill, outgoing: &'a Outgoing) -> &'a str {
    match waybill {
        Waybill::Announce { .. } => "announce",
        Waybill::Delivery { .. } => outgoing.reason.as_deref().unwrap_or("reply"),
    }
}
