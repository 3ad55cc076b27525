//! A child: found by its name, and told with its task and its last run.

use annals_engine::clock::Timestamp;
use annals_engine::id::Version;
use annals_engine::session::content;
use annals_engine::session::event::{Event, Role, RunKind};
use annals_engine::session::index::{Row, Sessions};
use annals_engine::session::key::{Parts, SessionKey};
use annals_engine::session::runs::{Run, Runs};
use annals_engine::store::{EventStore, Item};
use annals_tools::mask::Mask;
use annals_tools::{Caller, View};
use serde::Serialize;

use crate::commands::runs;
use crate::exit::{Exit, Failure};
use crate::output::text::one_line;

/// The shortest beginning of a name that is looked up, in characters.
const PREFIX_LEAST: usize = 4;

/// How many of several matches are named.
const NAMED_MAX: usize = 10;

/// A child as it is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Child {
    /// What its key ends with, and its parents tell it by.
    pub(super) id: String,
    pub(super) key: String,
    pub(super) session_id: String,
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    pub(super) agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) requester_key: Option<String>,
    /// Its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_id: Option<String>,
    pub(super) task: String,
    pub(super) archived: bool,
    /// In milliseconds since 1970.
    created_at: i64,
    pub(super) age_ms: u64,
}

impl Child {
    /// A child of a row, as of a moment.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn of(
        row: &Row,
        caller: &Caller,
        view: &View<'_>,
        runs: &Runs,
    ) -> Result<Self, Failure> {
        let sessions = view.sessions.state();
        let shown = sessions.row_at(&row.key, &view.lens);
        let status = shown.as_ref().unwrap_or(row).status;
        let age = view.lens.now.as_millis().saturating_sub(row.created_at.as_millis());
        Ok(Self {
            id: id_of(row).unwrap_or_default().to_owned(),
            key: row.key.to_string(),
            session_id: row.session_id.clone(),
            status: status.as_str(),
            label: row.label.clone(),
            agent_id: row.agent_id.clone(),
            requester_key: row.parent_key.clone(),
            run_id: last_run(runs, row.key.as_str()).map(|run| run.run_id.clone()),
            task: seen(&task(view.store, row)?, row.key.as_str(), caller, view),
            archived: sessions.is_archived(&row.key),
            created_at: row.created_at.as_millis(),
            age_ms: u64::try_from(age).unwrap_or(0),
        })
    }
}

/// What was said in a session, as a caller may read it.
pub(super) fn seen(text: &str, key: &str, caller: &Caller, view: &View<'_>) -> String {
    match caller.is_masked(key) {
        true => Mask::of(view.config).text(text).into_owned(),
        false => text.to_owned(),
    }
}

/// The last run of a child on something that it was told; a step in which it words an announce is none.
pub(super) fn last_run<'a>(runs: &'a Runs, key: &str) -> Option<&'a Run> {
    let on_it =
        |run: &&Run| run.session_key.as_deref() == Some(key) && run.kind != Some(RunKind::Announce);
    runs.in_order().into_iter().rfind(on_it)
}

/// All runs.
///
/// # Errors
/// Whatever reading meets.
pub(super) fn all_runs(store: &dyn EventStore) -> Result<Runs, Failure> {
    let (runs, _) = runs::read::<Runs>(store, &["run."])?;
    Ok(runs.state().clone())
}

/// What a child was given to do: the first that was said to it.
fn task(store: &dyn EventStore, row: &Row) -> Result<String, Failure> {
    for item in store.read_stream(&row.key, Version::ZERO)? {
        let Item::Record(record) = item? else { continue };
        if record.kind.as_str() != "turn" {
            continue;
        }
        if let Ok(Event::Turn(turn)) = Event::parse(&record.kind, &store.payload(&record)?)
            && turn.role == Role::User
        {
            return Ok(turn.content.as_ref().map(content::plain).unwrap_or_default());
        }
    }
    Ok(String::new())
}

/// What the key of a child ends with; `None` of a session that is none.
fn id_of(row: &Row) -> Option<&str> {
    let key = SessionKey::of_stream(&row.key)?;
    match key.parts() {
        Parts::Subagent { id, .. } => row.key.as_str().get(row.key.as_str().len() - id.len()..),
        _ => None,
    }
}

/// The children that a caller sees, the youngest first.
pub(super) fn children<'a>(sessions: &'a Sessions, caller: &Caller) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> =
        sessions.rows().filter(|row| id_of(row).is_some() && caller.sees(sessions, row)).collect();
    let age = |row: &Row| -> (Timestamp, String) { (row.created_at, row.key.to_string()) };
    rows.sort_by_key(|row| std::cmp::Reverse(age(row)));
    rows
}

/// The child of a name: its key, its id, or the beginning of either that fits no other.
///
/// # Errors
/// Not found; ambiguous, with the keys that fit.
pub(super) fn find<'a>(
    sessions: &'a Sessions,
    caller: &Caller,
    name: &str,
) -> Result<&'a Row, Failure> {
    let rows = children(sessions, caller);
    let names =
        |row: &Row| [row.key.as_str().to_owned(), id_of(row).unwrap_or_default().to_owned()];
    let mut fit: Vec<&Row> =
        rows.iter().copied().filter(|row| names(row).iter().any(|own| own == name)).collect();
    if fit.is_empty() && name.chars().count() >= PREFIX_LEAST {
        let begins = |row: &&Row| names(row).iter().any(|own| own.starts_with(name));
        fit = rows.iter().copied().filter(begins).collect();
    }
    match fit.as_slice() {
        [] => Err(Failure::not_found(format!("there is no child {name:?}")).hint(
            "`annals subagent list` lists them, and with --archived those that left the lists",
        )),
        [row] => Ok(row),
        several => {
            let keys: Vec<String> =
                several.iter().take(NAMED_MAX).map(|row| one_line(row.key.as_str())).collect();
            let more = if several.len() > NAMED_MAX { ", and more" } else { "" };
            let message = format!("{name:?} is ambiguous: it fits {}{more}", keys.join(", "));
            Err(Failure::new(Exit::Usage, "ambiguous", message).hint("give more of the id"))
        }
    }
}
