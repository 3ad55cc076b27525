//! Usage: tokens and cost by session, agent, model and day. The pieces of one message count once, as the largest of them
//! says, by the rule of the sessions view; of a run counts what its turns have not told.

mod amount;

pub use amount::Amount;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::id::Seq;
use crate::projection::Projection;
use crate::store::Damage;

use super::event::{Event, RunFinished, RunRequested, SessionOpened, TurnHead, happened_at, words};
use super::index::{IdHash, Met, Recent, id_hash};

words! {
    /// What sums are made by.
    pub enum By {
        /// The session that the turns stand in.
        Session = "session",
        /// The agent that the session belongs to.
        Agent = "agent",
        /// The model that answered.
        Model = "model",
        /// The day in UTC on which it happened.
        Day = "day",
    }
}

/// What stands for an agent or a model that nobody names.
pub const UNKNOWN: &str = "unknown";

/// Between which bounds something must have happened to be counted; each `None` is no bound. Both ends count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Not recorded before this position.
    pub first: Option<Seq>,
    /// Not happened before this instant.
    pub since: Option<Timestamp>,
    /// Not happened after this instant.
    pub until: Option<Timestamp>,
}

/// All usage.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    span: Span,
    cells: BTreeMap<Cell, Amount>,
    agents: HashMap<String, String>,
    /// The last messages of each part.
    recent: HashMap<(String, String), Recent<Told>>,
    runs: HashMap<IdHash, OpenRun>,
    names: BTreeSet<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    session: Arc<str>,
    model: Arc<str>,
    /// Days since 1970-01-01.
    day: i64,
}

/// What a piece of a message told, and where it is counted; nowhere when it lies outside the span.
#[derive(Clone, Debug, Default)]
struct Told {
    amount: Amount,
    cell: Option<Cell>,
}

impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        self.amount.size() == other.amount.size()
    }
}

impl PartialOrd for Told {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.amount.size().partial_cmp(&other.amount.size())
    }
}

#[derive(Clone, Debug, PartialEq)]
struct OpenRun {
    session: String,
    model: Option<String>,
    /// What its turns have told.
    told: Amount,
}

