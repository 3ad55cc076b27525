//! The invariants of recovery, checked on what a disk holds against what callers were told.

use std::collections::BTreeMap;

use annals_engine::format::{self, control};
use annals_engine::id::{Crc, EventId, Seq, Version};
use annals_engine::store::NewEvent;
use sha2::{Digest, Sha256};

use super::found::{Found, FoundLine, path, segments, torn};
use super::told::Told;
use crate::disk::Kernel;

/// What is wrong, each with the name of the invariant that does not hold.
pub type Wrong = Vec<String>;

/// I1 and what goes with it: every acknowledged event is present, unchanged, at its positions, and every line that a
/// reader was shown as durable; nothing is there twice, nothing that was refused, and every stream counts from 1 without
/// a hole.
#[must_use]
pub fn told_is_there(told: &Told, found: &Found) -> Wrong {
    let mut wrong = told.wrong.clone();
    let mut by_id: BTreeMap<EventId, Vec<&FoundLine>> = BTreeMap::new();
    for line in &found.lines {
        by_id.entry(line.record.id).or_default().push(line);
    }
    let end = found.lines.last().map_or(Seq::ZERO, |line| line.record.seq);
    for (id, (seq, version, event)) in told.promised() {
        match by_id.get(id).and_then(|lines| lines.first()) {
            None => {
                wrong.push(format!("I1: {id} at {seq} is lost; the log ends at {end}"));
            }
            Some(line) if is_at(line, *seq, *version, event) => {}
            Some(line) => wrong.push(format!("I1: {id} was {seq} v{version}, is {line:?}")),
        }
    }
    for (id, lines) in by_id.iter().filter(|(_, lines)| lines.len() > 1) {
        let seqs: Vec<Seq> = lines.iter().map(|line| line.record.seq).collect();
        wrong.push(format!("the id {id} is in the log at {seqs:?}"));
    }
    for (n, batch) in told.sent.iter().enumerate() {
        let there = batch.iter().filter(|event| by_id.contains_key(&event.id)).count();
        if there != 0 && there != batch.len() {
            wrong
                .push(format!("I2: {there} of {} events of batch {n} are in the log", batch.len()));
        }
        if there != 0 && !told.may_be_there(n) {
            wrong.push(format!("batch {n} was refused and is in the log"));
        }
    }
    let lines: BTreeMap<Seq, Crc> =
        found.lines.iter().map(|line| (line.record.seq, line.record.crc)).collect();
    let gone = told.shown.iter().find(|(seq, crc)| lines.get(seq) != Some(crc));
    wrong.extend(gone.map(|(seq, _)| format!("I1: {seq} was shown as durable and is gone")));
    wrong.extend(versions_are_dense(found));
    wrong
}

/// I2: what is there now is the beginning of what was there before, and then only what the log says about itself.
#[must_use]
pub fn prefix_of(before: &Found, now: &Found) -> Wrong {
    let same = before.lines.iter().zip(&now.lines).take_while(|(a, b)| a == b).count();
    let new = now.lines[same..].iter().find(|line| !line.is_control());
    new.map(|line| format!("I2: {line:?} was not in the log before the recovery"))
        .into_iter()
        .collect()
}

/// I5: what the log says that recovery took away lies in `torn/` with that hash, and what lies there is named in the log.
#[must_use]
pub fn torn_is_named(now: &Kernel, found: &Found) -> Wrong {
    let mut wrong = Wrong::new();
    let torn: BTreeMap<String, Vec<u8>> = torn(now).into_iter().collect();
    let recovered = found.recovered();
    for said in &recovered {
        match torn.get(&said.torn) {
            Some(bytes) if bytes.len() as u64 == said.bytes && sha256(bytes) == said.sha256 => {}
            other => wrong.push(format!("I5: {said:?} but there is {:?}", other.map(Vec::len))),
        }
    }
    for (name, bytes) in &torn {
        let whole = name.rsplit('.').next().is_some_and(|sha| sha256(bytes).starts_with(sha));
        if whole && !recovered.iter().any(|said| said.torn == *name) {
            wrong.push(format!("I5: no log.recovered names {name}"));
        }
    }
    wrong
}

/// I5: the bytes of every segment are where they were, or recovery took them off its end and kept them.
#[must_use]
pub fn bytes_are_kept(before: &Kernel, now: &Kernel, found: &Found) -> Wrong {
    let mut wrong = Wrong::new();
    let torn: BTreeMap<String, Vec<u8>> = torn(now).into_iter().collect();
    let recovered = found.recovered();
    for segment in segments(before) {
        let was = before.bytes(&path(&segment)).unwrap_or_default();
        let is = now.bytes(&path(&segment)).unwrap_or_default();
        let same = was.iter().zip(is).take_while(|(a, b)| a == b).count();
        let kept = |said: &control::Recovered| {
            let offset = usize::try_from(said.offset).unwrap_or(usize::MAX);
            said.segment == segment
                && offset <= same
                && was.get(offset..).is_some_and(|rest| {
                    torn.get(&said.torn).is_some_and(|bytes| bytes.starts_with(rest))
                })
        };
        if same < was.len() && !recovered.iter().any(kept) {
            wrong.push(format!("I5: {segment} lost its bytes from {same} to {}", was.len()));
        }
    }
    wrong
}

/// I6 and the chain: the files hold whole lines of the log and nothing else.
#[must_use]
pub fn only_whole_lines(now: &Kernel, found: &Found) -> Wrong {
    let rest = found.rest.iter().map(|(segment, offset, bytes)| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        format!("I6: {segment} has {} bytes of no line at {offset}: {text}", bytes.len())
    });
    let mut wrong: Wrong = rest.collect();
    for segment in segments(now) {
        let first = found.lines.iter().find(|line| line.segment == segment);
        let named = format::segment_first(&segment);
        if first.is_some_and(|line| {
            Some(line.record.seq) != named || line.record.kind.as_str() != control::OPENED
        }) {
            wrong.push(format!("{segment} does not begin with its header"));
        }
    }
    for line in &found.lines {
        let text = line.record.to_line();
        if serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&text).is_err() {
            wrong.push(format!("I6: {}", String::from_utf8_lossy(&text)));
        }
    }
    let steps = found.lines.array_windows::<2>().filter(|[a, b]| b.record.time < a.record.time);
    wrong.extend(
        steps
            .filter(|[_, b]| b.record.kind.as_str() != control::CLOCK)
            .map(|[_, b]| format!("the time goes back at {}", b.record.seq)),
    );
    wrong
}

fn is_at(line: &FoundLine, seq: Seq, version: Version, event: &NewEvent) -> bool {
    let record = &line.record;
    (record.seq, record.version, record.id) == (seq, version, event.id)
        && (&record.stream, &record.kind, &record.data) == (&event.stream, &event.kind, &event.data)
        && (record.cause, record.flow) == (event.cause, event.flow)
}

fn versions_are_dense(found: &Found) -> Wrong {
    let mut wrong = Wrong::new();
    let mut versions = BTreeMap::new();
    for line in &found.lines {
        let before = versions.insert(&line.record.stream, line.record.version).unwrap_or_default();
        if line.record.version != before.next() {
            let (stream, seq) = (&line.record.stream, line.record.seq);
            wrong
                .push(format!("{stream}: version {} after {before} at {seq}", line.record.version));
        }
    }
    wrong
}

fn sha256(bytes: &[u8]) -> String {
    format::hex(&Sha256::digest(bytes))
}
