//! What leaves a session for people: whether it may, where it goes, each try, and its one end. A try is in the log before
//! anything is sent; what may have gone out is never sent again by itself.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::session::event::{
    Announce, Delivery, Event, Ingress, Json, Provenance, Role, RunKind, RunRequested, Turn,
    run_stream,
};
use crate::session::index::Row;
use crate::session::work::{Address, Outgoing, Waybill, Work};

use super::rules::{LOG, Rules};
use super::stage::{Batch, Stage};
use super::way::denied;

/// How long after a try that failed the next one comes. The first comes at once.
pub const TRY_AGAIN: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(25),
    Duration::from_secs(120),
    Duration::from_secs(600),
];

/// What is pending for longer is never sent.
pub const EXPIRES: Duration = Duration::from_secs(24 * 60 * 60);

impl Work {
    /// When something on its way is to be tried next; `None` while a try is going on or the child words it.
    #[must_use]
    pub fn next_try(&self, outgoing: &Outgoing) -> Option<Timestamp> {
        if outgoing.trying.is_some() || outgoing.step.as_ref().is_some_and(|step| !step.ended) {
            return None;
        }
        let Some(failed) = outgoing.deferred_at else { return Some(outgoing.at) };
        let waits = usize::try_from(outgoing.tries).unwrap_or(usize::MAX).saturating_sub(1);
        Some(failed.plus(TRY_AGAIN.get(waits).copied().unwrap_or(EXPIRES)))
    }

    /// Whether something on its way has been there for so long that it is never sent.
    #[must_use]
    pub fn is_too_old(&self, outgoing: &Outgoing, now: Timestamp) -> bool {
        outgoing.at.plus(EXPIRES) <= now
    }

    /// Whether something on its way is to be tried now. A clock that was set back makes nothing wait that would not have
    /// to: what lies in the future then has happened.
    #[must_use]
    pub fn is_due(&self, outgoing: &Outgoing, now: Timestamp) -> bool {
        let last = outgoing.deferred_at.unwrap_or(outgoing.at);
        self.next_try(outgoing).is_some_and(|at| at <= now || now < last)
    }
}

/// What an announce says, put together beforehand from what stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wording {
    /// The text.
    pub text: String,
    /// Why nothing goes to a channel, although the session is told.
    pub silent: Option<&'static str>,
    /// Why nobody is told.
    pub skipped: Option<&'static str>,
    /// The chain of the child's run, and how many requests lie before it.
    pub chain: Option<(String, u32)>,
}

/// What became of the wish to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It is to be sent now, under this attempt.
    Send {
        /// The attempt.
        attempt_id: String,
        /// The sink that it goes through.
        sink: String,
        /// Where it goes.
        target: Address,
        /// The position of the turn that carries it, if one does.
        turn_seq: Option<u64>,
    },
    /// It came to its end without being sent.
    Settled,
    /// It is not time: nothing was appended.
    NotNow,
}

/// Begins a try of something on its way out. The first try of an announce tells the requester's session.
///
/// # Errors
/// `InvalidInput` for content that no event can hold.
pub fn attempt(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    (waybill, wording): (&Waybill, &Wording),
) -> Result<Trial> {
    let Some(outgoing) = stage.work.on_its_way(waybill) else { return Ok(Trial::NotNow) };
    if !stage.work.is_due(outgoing, stage.now) {
        return Ok(Trial::NotNow);
    }
    batch.flows(outgoing.flow.as_ref().and_then(|flow| flow.parse().ok()));
    let attempt = Attempt { stage, rules, waybill, outgoing };
    if stage.work.is_too_old(outgoing, stage.now) {
        return attempt.ends(batch, Ending::Expired(attempt.held_up_by()), None);
    }
    match waybill {
        Waybill::Announce { requester, .. } if outgoing.turn_seq.is_none() => {
            attempt.announce(batch, requester, wording)
        }
        _ => attempt.send(batch, outgoing.turn_seq),
    }
}

/// Ends what is on its way out and can never be sent. Nothing is appended while a try is going on: its end says what
/// became of it.
///
/// # Errors
/// `InvalidInput` for a reason that no event can hold.
pub fn give_up(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    (waybill, reason): (&Waybill, &str),
) -> Result<()> {
    let outgoing = stage.work.on_its_way(waybill).filter(|outgoing| outgoing.trying.is_none());
    let Some(outgoing) = outgoing else { return Ok(()) };
    batch.flows(outgoing.flow.as_ref().and_then(|flow| flow.parse().ok()));
    let attempt = Attempt { stage, rules, waybill, outgoing };
    attempt.ends(batch, Ending::Failed(reason.to_owned()), None).map(drop)
}

/// A try that is decided on.
struct Attempt<'a> {
    stage: &'a Stage<'a>,
    rules: &'a Rules,
    waybill: &'a Waybill,
    outgoing: &'a Outgoing,
}

