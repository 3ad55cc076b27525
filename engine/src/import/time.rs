//! Instants as other programs write them: RFC 3339 text, milliseconds since the epoch, and the stamp in a file's name.

use std::time::Duration;

use serde_json::value::RawValue;

use super::fields;
use crate::clock::Timestamp;

/// Milliseconds that can be meant: from 1973 on, before which they are rather seconds, to the last year of four digits.
const MILLIS: std::ops::Range<i64> = 100_000_000_000..253_402_300_800_000;

/// Reads an instant in the form of RFC 3339, with or without a fraction, in any zone. Fractions finer than a
/// microsecond are cut off.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let second = bytes.get(..19)?;
    let mut rest = text.get(19..)?;
    let mut line = *b"0000-00-00T00:00:00.000000Z";
    line.get_mut(..19)?.copy_from_slice(second);
    if matches!(line.get(10), Some(b't' | b' ')) {
        *line.get_mut(10)? = b'T';
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        let len = fraction.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(fraction.len());
        let digits = fraction.as_bytes().get(..len).filter(|digits| !digits.is_empty())?;
        for (to, from) in line.get_mut(20..26)?.iter_mut().zip(digits) {
            *to = *from;
        }
        rest = fraction.get(len..)?;
    }
    let local = Timestamp::from_text(&line)?;
    if matches!(rest, "Z" | "z") {
        return Some(local);
    }
    let (sign, offset) = rest.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let two = |part: &str| {
        let fits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| part.parse::<u64>().ok()).flatten()
    };
    let offset = Duration::from_secs(two(hours)? * 3_600 + two(minutes)? * 60);
    match sign {
        "+" => Some(local.minus(offset)),
        "-" => Some(local.plus(offset)),
        _ => None,
    }
}

/// Reads the stamp in the name of an archive, in which dashes stand for colons: `2026-03-31T04-00-00.000Z`.
pub(crate) fn parse_stamp(stamp: &str) -> Option<Timestamp> {
    let (date, time) = stamp.split_once('T')?;
    parse_rfc3339(&format!("{date}T{}", time.replace('-', ":")))
}

/// Reads milliseconds since the epoch as JSON spells them; `None` for what is no such number.
pub(crate) fn parse_millis(number: &str) -> Option<Timestamp> {
    let whole = number.split_once('.').map_or(number, |(whole, _)| whole);
    whole.parse().ok().filter(|millis| MILLIS.contains(millis)).map(Timestamp::from_millis)
}

/// Reads an instant in any spelling that occurs: text, which is of UTC where it names no zone, seconds or milliseconds.
pub(crate) fn any_time(value: &RawValue) -> Option<Timestamp> {
    match fields::text(value) {
        Some(text) => parse_rfc3339(&text).or_else(|| parse_rfc3339(&format!("{text}Z"))),
        None => parse_millis(value.get()).or_else(|| parse_seconds(value.get())),
    }
}

/// Reads seconds since the epoch, with or without a fraction, as JSON spells them; `None` for what is no such number.
/// Fractions finer than a microsecond are cut off.
pub(crate) fn parse_seconds(number: &str) -> Option<Timestamp> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let seconds: i64 = whole.parse().ok()?;
    let millis = seconds.checked_mul(1_000).filter(|millis| MILLIS.contains(millis))?;
    let mut micros = *b"000000";
    for (to, from) in micros.iter_mut().zip(fraction.bytes()) {
        *to = Some(from).filter(u8::is_ascii_digit)?;
    }
    let micros: u64 = std::str::from_utf8(&micros).ok()?.parse().ok()?;
    Some(Timestamp::from_millis(millis).plus(Duration::from_micros(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(parse_rfc3339(text).map(|at| at.to_string()).as_deref(), expect, "{text}");
    }

    /// Goal: every spelling of one instant is that instant. Method: zones, fractions, letters; and what is none.
    #[test]
    fn rfc3339() {
        check("2026-04-01T00:00:00.000Z", Some("2026-04-01T00:00:00.000000Z"));
        check("2026-02-24T09:00:00Z", Some("2026-02-24T09:00:00.000000Z"));
        check("2026-02-24 09:00:00.1234567z", Some("2026-02-24T09:00:00.123456Z"));
        check("2026-02-24T09:00:00.5+01:30", Some("2026-02-24T07:30:00.500000Z"));
        check("2026-02-24T23:00:00-02:00", Some("2026-02-25T01:00:00.000000Z"));
        for text in [
            "",
            "yesterday",
            "2026-02-24",
            "2026-13-24T09:00:00Z",
            "2026-02-24T09:00:00",
            "2026-02-24T09:00:00.Z",
            "2026-02-24T09:00:00+1:00",
            "2026-02-24T09:00:00 01:00",
            "2026-02-24T09:00é:00Z",
        ] {
            check(text, None);
        }
    }

    /// Goal: stamps and milliseconds are read. Method: one of each, and what is none.
    #[test]
    fn stamps_and_millis() {
        let at = parse_rfc3339("2026-03-31T04:00:00Z");
        assert_eq!(parse_stamp("2026-03-31T04-00-00.000Z"), at);
        assert_eq!(parse_stamp("2026-03-31T04-00-00Z"), at);
        assert_eq!(parse_stamp("1737420882"), None);
        assert_eq!(parse_millis("1774929600000"), at);
        assert_eq!(parse_millis("1774929600000.5"), at);
        for number in ["-1", "1774929600", "9223372036854775807", "253402300800000"] {
            assert_eq!(parse_millis(number), None, "{number}");
        }
        assert_eq!(parse_millis("\"1\""), None);
        assert_eq!(parse_seconds("1774929600"), at);
        assert_eq!(parse_seconds("1774929600.0000001"), at);
        let later = at.map(|at| at.plus(Duration::from_millis(250)));
        assert_eq!(parse_seconds("1774929600.25"), later);
        for number in ["-1", "1", "1774929600000", "1774929600.x", "1e9", "\"1774929600\""] {
            assert_eq!(parse_seconds(number), None, "{number}");
        }
    }
}
