//! Which deeds are wanted. A filter chooses among deeds that were put together from all events, so that none of them
//! reads differently for being filtered.

use annals_engine::session::deeds::Deed;

use super::{Name, Wanted, has_flow};
use crate::shown::Shown;
use crate::when::Bound;

/// What the filters found in the events of one deed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    of_type: bool,
    of_run: bool,
    of_flow: bool,
    has_text: bool,
}

impl Wanted {
    /// Marks what the filters find in one more event of a deed.
    pub(crate) fn mark(&self, marks: &mut Marks, shown: &Shown) {
        let record = &shown.record;
        marks.of_type |= self.types.may_keep(record.kind.as_str()) && self.types.keep(shown);
        marks.of_run |= self.run.as_ref().is_none_or(|run| shown.belongs_to_run(run));
        marks.of_flow |= self.flow.as_ref().is_none_or(|flow| has_flow(record, flow));
        marks.has_text |= self.grep.as_ref().is_none_or(|regex| shown.has_text(regex));
    }

    /// Whether a deed is wanted: one of its ends is of the sessions, it began in the time, and its events show the type,
    /// the run, the flow and the text.
    pub(crate) fn keeps_deed(&self, deed: &Deed, marks: Marks) -> bool {
        let fits = |name: Option<&Name>, key: &str| name.is_none_or(|name| name.is(key));
        marks.of_type
            && marks.of_run
            && marks.of_flow
            && (marks.has_text || self.says(deed))
            && self.began_in_time(deed)
            && (self.is_end(&deed.from) || self.is_end(&deed.to))
            && fits(self.from.as_ref(), &deed.from)
            && fits(self.to.as_ref(), &deed.to)
    }

    /// The words of a reply are an event of the exchange that it belongs to.
    fn says(&self, deed: &Deed) -> bool {
        let text = deed.text.as_deref().unwrap_or_default();
        self.grep.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    fn is_end(&self, key: &str) -> bool {
        let kind = || self.belonging.kind_of(key);
        let agent = || self.belonging.agent_of(key);
        (self.sessions.is_empty() || self.sessions.iter().any(|name| name.is(key)))
            && (self.kinds.is_empty() || kind().is_some_and(|kind| self.kinds.contains(&kind)))
            && self.agent.as_ref().is_none_or(|agent_id| agent().is_some_and(|of| of == agent_id))
    }

    fn began_in_time(&self, deed: &Deed) -> bool {
        let after = |bound: Bound| match bound {
            Bound::Time(since) => deed.at >= since,
            Bound::Seq(since) => deed.seq >= since.0,
        };
        let before = |bound: Bound| match bound {
            Bound::Time(until) => deed.at <= until,
            Bound::Seq(until) => deed.seq <= until.0,
        };
        self.since.is_none_or(after) && self.until.is_none_or(before)
    }
}