/// How something on its way out comes to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    /// It arrived.
    Delivered,
    /// It is not sent, on purpose.
    Suppressed(String),
    /// It could not be sent.
    Failed(String),
    /// It is too old, for this reason.
    Expired(&'static str),
}

impl Attempt<'_> {
    /// Why it became too old: whoever was never at rest to be told refused it, all that time.
    fn held_up_by(&self) -> &'static str {
        match self.waybill {
            Waybill::Announce { requester, .. }
                if self.outgoing.turn_seq.is_none() && self.stage.work.is_busy(requester) =>
            {
                "requester_busy"
            }
            _ => "age",
        }
    }

    fn announce(&self, batch: &mut Batch<'_>, requester: &str, words: &Wording) -> Result<Trial> {
        if let Some(reason) = words.skipped {
            return self.ends(batch, Ending::Suppressed(reason.to_owned()), None);
        }
        if self.stage.work.is_busy(requester) {
            return Ok(Trial::NotNow);
        }
        let row = StreamName::new(requester).ok().and_then(|key| self.stage.sessions.row(&key));
        let Some(row) = row else {
            return self.ends(batch, Ending::Failed("no_session".to_owned()), None);
        };
        let turn = Turn {
            provenance: Some(Provenance {
                source_session_key: self.outgoing.child_key.clone(),
                source_channel: Some("internal".to_owned()),
                source_tool: Some("subagent_announce".to_owned()),
                sender: None,
                run_id: self.waybill.run_id().map(str::to_owned),
                round: None,
            }),
            ..Turn::new(
                row.session_id.clone(),
                Role::User,
                Ingress::InterSession,
                Json::of(&words.text)?,
            )
        };
        let told = batch.add(requester, &Event::Turn(turn), None)?;
        let may_work = self.rules.agents.contains_key(&row.agent_id)
            && !self.stage.sessions.is_archived(&row.key);
        if self.rules.announce_wakes && may_work {
            self.wake(batch, row, (told.id, told.seq), words)?;
        }
        if let Some(reason) = words.silent {
            return self.ends(batch, Ending::Suppressed(reason.to_owned()), Some(told.seq));
        }
        self.send(batch, Some(told.seq))
    }

    /// The requester works on what it was told.
    fn wake(
        &self,
        batch: &mut Batch<'_>,
        row: &Row,
        (turn, seq): (EventId, u64),
        words: &Wording,
    ) -> Result<()> {
        let run_id = batch.id(1).to_string();
        let chain = words.chain.clone();
        let (chain_id, hop) =
            chain.map_or_else(|| (run_id.clone(), 0), |(id, hop)| (id, hop.saturating_add(1)));
        let request = RunRequested {
            at: None,
            run_id: run_id.clone(),
            session_key: row.key.to_string(),
            session_id: row.session_id.clone(),
            kind: RunKind::Announce,
            agent_id: row.agent_id.clone(),
            requester_key: self.outgoing.child_key.clone(),
            requester_session_id: None,
            chain_id,
            hop,
            round: None,
            timeout_seconds: 0,
            deliver: true,
            idempotency_key: None,
            follows_run_id: self.waybill.run_id().map(str::to_owned),
            model: None,
            thinking: None,
            turn_seq: Some(seq),
            preamble: None,
            imported: None,
        };
        let stream = run_stream(&run_id)?;
        batch.add(stream.as_str(), &Event::RunRequested(request), Some(turn))?;
        Ok(())
    }

    /// The try itself, if anything may go out now.
    fn send(&self, batch: &mut Batch<'_>, turn_seq: Option<u64>) -> Result<Trial> {
        let target = &self.outgoing.target;
        let Some(channel) = target.channel.as_deref() else {
            return self.ends(batch, Ending::Failed("no_route".to_owned()), turn_seq);
        };
        let key = StreamName::new(self.waybill.stream())?;
        let row = self.stage.sessions.row(&key);
        if let Some(reason) = row.and_then(|row| denied(row, self.rules, target)) {
            return self.ends(batch, Ending::Suppressed(reason), turn_seq);
        }
        let sink = self.rules.sink(channel);
        if sink == LOG {
            // The log is the delivery where it was always to be, not where a sink has gone that was tried before.
            let ending = match self.outgoing.tries {
                0 => Ending::Delivered,
                _ => Ending::Failed("no_sink".to_owned()),
            };
            return self.ends(batch, ending, turn_seq);
        }
        let attempt_id = batch.id(0).to_string();
        let step = Step { attempt_id: Some(&attempt_id), sink: Some(sink), reason: None, turn_seq };
        self.step(batch, Mark::Attempted, step)?;
        let (sink, target) = (sink.to_owned(), target.clone());
        Ok(Trial::Send { attempt_id, sink, target, turn_seq })
    }

    fn ends(&self, batch: &mut Batch<'_>, ending: Ending, turn_seq: Option<u64>) -> Result<Trial> {
        let sink = (ending == Ending::Delivered).then_some(LOG);
        let turn_seq = turn_seq.or(self.outgoing.turn_seq);
        let (stage, reason) = Mark::of(ending);
        let step = Step { attempt_id: None, sink, reason: reason.as_deref(), turn_seq };
        self.step(batch, stage, step)?;
        Ok(Trial::Settled)
    }

    fn step(&self, batch: &mut Batch<'_>, stage: Mark, step: Step<'_>) -> Result<()> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let target = Some(self.outgoing.target.clone().into());
        let event = match self.waybill {
            Waybill::Announce { run_id, .. } => stage.announce(Announce {
                at: None,
                run_id: run_id.clone(),
                child_key: self.outgoing.child_key.clone().unwrap_or_default(),
                attempt_id: text(step.attempt_id),
                sink: text(step.sink),
                reason: text(step.reason),
                turn_seq: step.turn_seq,
                target,
                text: None,
            }),
            Waybill::Delivery { run_id, turn_seq, .. } => stage.delivery(Delivery {
                at: None,
                run_id: run_id.clone(),
                turn_seq: *turn_seq,
                attempt_id: text(step.attempt_id),
                sink: text(step.sink),
                reason: text(step.reason),
                target,
            }),
        };
        batch.add(self.waybill.stream(), &event, None)?;
        Ok(())
    }
}

