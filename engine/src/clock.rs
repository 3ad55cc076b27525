//! The time: one type for instants and the only place that reads the machine's clock. Time zones are not known here.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant in microseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 9999-12-31T23:59:59.999999Z, the last instant that a line can carry.
    pub const MAX: Self = Self(253_402_300_799_999_999);
    /// 1970-01-01T00:00:00Z, the first instant that a line can carry.
    pub const EPOCH: Self = Self(0);

    /// From microseconds since the epoch, held inside what a line can carry.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros < 0 {
            Self::EPOCH
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_micros(millis.saturating_mul(1_000))
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// This instant and `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// This instant and `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_sub(micros))
    }

    /// The 27 bytes of a line: `2026-11-29T23:04:05.123456Z`.
    #[must_use]
    pub fn to_text(self) -> [u8; 27] {
        let mut out = *FORM;
        let days = self.0.div_euclid(86_400_000_000);
        let mut rest = self.0.rem_euclid(86_400_000_000);
        let (year, month, day) = civil_from_days(days);
        let mut put = |range: std::ops::Range<usize>, mut value: i64| {
            if let Some(digits) = out.get_mut(range) {
                for digit in digits.iter_mut().rev() {
                    *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
                    value /= 10;
                }
            }
        };
        put(0..4, year);
        put(5..7, month);
        put(8..10, day);
        put(20..26, rest % 1_000_000);
        rest /= 1_000_000;
        put(17..19, rest % 60);
        put(14..16, rest / 60 % 60);
        put(11..13, rest / 3_600);
        out
    }

    /// Reads the exact 27 bytes that [`Timestamp::to_text`] writes; `None` for any other text.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text: &[u8; 27] = text.try_into().ok()?;
        let mut at = [0; 27];
        let mut wrong = 0;
        // Eight bytes at a time: what is not a digit in the form is left as nothing. The last eight overlap those before.
        for from in [0, 8, 16, 19] {
            let form = *FORM.get(from..)?.first_chunk::<8>()?;
            let bytes = u64::from_le_bytes(*text.get(from..)?.first_chunk::<8>()?);
            let digits = bytes ^ u64::from_le_bytes(form);
            // Above this a byte sets the highest bit: 9 where the form has a digit, else 0.
            let room = u64::from_le_bytes(form.map(|byte| if byte == b'0' { 0x76 } else { 0x7F }));
            wrong |= (digits & LOW_BITS).wrapping_add(room) | digits;
            at.get_mut(from..)?.first_chunk_mut::<8>()?.copy_from_slice(&digits.to_le_bytes());
        }
        wrong &= !LOW_BITS;
        let two = |high: usize| i64::from(at[high]) * 10 + i64::from(at[high + 1]);
        let (year, month, day) = (two(0) * 100 + two(2), two(5), two(8));
        let (hour, minute, second) = (two(11), two(14), two(17));
        let micros = two(20) * 10_000 + two(22) * 100 + two(24);
        let fits = wrong == 0
            && year >= 1970
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        fits.then(|| {
            let days = days_from_civil(year, month, day);
            let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
            Self(seconds * 1_000_000 + micros)
        })
    }
}

/// The form of an instant as text: a digit for each 0.
const FORM: &[u8; 27] = b"0000-00-00T00:00:00.000000Z";

/// All bits of eight bytes but the highest of each.
const LOW_BITS: u64 = u64::from_le_bytes([0x7F; 8]);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_text()).unwrap_or_default())
    }
}

/// Days since the epoch to year, month and day of the proleptic Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The inverse of [`civil_from_days`], from the same source.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Who tells the time. The log asks under the append lock, so that times in the log follow its order.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present instant; it may jump either way.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved: tests, and replays as of some time.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_micros()))
    }

    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known instants to text and back.
    #[test]
    fn known_instants() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_775_001_601_000_000, "2026-04-01T00:00:01.000000Z"),
            (1_796_079_845_123_456, "2026-11-30T23:04:05.123456Z"),
            (Timestamp::MAX.as_micros(), "9999-12-31T23:59:59.999999Z"),
        ] {
            let instant = Timestamp::from_micros(micros);
            assert_eq!(instant.to_string(), text);
            assert_eq!(Timestamp::from_text(text.as_bytes()), Some(instant));
        }
    }

    /// Every day of four centuries to text and back, which has every leap year that there is.
    #[test]
    fn every_day() {
        for day in 0..146_097 {
            let instant = Timestamp::from_micros(day * 86_400_000_000 + 86_399_999_999);
            assert_eq!(Timestamp::from_text(&instant.to_text()), Some(instant));
        }
    }

    /// Text that is a time for other readers but not the one form of ours is refused.
    #[test]
    fn other_forms_are_refused() {
        for text in [
            "2026-02-30T00:00:00.000000Z",
            "2026-02-28T24:00:00.000000Z",
            "2026-02-28T00:00:60.000000Z",
            "2026-02-28 00:00:00.000000Z",
            "2026-02-28T00:00:00.000000z",
            "1969-12-31T23:59:59.999999Z",
            "2026-13-01T00:00:00.000000Z",
            "2026-00-01T00:00:00.000000Z",
            "2026-04-00T00:00:00.000000Z",
            "2026-04-31T00:00:00.000000Z",
            "2100-02-29T00:00:00.000000Z",
            "2026-02-28T00:60:00.000000Z",
            "2026-02-2/T00:00:00.000000Z",
            "2026-02-2:T00:00:00.000000Z",
        ] {
            assert_eq!(Timestamp::from_text(text.as_bytes()), None, "{text}");
        }
    }
}
