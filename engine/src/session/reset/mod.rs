//! When a session's part goes stale: after a time without a human turn, or at an hour of the local day. It is decided
//! from event data, the rule and an instant that is handed in, so that the answer is the same on replay, on another
//! machine and in another zone.
//!
//! - **Idle**: stale once *more* than the idle time has passed since the last human turn, or since the part began when
//!   nobody has written in it since. A time in the future counts as now.
//! - **Daily**: stale from the first local boundary after the part's last human turn on, and at any time when the part
//!   began before the latest boundary. Days on which the hour occurs twice have one boundary, the first of the two; days
//!   on which it does not occur have theirs where the clock lands (RFC 5545, section 3.3.5).
//! - With both, whichever falls first.

mod rules;
mod zone;

pub use rules::{Override, Rules, SessionType};
pub use zone::Zone;

use std::time::Duration;

use crate::clock::Timestamp;

use super::event::{ResetMode, ResetReason, ResetRule};

/// A rule that is complete: the one in force for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its mode. `Daily` minds the idle minutes too, unless they are 0; `Idle` minds no hour.
    pub mode: ResetMode,
    /// The hour of the local day, 0 to 23.
    pub at_hour: u8,
    /// Minutes without a human turn; 0 for never.
    pub idle_minutes: u64,
    /// The zone in which the hour is read.
    pub zone: Zone,
}

/// What is known of a session's current part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartFacts {
    /// When it began.
    pub began_at: Timestamp,
    /// When a person last wrote in it.
    pub last_human_at: Option<Timestamp>,
}

/// A run at work in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtWork<'a> {
    /// Its id.
    pub run: &'a str,
    /// When it was asked for.
    pub since: Timestamp,
}

/// A part is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The moment from which it is.
    pub at: Timestamp,
    /// `Idle` or `Daily`.
    pub reason: ResetReason,
}

/// How a part stands under a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It goes on.
    Fresh,
    /// It is stale, but a run is at work in it: it goes on until then at most.
    Deferred {
        /// Since when, and why.
        expiry: Expiry,
        /// The run.
        run: &'a str,
        /// When nobody waits for the run any longer.
        until: Timestamp,
    },
    /// The next human turn begins another part.
    Expired {
        /// Since when, and why.
        expiry: Expiry,
        /// The run that was waited for in vain.
        deferred_by: Option<&'a str>,
    },
}

impl Rule {
    /// No reset ever.
    #[must_use]
    pub const fn never(zone: Zone) -> Self {
        Self { mode: ResetMode::None, at_hour: 0, idle_minutes: 0, zone }
    }

    /// Whether a part is stale at `now`, since when, and why.
    #[must_use]
    pub fn expiry(&self, part: PartFacts, now: Timestamp) -> Option<Expiry> {
        let daily = (self.mode == ResetMode::Daily).then(|| self.daily(part, now)).flatten();
        let idle = (self.mode != ResetMode::None).then(|| self.idle(part, now)).flatten();
        match (daily, idle) {
            (Some(daily), Some(idle)) if idle.at < daily.at => Some(idle),
            (daily, idle) => daily.or(idle),
        }
    }

    /// How a part stands at `now` when `run` is at work in it. A reset waits for the run, at most so long after the part
    /// expired or the run was asked for, whichever came later.
    #[must_use]
    pub fn standing<'a>(
        &self,
        part: PartFacts,
        run: Option<AtWork<'a>>,
        defer_max: Duration,
        now: Timestamp,
    ) -> Standing<'a> {
        let Some(expiry) = self.expiry(part, now) else { return Standing::Fresh };
        let Some(AtWork { run, since }) = run else {
            return Standing::Expired { expiry, deferred_by: None };
        };
        let until = expiry.at.max(since).plus(defer_max);
        if now < until {
            Standing::Deferred { expiry, run, until }
        } else {
            Standing::Expired { expiry, deferred_by: Some(run) }
        }
    }

    /// The rule as events carry it: only what decides.
    #[must_use]
    pub fn to_event(&self) -> ResetRule {
        let daily = self.mode == ResetMode::Daily;
        let minds_idle = self.mode == ResetMode::Idle || daily && self.idle_minutes > 0;
        ResetRule {
            mode: self.mode,
            at_hour: daily.then_some(self.at_hour),
            idle_minutes: minds_idle.then_some(self.idle_minutes),
            time_zone: daily.then(|| self.zone.name().to_owned()),
        }
    }

    fn idle(&self, part: PartFacts, now: Timestamp) -> Option<Expiry> {
        if self.idle_minutes == 0 {
            return None;
        }
        let last = part.last_human_at.map_or(part.began_at, |at| at.max(part.began_at)).min(now);
        let at = last.plus(Duration::from_secs(self.idle_minutes.saturating_mul(60)));
        (now > at).then_some(Expiry { at, reason: ResetReason::Idle })
    }

    fn daily(&self, part: PartFacts, now: Timestamp) -> Option<Expiry> {
        let latest = self.zone.latest_boundary(self.at_hour, now)?;
        if part.began_at >= latest {
            return None;
        }
        let quiet_since = part.last_human_at.unwrap_or(part.began_at).max(part.began_at);
        let first = self.zone.next_boundary(self.at_hour, quiet_since);
        let at = first.filter(|first| *first <= latest).unwrap_or(latest);
        Some(Expiry { at, reason: ResetReason::Daily })
    }
}

#[cfg(test)]
mod tests;