/// What one step says beside which it is.
#[derive(Clone, Copy)]
struct Step<'a> {
    attempt_id: Option<&'a str>,
    sink: Option<&'a str>,
    reason: Option<&'a str>,
    turn_seq: Option<u64>,
}

/// Which step it is.
#[derive(Clone, Copy)]
enum Mark {
    Attempted,
    Deferred,
    Delivered,
    Suppressed,
    Failed,
    Unknown,
    Expired,
}

impl Mark {
    fn of(ending: Ending) -> (Self, Option<String>) {
        match ending {
            Ending::Delivered => (Self::Delivered, None),
            Ending::Suppressed(reason) => (Self::Suppressed, Some(reason)),
            Ending::Failed(reason) => (Self::Failed, Some(reason)),
            Ending::Expired(reason) => (Self::Expired, Some(reason.to_owned())),
        }
    }

    const fn announce(self, announce: Announce) -> Event {
        match self {
            Self::Attempted => Event::AnnounceAttempted(announce),
            Self::Deferred => Event::AnnounceDeferred(announce),
            Self::Delivered => Event::AnnounceDelivered(announce),
            Self::Suppressed => Event::AnnounceSuppressed(announce),
            Self::Failed | Self::Expired => Event::AnnounceFailed(announce),
            Self::Unknown => Event::AnnounceUnknown(announce),
        }
    }

    const fn delivery(self, delivery: Delivery) -> Event {
        match self {
            Self::Attempted => Event::DeliveryAttempted(delivery),
            Self::Deferred => Event::DeliveryDeferred(delivery),
            Self::Delivered => Event::DeliveryDelivered(delivery),
            Self::Suppressed => Event::DeliverySuppressed(delivery),
            Self::Failed => Event::DeliveryFailed(delivery),
            Self::Unknown => Event::DeliveryUnknown(delivery),
            Self::Expired => Event::DeliveryExpired(delivery),
        }
    }
}

/// What became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It arrived.
    Delivered,
    /// It did not arrive, and may the next time.
    Retry(String),
    /// It did not arrive and never will.
    Refused(String),
    /// Nobody knows whether it arrived.
    Unknown(String),
}

/// Ends a try. Nothing is appended when the attempt is not the one that is going on.
///
/// # Errors
/// `InvalidInput` for a reason that no event can hold.
pub fn tried(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    (waybill, attempt_id): (&Waybill, &str),
    tried: &Tried,
) -> Result<()> {
    let Some(outgoing) = stage.work.on_its_way(waybill) else { return Ok(()) };
    let Some(trying) = outgoing.trying.as_ref().filter(|t| t.attempt_id == attempt_id) else {
        return Ok(());
    };
    batch.flows(outgoing.flow.as_ref().and_then(|flow| flow.parse().ok()));
    let is_last = usize::try_from(outgoing.tries).is_ok_and(|tries| tries > TRY_AGAIN.len());
    let (step, reason) = match tried {
        Tried::Delivered => (Mark::Delivered, None),
        Tried::Retry(reason) if is_last => (Mark::Failed, Some(reason)),
        Tried::Retry(reason) => (Mark::Deferred, Some(reason)),
        Tried::Refused(reason) => (Mark::Failed, Some(reason)),
        Tried::Unknown(reason) => (Mark::Unknown, Some(reason)),
    };
    let said = Step {
        attempt_id: Some(attempt_id),
        sink: Some(&trying.sink),
        reason: reason.map(String::as_str),
        turn_seq: outgoing.turn_seq,
    };
    Attempt { stage, rules, waybill, outgoing }.step(batch, step, said)
}
