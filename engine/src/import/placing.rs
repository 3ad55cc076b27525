//! Where sessions go in a store that holds something already. A decision that was made stands: what was imported under a
//! key goes on there, whatever the source says by now. A key that the store uses for sessions of its own is left alone,
//! and parts are only ever added behind those that a session has.

use std::collections::BTreeMap;

use super::known::{Known, Stream};
use super::plan::{PartPlan, SessionPlan, Twin, own_key};
use crate::error::Result;
use crate::id::EventId;
use crate::session::event::{ArchiveReason, ImportedRecord, import_id};
use crate::session::key::SessionKey;

/// A session and the key that it has in the store.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) plan: SessionPlan,
    pub(crate) key: SessionKey,
    /// Why that is not the key of the plan, where it is decided now.
    pub(crate) moved: Option<String>,
}

/// The id of the event that opens a part.
pub(crate) fn opened_id(program: &str, scope: &str, session_id: &str) -> EventId {
    import_id(program, scope, ImportedRecord::Id(session_id), "")
}

/// The scope of a part's records in a session that has the transcript of another one.
pub(crate) fn twin_scope(part: &PartPlan, key: &SessionKey) -> String {
    format!("{}@{key}", part.scope)
}

/// Gives every session its key. Parts that cannot go under the key of their plan become sessions of their own.
pub(crate) fn place(plans: Vec<SessionPlan>, known: &Known, program: &str) -> Result<Vec<Placed>> {
    let mut placed = Vec::with_capacity(plans.len());
    for plan in plans {
        place_one(plan, known, program, &mut placed)?;
    }
    Ok(placed)
}

fn place_one(
    mut plan: SessionPlan,
    known: &Known,
    program: &str,
    placed: &mut Vec<Placed>,
) -> Result<()> {
    let key = plan.key.clone();
    let mut elsewhere: BTreeMap<SessionKey, Vec<PartPlan>> = BTreeMap::new();
    let mut here = Vec::new();
    for mut part in std::mem::take(&mut plan.parts) {
        match home(&mut part, &key, known, program) {
            Some(other) => elsewhere.entry(other).or_default().push(part),
            None => here.push(part),
        }
    }
    let last_elsewhere = elsewhere.keys().next_back().cloned().filter(|_| here.is_empty());
    for (other, parts) in elsewhere {
        let mut moved = of_parts(&plan, &other, parts);
        moved.archived = plan.archived.filter(|(reason, _)| {
            *reason == ArchiveReason::Cleanup && is_last(known, &other, &moved.parts)
        });
        if last_elsewhere.as_ref() == Some(&other) {
            // Other sessions still speak of it by the key of the plan.
            moved.key = key.clone();
        }
        placed.push(Placed { plan: moved, key: other, moved: None });
    }
    let stream = known.stream(key.stream());
    let is_there = |part: &PartPlan| {
        stream.is_some_and(|s| s.parts.iter().any(|(id, _)| *id == part.session_id))
    };
    let last_there = here.iter().rposition(is_there);
    let mut rest = Vec::new();
    for (at, part) in here.into_iter().enumerate() {
        if last_there.is_some_and(|last| at < last) && !is_there(&part) {
            let why = format!(
                "{key} has later parts already; the part {} has a key of its own",
                part.session_id
            );
            placed.push(own(&plan, vec![part], program, why)?);
        } else {
            rest.push(part);
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    match stream.filter(|_| last_there.is_none()).and_then(|s| taken(s, &rest, program)) {
        Some(why) => {
            let why = format!("{key} {why}");
            let wanted = plan.key.clone();
            let mut own = own(&plan, rest, program, why)?;
            // Other sessions still speak of it by the key of the plan.
            own.plan.key = wanted;
            own.plan.index = plan.index;
            placed.push(own);
        }
        None => {
            plan.parts = rest;
            placed.push(Placed { plan, key, moved: None });
        }
    }
    Ok(())
}

/// The key that a part was imported under, when that is not this one.
fn home(part: &mut PartPlan, key: &SessionKey, known: &Known, program: &str) -> Option<SessionKey> {
    let first = known.home(opened_id(program, &part.scope, &part.session_id));
    let second = known.home(opened_id(program, &twin_scope(part, key), &part.session_id));
    if second.is_some() {
        part.twin = Twin::Second;
        return None;
    }
    match first {
        Some(stream) if stream == key.stream() => {
            part.twin = Twin::First;
            None
        }
        Some(stream) if part.twin == Twin::First => SessionKey::of_stream(stream),
        _ => None,
    }
}

/// Whether one of the parts is the last one of a session in the store.
fn is_last(known: &Known, key: &SessionKey, parts: &[PartPlan]) -> bool {
    let last = known.stream(key.stream()).and_then(|stream| stream.parts.last());
    last.is_some_and(|(id, _)| parts.iter().any(|part| part.session_id == *id))
}

/// Why new parts cannot go into a stream that has none of them; `None` when they can.
fn taken(stream: &Stream, parts: &[PartPlan], program: &str) -> Option<&'static str> {
    if stream.program.as_deref() != Some(program) {
        return Some("is a session of another program; the imported one has a key of its own");
    }
    let last = stream.parts.last().map(|(_, at)| *at);
    let first = parts.iter().find_map(|part| part.began);
    (first < last).then_some("has later parts already; the imported session has a key of its own")
}

fn own(plan: &SessionPlan, parts: Vec<PartPlan>, program: &str, why: String) -> Result<Placed> {
    let id = parts.last().map(|part| part.session_id.as_str()).unwrap_or_default();
    let key = own_key(program, id)?;
    Ok(Placed { plan: of_parts(plan, &key, parts), key, moved: Some(why) })
}

/// The plan for some parts of a session under another key. What the index says of the session is not said of them.
fn of_parts(plan: &SessionPlan, key: &SessionKey, parts: Vec<PartPlan>) -> SessionPlan {
    let ended = parts.last().and_then(|part| part.ended);
    let archived = ended.map(|at| (ArchiveReason::Ended, at));
    SessionPlan { key: key.clone(), parts, index: None, archived, ..plan.clone() }
}
