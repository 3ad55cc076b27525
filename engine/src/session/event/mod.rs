//! The events of the domain: every type that the log knows, typed and closed. This is the persisted schema: it grows by
//! new types and by new optional fields, and what a name means never changes.
//!
//! In JSON the fields stand in the order of the structs. What projections fold comes first and what is bulky comes last,
//! so that a fold need not parse what it does not use. A payload of a schema version above 1 begins with `v`. Types and
//! versions that are not known are [`Event::Other`] and keep their payload; fields that are not known are passed over
//! here and stay in the record.
//!
//! `at` is the time of what happened elsewhere or earlier; the record's own time is when it was appended.

mod define;
mod exchange;
mod head;
mod identity;
mod import;
mod json;
mod lifecycle;
mod outbound;
mod run;
mod scan;
mod turn;
mod watch;

pub use exchange::{
    Attachment, Cleanup, ExchangeEnd, ExchangeEnded, Refusal, Sandbox, SendAccepted, SpawnAccepted,
    SpawnMode,
};
pub use head::{ProvenanceHead, Text, TurnHead, happened_at};
pub use identity::{
    IMPORT_STREAM, ImportedRecord, POLICY_STREAM, firing_id, idempotency_id, import_id, run_stream,
    watch_stream,
};
pub use import::{Import, ImportDamage};
pub use json::{Json, Members};
pub use lifecycle::{
    ArchiveReason, ChatType, Origin, PolicyChanged, ResetMode, ResetReason, ResetRule,
    SessionArchived, SessionKind, SessionOpened, SessionPatched, SessionReset, SessionResumed,
    SessionTrimmed, Setting,
};
pub use outbound::{Announce, Delivery};
pub use run::{
    OutputStream, RunClaimed, RunFinished, RunKillRequested, RunKind, RunOutput, RunRequested,
    RunStarted, RunStatus,
};
pub use turn::{Ingress, Provenance, Role, Source, Tokens, Turn, TurnBlocked};
pub use watch::{Change, WatchFired, WatchState, WatchedFile};

pub(crate) use define::words;

use crate::error::Result;
use crate::format::{Fields, Payload};
use crate::id::{EventId, EventType, StreamName};
use crate::store::{NewEvent, Record};

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($payload:ty) = $name:literal,)+) => {
        /// An event of the domain.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $variant($payload),)+
            /// A type, or a version of one, that is not known here: the log's own, an embedder's, or a later program's.
            Other(EventType, Payload),
        }

        impl Event {
            /// The name of every type known here.
            pub const TYPES: &'static [&'static str] = &[$($name,)+];

            /// The name of its type.
            #[must_use]
            pub fn type_name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Other(kind, _) => kind.as_str(),
                }
            }

            /// Its payload, as it stands in a line.
            ///
            /// # Errors
            /// `InvalidInput` when verbatim JSON inside it is none that a payload may hold.
            pub fn payload(&self) -> Result<Payload> {
                match self {
                    $(Self::$variant(payload) => Payload::of(payload),)+
                    Self::Other(_, payload) => Ok(payload.clone()),
                }
            }

            /// Reads the payload of a type.
            ///
            /// # Errors
            /// `InvalidInput` when the type is known and the payload is not of its shape.
            pub fn parse(kind: &EventType, payload: &Payload) -> Result<Self> {
                let known = !payload.as_str().starts_with(LATER_VERSION);
                match kind.as_str() {
                    $($name if known => payload.read().map(Self::$variant),)+
                    _ => Ok(Self::Other(kind.clone(), payload.clone())),
                }
            }
        }
    };
}

/// How a payload begins that has another schema version than 1.
const LATER_VERSION: &str = "{\"v\":";