impl Usage {
    /// The types of the events that it is folded from.
    pub const TYPES: [&'static str; 4] =
        ["turn", "session.opened", "run.requested", "run.finished"];

    /// A fold that counts what lies in a span.
    #[must_use]
    pub fn within(span: Span) -> Self {
        Self { span, ..Self::default() }
    }

    /// The sums, by name; what nobody names is [`UNKNOWN`].
    #[must_use]
    pub fn sums(&self, by: By) -> BTreeMap<String, Amount> {
        let mut sums: BTreeMap<String, Amount> = BTreeMap::new();
        for (cell, amount) in self.cells.iter().filter(|(_, amount)| !amount.is_nothing()) {
            let name = match by {
                By::Session => cell.session.to_string(),
                By::Agent => self.agents.get(&*cell.session).map_or(UNKNOWN, String::as_str).into(),
                By::Model => cell.model.to_string(),
                By::Day => day_name(cell.day),
            };
            sums.entry(name).or_default().add(amount);
        }
        sums
    }

    /// The sum of everything.
    #[must_use]
    pub fn total(&self) -> Amount {
        let mut total = Amount::default();
        self.cells.values().for_each(|amount| total.add(amount));
        total
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn cell(&mut self, session: &str, model: &str, at: Timestamp, seq: Seq) -> Option<Cell> {
        let Span { first, since, until } = self.span;
        let counts = first.is_none_or(|first| seq >= first)
            && since.is_none_or(|since| at >= since)
            && until.is_none_or(|until| at <= until);
        let day = at.as_micros().div_euclid(MICROS_A_DAY);
        counts.then(|| Cell { session: self.name(session), model: self.name(model), day })
    }

    fn turn(&mut self, fields: &Fields<'_>) {
        let Some(head) = TurnHead::read(fields.data) else { return };
        let amount = Amount::of(head.tokens.as_ref(), head.cost_micros);
        if amount.is_nothing() && head.message_id.is_none() {
            return;
        }
        let at = happened_at(fields.time, fields.data);
        let model = head.model.as_deref().unwrap_or(UNKNOWN);
        let cell = self.cell(&fields.stream, model, at, fields.seq);
        let told = Told { amount, cell };
        self.answered_by(head.run_id.as_deref(), head.model.as_deref());
        let Some(message) = head.message_id.as_deref().map(id_hash) else {
            return self.count(&told, head.run_id.as_deref());
        };
        let part = (fields.stream.to_string(), head.session_id.to_string());
        match self.recent.entry(part).or_default().take(message, &told) {
            Met::New => self.count(&told, head.run_id.as_deref()),
            Met::Larger(known) => {
                self.take_back(&known, head.run_id.as_deref());
                self.count(&told, head.run_id.as_deref());
            }
            Met::NoLarger => {}
        }
    }

    /// A run that names no model is of the one that answered in it last.
    fn answered_by(&mut self, run_id: Option<&str>, model: Option<&str>) {
        let run = run_id.and_then(|id| self.runs.get_mut(&id_hash(id)));
        if let (Some(run), Some(model)) = (run, model)
            && run.model.as_deref() != Some(model)
        {
            run.model = Some(model.to_owned());
        }
    }

    fn count(&mut self, told: &Told, run_id: Option<&str>) {
        if let Some(cell) = &told.cell {
            self.cells.entry(cell.clone()).or_default().add(&told.amount);
        }
        if let Some(run) = run_id.and_then(|id| self.runs.get_mut(&id_hash(id))) {
            run.told.add(&told.amount);
        }
    }

    fn take_back(&mut self, told: &Told, run_id: Option<&str>) {
        if let Some(cell) = told.cell.as_ref().and_then(|cell| self.cells.get_mut(cell)) {
            cell.take_back(&told.amount);
        }
        if let Some(run) = run_id.and_then(|id| self.runs.get_mut(&id_hash(id))) {
            run.told.take_back(&told.amount);
        }
    }

    fn opened(&mut self, key: &str, event: SessionOpened) {
        self.agents.entry(key.to_owned()).or_insert(event.agent_id);
    }

    fn run_requested(&mut self, event: RunRequested) {
        let RunRequested { run_id, session_key, model, .. } = event;
        let run = OpenRun { session: session_key, model, told: Amount::default() };
        self.runs.insert(id_hash(&run_id), run);
    }

    fn run_finished(&mut self, event: &RunFinished, fields: &Fields<'_>) {
        let Some(run) = self.runs.remove(&id_hash(&event.run_id)) else { return };
        let whole = Amount::of(event.tokens.as_ref(), event.cost_micros);
        let amount = whole.beyond(&run.told);
        if amount.is_nothing() {
            return;
        }
        let at = happened_at(fields.time, fields.data);
        let model = run.model.as_deref().unwrap_or(UNKNOWN);
        let cell = self.cell(&run.session, model, at, fields.seq);
        self.count(&Told { amount, cell }, None);
    }
}

impl Projection for Usage {
    fn apply(&mut self, fields: &Fields<'_>) {
        if fields.kind == "turn" {
            return self.turn(fields);
        }
        if !Self::TYPES.contains(&fields.kind) {
            return;
        }
        match Event::told_by(fields) {
            Some(Event::SessionOpened(event)) => self.opened(&fields.stream, event),
            Some(Event::RunRequested(event)) => self.run_requested(event),
            Some(Event::RunFinished(event)) => self.run_finished(&event, fields),
            _ => {}
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

const MICROS_A_DAY: i64 = 86_400_000_000;

/// `2026-03-14`.
fn day_name(day: i64) -> String {
    let at = Timestamp::from_micros(day.saturating_mul(MICROS_A_DAY)).to_string();
    at.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
