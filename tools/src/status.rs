//! `session_status`: how a session is, what is at work in it, and what happened since an earlier look.

use std::collections::BTreeMap;

use annals_engine::id::StreamName;
use annals_engine::session::event::Event;
use annals_engine::session::index::Status;
use annals_engine::session::run::announce;
use annals_engine::store::{Cursor, EventStore, Filter, Item, NamePattern, Read, Record};
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::{Caller, Seat};
use crate::desk::Desk;
use crate::view::View;
use crate::waiting::state_of;
use crate::wire::runs::{ChangeRow, Gap, OpenRun, StatusArgs, StatusReply};

/// The most changes that one answer tells.
const CHANGES_MAX: usize = 200;

/// How a session is. The changes are those of its own stream and of the runs on it; when there are more than an answer
/// tells, the newest are told and the gap says how many are not.
///
/// # Errors
/// `NotFound` for a session that is not there or not seen; `InvalidInput` for a cursor that no answer gave;
/// `HistoryChanged` for one of another history; whatever reading meets.
pub fn session_status(
    caller: &Caller,
    view: &View<'_>,
    desk: &Desk<'_>,
    args: &StatusArgs,
) -> Result<StatusReply> {
    let sessions = view.sessions.state();
    let key = match (&args.session_key, &caller.seat) {
        (Some(name), _) => caller.find(sessions, name)?.key,
        (None, Seat::Session { key, .. }) => key.clone(),
        (None, Seat::Operator) => desk.operator.key.clone(),
    };
    let mut row = sessions.row_at(&key, &view.lens).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no session {:?}", key.as_str()))
            .field("sessionKey")
    })?;
    let work = desk.engine.work()?;
    let mut runs: Vec<_> = work.state().runs_on(key.as_str()).collect();
    runs.sort_by_key(|run| run.seq);
    let open_runs: Vec<OpenRun> = runs
        .into_iter()
        .map(|run| OpenRun {
            run_id: run.run_id.clone(),
            kind: run.kind.as_str(),
            state: state_of(run),
            requester_key: run.requester_key.clone(),
        })
        .collect();
    if row.status == Status::Idle && !open_runs.is_empty() {
        row.status = Status::Waiting;
    }
    let outgoing = work.state().outgoing();
    let announces = outgoing
        .iter()
        .filter(|(name, out)| out.child_key.is_some() && name.stream() == key.as_str());
    let pending_announces = announces.filter_map(|(name, _)| name.run_id().map(str::to_owned));
    let pending_announces = pending_announces.collect();
    let (changes, gap) = match args.changes_since.as_deref() {
        Some(cursor) => {
            let (changes, gap) = changes(view, &key, cursor.parse()?)?;
            (Some(changes), gap)
        }
        None => (None, None),
    };
    Ok(StatusReply {
        session: row,
        open_runs,
        pending_announces,
        changes,
        gap,
        cursor: view.sessions.cursor().map(|cursor| cursor.to_string()),
        visibility: caller.told(sessions),
        as_of: view.sessions.as_of().0,
    })
}

/// What happened to a session since a place in the log.
fn changes(
    view: &View<'_>,
    key: &StreamName,
    after: Cursor,
) -> Result<(Vec<ChangeRow>, Option<Gap>)> {
    let streams = vec![NamePattern::Exact(key.to_string()), NamePattern::Prefix("run:".to_owned())];
    let filter = Filter { streams, types: Vec::new() };
    let mut runs = Runs { store: view.store, key, seen: BTreeMap::new() };
    let (mut changes, mut left_out, mut lost) = (Vec::new(), 0, 0);
    for item in view.store.read(Read::after(Some(after)).filter(filter))? {
        let record = match item? {
            Item::Record(record) if record.seq > view.sessions.as_of() => break,
            Item::Record(record) => record,
            Item::Gap(damage) => {
                lost += damage.seqs.map_or(1, |(first, last)| last.0 - first.0 + 1);
                continue;
            }
        };
        if !runs.concern(&record)? {
            continue;
        }
        if changes.len() == CHANGES_MAX {
            changes.remove(0);
            left_out += 1;
        }
        changes.push(ChangeRow {
            seq: record.seq.0,
            kind: record.kind.to_string(),
            summary: summary(&record),
        });
    }
    let gap = (left_out > 0 || lost > 0).then_some(Gap { left_out, lost });
    Ok((changes, gap))
}

/// Which runs are on a session, as far as their events were met.
struct Runs<'a> {
    store: &'a dyn EventStore,
    key: &'a StreamName,
    seen: BTreeMap<String, bool>,
}

impl Runs<'_> {
    /// Whether an event is of the session, or of a run on it.
    fn concern(&mut self, record: &Record) -> Result<bool> {
        if record.stream == *self.key {
            return Ok(true);
        }
        if record.kind.as_str() == "run.output" {
            return Ok(false);
        }
        if let Some(own) = self.seen.get(record.stream.as_str()) {
            return Ok(*own);
        }
        let own = match Event::of(record) {
            Ok(Event::RunRequested(requested)) => requested.session_key == self.key.as_str(),
            // It was asked for before.
            _ => match record.stream.as_str().strip_prefix("run:") {
                Some(run) => announce::told(self.store, run)?
                    .requested
                    .is_some_and(|requested| requested.session_key == self.key.as_str()),
                None => false,
            },
        };
        self.seen.insert(record.stream.to_string(), own);
        Ok(own)
    }
}

/// What an event says, in a line.
fn summary(record: &Record) -> String {
    let text = match Event::of(record) {
        Ok(Event::Turn(turn)) => {
            let said = turn.content.as_ref().map(|content| content.plain_text());
            format!("{}: {}", turn.role, said.unwrap_or_default())
        }
        Ok(Event::RunRequested(e)) => format!("{} run {}", e.kind, e.run_id),
        Ok(Event::RunFinished(e)) => format!("run {} {}", e.run_id, e.status),
        Ok(Event::SendAccepted(e)) => format!("to {}", e.target_key.unwrap_or_default()),
        Ok(Event::SpawnAccepted(e)) => format!("child {}", e.target_key.unwrap_or_default()),
        Ok(Event::SendRefused(e) | Event::SpawnRefused(e) | Event::AccessDenied(e)) => {
            format!("{} {}: {}", e.verb, e.target, e.reason)
        }
        _ => record.stream.to_string(),
    };
    let line = text.lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(SUMMARY_MAX);
    if end < line.len() || text.lines().count() > 1 {
        return format!("{}…", line.get(..end).unwrap_or_default());
    }
    line.to_owned()
}

/// The most bytes of a summary.
const SUMMARY_MAX: usize = 160;
