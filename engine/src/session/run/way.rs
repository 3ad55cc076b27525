//! Whether anything may go out of a session, and where: asked when a run ends, and again with each try.

use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::session::event::{Delivery, Event};
use crate::session::index::Row;
use crate::session::policy::{Outbound, SendAction};
use crate::session::work::Address;

use super::end::Said;
use super::rules::Rules;
use super::stage::{Batch, Stage};

/// Whether anything may go out of a session, and where.
pub(super) enum Way {
    /// It may.
    Open(Address),
    /// It may not, for this reason.
    Denied(String, Address),
    /// There is no channel.
    NoRoute,
}

/// Whether anything may go out of a session, and where.
pub(super) fn way(stage: &Stage<'_>, rules: &Rules, key: &StreamName) -> Way {
    let Some(row) = stage.sessions.row(key) else { return Way::NoRoute };
    let Some(address) = address(row) else { return Way::NoRoute };
    match denied(row, rules, &address) {
        Some(reason) => Way::Denied(reason, address),
        None => Way::Open(address),
    }
}

/// Where what a session says goes; `None` for one that has no channel.
#[must_use]
pub fn address(row: &Row) -> Option<Address> {
    let internal = row.channel == "internal";
    let known = row.delivery_context.clone().map(Address::from);
    let last = || Address {
        channel: row.last_channel.clone(),
        to: row.last_to.clone(),
        ..Address::default()
    };
    let address = known.unwrap_or_else(last);
    (!internal && address.channel.is_some()).then_some(address)
}

pub(super) fn denied(row: &Row, rules: &Rules, address: &Address) -> Option<String> {
    let own = row.send_policy.as_deref().and_then(SendAction::from_word);
    let channel = address.channel.as_deref().unwrap_or(&row.channel);
    let of = Outbound { key: row.key.as_str(), channel, chat_type: row.chat_type, own };
    let verdict = rules.policy.decide(of);
    (verdict.action == SendAction::Deny).then(|| format!("policy ({})", verdict.by))
}

/// What a delivery would carry.
#[derive(Clone, Copy)]
pub(super) enum Carried<'a> {
    /// A reply, at this position.
    Reply {
        /// Its turn.
        seq: Option<u64>,
        /// What it says.
        said: Said<'a>,
    },
    /// That the run failed.
    Failure,
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// Adds the delivery, or why there is none.
pub(super) fn deliver(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    key: &StreamName,
    (run_id, carried, cause): (&str, Carried<'_>, Option<EventId>),
) -> Result<()> {
    let (turn_seq, withheld, reason) = match carried {
        Carried::Reply { seq, said } => (seq, said.reason(), "reply"),
        Carried::Failure => (None, None, "failure"),
        Carried::Nothing(reason) => (None, Some(reason), reason),
    };
    let delivery = |reason: String, target: Option<Address>| Delivery {
        at: None,
        run_id: Some(run_id.to_owned()),
        turn_seq,
        attempt_id: None,
        sink: None,
        reason: Some(reason),
        target: target.map(Into::into),
    };
    let event = match (way(stage, rules, key), withheld) {
        (Way::Denied(reason, target), _) => {
            Event::DeliverySuppressed(delivery(reason, Some(target)))
        }
        (Way::Open(target), Some(why)) => {
            Event::DeliverySuppressed(delivery(why.to_owned(), Some(target)))
        }
        (Way::NoRoute, Some(why)) => Event::DeliverySuppressed(delivery(why.to_owned(), None)),
        (Way::NoRoute, None) => Event::DeliveryFailed(delivery("no_route".to_owned(), None)),
        (Way::Open(target), None) => {
            Event::DeliveryRequested(delivery(reason.to_owned(), Some(target)))
        }
    };
    batch.add(key.as_str(), &event, cause)?;
    Ok(())
}
