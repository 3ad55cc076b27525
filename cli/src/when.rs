//! Times as people type them: `2h`, `yesterday`, `2026-03-01T14:00`, and `#42` for a place in the log. It only reads;
//! what a time looks like on the screen is in `output`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, ZonedDateTime};

use annals_engine::clock::Timestamp;
use annals_engine::id::Seq;

use crate::exit::Failure;

/// What somebody typed for `--since` or `--until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// An instant.
    Time(Timestamp),
    /// A place in the log.
    Seq(Seq),
}

/// The forms that are taken, to be shown when none fits.
pub(crate) const FORMS: &str = "write 2h, 3d, yesterday, 14:30, 2026-03-01, 2026-03-01T14:00:00Z, or #42 for a place \
                                in the log";

/// What was typed for `--since` and `--until`, as of `now` in `zone`.
///
/// # Errors
/// Usage, naming the option and what it takes, or that nothing can lie between the two.
pub(crate) fn range(
    since: Option<&String>,
    until: Option<&String>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(Option<Bound>, Option<Bound>), Failure> {
    let bound = |option: &str, text: Option<&String>| {
        let Some(text) = text else { return Ok(None) };
        let no_time = || Failure::usage(format!("{option}: {text:?} is no time")).hint(FORMS);
        parse(text, now, zone).map(Some).ok_or_else(no_time)
    };
    let range = (bound("--since", since)?, bound("--until", until)?);
    match range {
        (Some(Bound::Time(since)), Some(Bound::Time(until))) if since > until => {}
        (Some(Bound::Seq(since)), Some(Bound::Seq(until))) if since > until => {}
        _ => return Ok(range),
    }
    Err(Failure::usage("--since lies after --until: nothing can be between them"))
}

/// Reads what was typed, as of `now` in `zone`. `None` when it is no time.
pub(crate) fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Bound> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix('#') {
        return digits.parse().ok().map(|seq| Bound::Seq(Seq(seq)));
    }
    let now = zoned(now, zone)?;
    instant(text, &now)
        .map(|at| Bound::Time(Timestamp::from_micros(at.timestamp().as_microsecond())))
}

/// The instant in a time zone.
pub(crate) fn zoned(at: Timestamp, zone: &TimeZone) -> Option<ZonedDateTime> {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?;
    Some(at.to_zoned_datetime(zone.clone()))
}

fn instant(text: &str, now: &ZonedDateTime) -> Option<ZonedDateTime> {
    let zone = now.time_zone().clone();
    match text {
        "now" => return Some(now.clone()),
        "today" => return now.start_of_day().ok(),
        "yesterday" => return now.yesterday().ok()?.start_of_day().ok(),
        _ => {}
    }
    if let Some(span) = duration(text) {
        return now.checked_sub(span).ok();
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(at.to_zoned_datetime(zone));
    }
    if let Ok(at) = text.parse::<ZonedDateTime>() {
        return Some(at);
    }
    if let Ok(local) = text.parse::<DateTime>() {
        return local.to_zoned_datetime(zone).ok();
    }
    if let Ok(day) = text.parse::<Date>() {
        return day.to_zoned_datetime(zone).ok();
    }
    let time = text.parse::<Time>().ok().filter(|_| text.contains(':'))?;
    now.date().to_datetime(time).to_zoned_datetime(zone).ok()
}

/// `2h`, `1h30m`, `3d ago`: how long before now. Ours count backwards whether or not they end in `ago`.
fn duration(text: &str) -> Option<Span> {
    let starts_as_number = text.starts_with(|c: char| c.is_ascii_digit());
    let ends_as_unit = text.ends_with(|c: char| c.is_ascii_alphabetic() && c != 'Z');
    if !starts_as_number || !ends_as_unit {
        return None;
    }
    text.parse::<Span>().ok().map(Span::abs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon on the day after the clocks went forward in Berlin.
    const NOW: &str = "2026-03-30T10:00:00Z";

    fn check(text: &str, expect: &str) {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now: jiff::Timestamp = NOW.parse().unwrap();
        let now = Timestamp::from_micros(now.as_microsecond());
        let got = match parse(text, now, &zone) {
            Some(Bound::Time(at)) => at.to_string().replace(".000000", ""),
            Some(Bound::Seq(seq)) => format!("#{seq}"),
            None => "no time".to_owned(),
        };
        assert_eq!(got, expect, "{text}");
    }

    /// Durations count back from now; a day is a calendar day, also across the change of the clocks.
    #[test]
    fn durations() {
        check("2h", "2026-03-30T08:00:00Z");
        check("90m", "2026-03-30T08:30:00Z");
        check("1h30m", "2026-03-30T08:30:00Z");
        check("2 hours ago", "2026-03-30T08:00:00Z");
        check("45s", "2026-03-30T09:59:15Z");
        check("1d", "2026-03-29T10:00:00Z");
        check("2d", "2026-03-28T11:00:00Z");
        check("1w", "2026-03-23T11:00:00Z");
    }

    /// Words and wall-clock times are read in the zone given.
    #[test]
    fn words_and_local_times() {
        check("now", "2026-03-30T10:00:00Z");
        check("today", "2026-03-29T22:00:00Z");
        check("yesterday", "2026-03-28T23:00:00Z");
        check("2026-03-01", "2026-02-28T23:00:00Z");
        check("2026-03-01T14:00", "2026-03-01T13:00:00Z");
        check("2026-03-01 14:00:05", "2026-03-01T13:00:05Z");
        check("08:15", "2026-03-30T06:15:00Z");
    }

    /// Instants that carry their offset are taken as they are.
    #[test]
    fn instants_and_places() {
        check("2026-03-01T14:00:00Z", "2026-03-01T14:00:00Z");
        check("2026-03-01T14:00:00+05:30", "2026-03-01T08:30:00Z");
        check("#42", "#42");
    }

    /// What is no time is refused and never guessed.
    #[test]
    fn refused() {
        for text in ["", "soon", "2x", "#", "#-1", "#x", "2026-13-01", "25:00", "12", "h", "P"] {
            check(text, "no time");
        }
    }
}
