//! Time zones: local hours as instants.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// A time zone of the IANA database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// The zone of a name, such as `Europe/Berlin`.
    ///
    /// # Errors
    /// `InvalidInput` when the database has none of that name.
    pub fn named(name: &str) -> Result<Self> {
        let zone = TimeZone::get(name).map_err(|e| {
            Error::invalid(format!("{name:?} is not a time zone"))
                .field("timeZone")
                .hint("zones look like Europe/Berlin, America/New_York or UTC")
                .caused_by(e)
        })?;
        Ok(Self { name: zone.iana_name().unwrap_or(name).to_owned(), zone })
    }

    /// The zone that the host is set to; UTC when that cannot be told.
    #[must_use]
    pub fn of_host() -> Self {
        let zone = TimeZone::system();
        match zone.iana_name() {
            Some(name) => Self { name: name.to_owned(), zone },
            None if zone == TimeZone::unknown() => Self::utc(),
            None => Self { name: "host".to_owned(), zone },
        }
    }

    /// Its name; `host` for a zone of the host that has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The latest boundary at or before an instant: the moment at which a local day reaches an hour. `None` only beyond
    /// the calendar.
    pub(super) fn latest_boundary(&self, hour: u8, now: Timestamp) -> Option<Timestamp> {
        let today = self.local_day(now)?;
        let days = [today.tomorrow().ok(), Some(today), today.yesterday().ok()];
        days.into_iter().flatten().filter_map(|day| self.boundary(day, hour)).find(|at| *at <= now)
    }

    /// The first boundary after an instant.
    pub(super) fn next_boundary(&self, hour: u8, after: Timestamp) -> Option<Timestamp> {
        let today = self.local_day(after)?;
        let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
        days.into_iter().flatten().filter_map(|day| self.boundary(day, hour)).find(|at| *at > after)
    }

    fn local_day(&self, at: Timestamp) -> Option<Date> {
        let instant = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?;
        Some(self.zone.to_datetime(instant).date())
    }

    /// The moment at which a day reaches an hour: of two the first, and where a gap swallows it, the moment behind it.
    fn boundary(&self, day: Date, hour: u8) -> Option<Timestamp> {
        let time = Time::new(i8::try_from(hour).ok()?, 0, 0, 0).ok()?;
        let instant = self.zone.to_ambiguous_timestamp(day.to_datetime(time)).compatible().ok()?;
        Some(Timestamp::from_micros(instant.as_microsecond()))
    }
}
