//! How a time looks: short and relative for eyes, RFC 3339 for everything else.

use std::cell::LazyCell;
use std::rc::Rc;

use annals_engine::clock::Timestamp;
use jiff::tz::TimeZone;

use crate::when;

/// A time zone that is not looked up before a time is shown or read in it: to find one, the system's folder of all zones
/// is gone through.
pub(crate) type Zone = Rc<LazyCell<TimeZone>>;

/// The zone of the person at the screen.
pub(crate) fn local_zone() -> Zone {
    Rc::new(LazyCell::new(TimeZone::system))
}

/// How times are shown.
#[derive(Clone, Debug)]
pub(crate) enum TimeStyle {
    /// `3m ago`: a list that is read once.
    Relative {
        /// As of when.
        now: Timestamp,
        /// Whose calendar names the days that lie far back.
        zone: Zone,
    },
    /// `14:03:22`: lines that stay on the screen while time goes on.
    WallClock {
        /// Whose clock.
        zone: Zone,
    },
    /// `2026-03-01T14:03:22.123456Z`.
    Rfc3339,
}

impl TimeStyle {
    /// The text for an instant.
    pub(crate) fn show(&self, at: Timestamp) -> String {
        let local = |zone: &TimeZone, format: &str| match when::zoned(at, zone) {
            Some(zoned) => zoned.strftime(format).to_string(),
            None => at.to_string(),
        };
        match self {
            Self::Rfc3339 => at.to_string(),
            Self::WallClock { zone } => local(zone, "%H:%M:%S"),
            Self::Relative { now, zone } => {
                ago(*now, at).unwrap_or_else(|| local(zone, "%Y-%m-%d"))
            }
        }
    }
}

/// What happened while the program read is no clock that runs ahead.
const READING: i64 = 10;

/// How long ago, in one unit; `None` when the date says more.
fn ago(now: Timestamp, at: Timestamp) -> Option<String> {
    let seconds = (now.as_micros() - at.as_micros()) / 1_000_000;
    if (-READING..0).contains(&seconds) {
        return Some("now".to_owned());
    }
    let text = match seconds.unsigned_abs() {
        0 => return Some("now".to_owned()),
        s @ 1..60 => format!("{s}s"),
        s @ 60..3_600 => format!("{}m", s / 60),
        s @ 3_600..86_400 => format!("{}h", s / 3_600),
        s @ 86_400..2_592_000 => format!("{}d", s / 86_400),
        _ => return None,
    };
    Some(if seconds > 0 { format!("{text} ago") } else { format!("in {text}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(of: fn() -> TimeZone) -> Zone {
        Rc::new(LazyCell::new(of))
    }

    /// Goal: no zone is looked up for times that are told without one. Method: a zone that cannot be had.
    #[test]
    fn a_relative_time_needs_no_zone() {
        let now = Timestamp::from_millis(1_775_001_600_000);
        let style = TimeStyle::Relative { now, zone: zone(|| unreachable!("looked up")) };
        assert_eq!(style.show(Timestamp::from_millis(now.as_millis() - 5_000)), "5s ago");
    }

    fn check(seconds_ago: i64, expect: &str) {
        let now = Timestamp::from_millis(1_775_001_600_000);
        let style = TimeStyle::Relative { now, zone: zone(|| TimeZone::UTC) };
        let at = Timestamp::from_millis(now.as_millis() - seconds_ago * 1_000);
        assert_eq!(style.show(at), expect);
    }

    /// One unit, rounded down; far back the date; a clock that runs ahead is shown and not hidden.
    #[test]
    fn relative() {
        check(0, "now");
        check(1, "1s ago");
        check(119, "1m ago");
        check(7_199, "1h ago");
        check(86_400 * 29, "29d ago");
        check(86_400 * 31, "2026-03-01");
        check(-2, "now");
        check(-90, "in 1m");
    }

    /// The other two styles.
    #[test]
    fn absolute() {
        let at = Timestamp::from_millis(1_775_001_601_000);
        let zone = zone(|| TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(TimeStyle::WallClock { zone }.show(at), "02:00:01");
        assert_eq!(TimeStyle::Rfc3339.show(at), "2026-04-01T00:00:01.000000Z");
    }
}