events! {
    /// A key has its first part.
    SessionOpened(SessionOpened) = "session.opened",
    /// Fields of a row were set.
    SessionPatched(SessionPatched) = "session.patched",
    /// The next part began.
    SessionReset(SessionReset) = "session.reset",
    /// An earlier part is current again.
    SessionResumed(SessionResumed) = "session.resumed",
    /// It left the lists.
    SessionArchived(SessionArchived) = "session.archived",
    /// The window of a context moved.
    SessionTrimmed(SessionTrimmed) = "session.trimmed",
    /// Something was said.
    Turn(Turn) = "turn",
    /// A gate kept a turn out.
    TurnBlocked(TurnBlocked) = "turn.blocked",
    /// A setting has another value.
    PolicyChanged(PolicyChanged) = "policy.changed",
    /// Work is wanted.
    RunRequested(RunRequested) = "run.requested",
    /// One worker has it.
    RunClaimed(RunClaimed) = "run.claimed",
    /// The agent's process runs.
    RunStarted(RunStarted) = "run.started",
    /// The run said something.
    RunOutput(RunOutput) = "run.output",
    /// Somebody wants it to end.
    RunKillRequested(RunKillRequested) = "run.kill_requested",
    /// It ended.
    RunFinished(RunFinished) = "run.finished",
    /// A message goes to another session.
    SendAccepted(SendAccepted) = "send.accepted",
    /// A message does not go.
    SendRefused(Refusal) = "send.refused",
    /// A child works on a task.
    SpawnAccepted(SpawnAccepted) = "spawn.accepted",
    /// There is no child.
    SpawnRefused(Refusal) = "spawn.refused",
    /// A caller may not see it.
    AccessDenied(Refusal) = "access.denied",
    /// The rounds after a send are over.
    ExchangeEnded(ExchangeEnded) = "exchange.ended",
    /// A child's result is to be told.
    AnnounceRequested(Announce) = "announce.requested",
    /// It is being told.
    AnnounceAttempted(Announce) = "announce.attempted",
    /// This try did not arrive; another follows.
    AnnounceDeferred(Announce) = "announce.deferred",
    /// It was told.
    AnnounceDelivered(Announce) = "announce.delivered",
    /// It is not told, on purpose.
    AnnounceSuppressed(Announce) = "announce.suppressed",
    /// It could not be told.
    AnnounceFailed(Announce) = "announce.failed",
    /// Nobody knows whether it was told.
    AnnounceUnknown(Announce) = "announce.unknown",
    /// Something is to go to a channel.
    DeliveryRequested(Delivery) = "delivery.requested",
    /// It is being sent.
    DeliveryAttempted(Delivery) = "delivery.attempted",
    /// This try did not arrive; another follows.
    DeliveryDeferred(Delivery) = "delivery.deferred",
    /// It was sent.
    DeliveryDelivered(Delivery) = "delivery.delivered",
    /// It is not sent, on purpose.
    DeliverySuppressed(Delivery) = "delivery.suppressed",
    /// It could not be sent.
    DeliveryFailed(Delivery) = "delivery.failed",
    /// Nobody knows whether it was sent.
    DeliveryUnknown(Delivery) = "delivery.unknown",
    /// It is too old to be sent.
    DeliveryExpired(Delivery) = "delivery.expired",
    /// A settled change.
    WatchFired(WatchFired) = "watch.fired",
    /// All files of a rule were looked at.
    WatchRescanned(WatchState) = "watch.rescanned",
    /// A rule looks in a lesser way.
    WatchDegraded(WatchState) = "watch.degraded",
    /// A rule does not look any more.
    WatchStopped(WatchState) = "watch.stopped",
    /// An import began.
    ImportStarted(Import) = "import.started",
    /// An import ended.
    ImportFinished(Import) = "import.finished",
    /// Bytes that an import could not take as they are.
    ImportDamage(ImportDamage) = "import.damage",
}

/// What an event follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The event that directly caused it.
    pub cause: Option<EventId>,
    /// One id for everything that follows from one outside stimulus.
    pub flow: Option<EventId>,
}

impl Event {
    /// The event of a record.
    ///
    /// # Errors
    /// `InvalidInput` with the position when the type is known and the payload is not of its shape.
    pub fn of(record: &Record) -> Result<Self> {
        Self::parse(&record.kind, &record.data).map_err(|e| e.seq(record.seq))
    }

    /// The event of a line, for a fold; `None` when the type is known and the payload is not of its shape.
    #[must_use]
    pub fn told_by(fields: &Fields<'_>) -> Option<Self> {
        let kind = EventType::new(fields.kind).ok()?;
        Self::parse(&kind, &Payload::verified(fields.data)).ok()
    }

    /// The event as the store takes it.
    ///
    /// # Errors
    /// `InvalidInput` when verbatim JSON inside it is none that a payload may hold.
    pub fn to_new(&self, stream: StreamName, id: EventId, links: Links) -> Result<NewEvent> {
        Ok(NewEvent {
            id,
            stream,
            kind: EventType::new(self.type_name())?,
            cause: links.cause,
            flow: links.flow,
            data: self.payload()?,
        })
    }
}

#[cfg(test)]
mod tests;
