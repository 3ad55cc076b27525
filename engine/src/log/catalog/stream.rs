//! Reading one stream by what is kept open. Each line is verified as it is given, and its version is the next one; at
//! the first that is not, the stream is read on in order, so that damage comes as a gap.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::Plan;
use super::held::Held;
use crate::error::Result;
use crate::format::{Line, decode};
use crate::id::{EventType, StreamName, Version};
use crate::log::LogView;
use crate::log::reader::Reader;
use crate::store::{Filter, Item, NamePattern, Read, Record, View};

/// The events of a stream behind some version.
#[derive(Debug)]
pub(in crate::log) struct StreamReader {
    view: Arc<LogView>,
    stream: StreamName,
    /// The version before the next event.
    behind: Version,
    stretches: std::vec::IntoIter<Rows>,
    /// The stretch that is read.
    rows: Option<Rows>,
    /// The type of the last event that was given.
    kind: Option<EventType>,
    /// The lines behind all stretches, and how many bytes of them were given.
    recent: Vec<u8>,
    given: usize,
    /// Reads in order, once something was not as expected.
    in_order: Option<Box<Reader>>,
}

/// So many lines are looked at together before they are read.
const AHEAD: usize = 64;

/// What is left of the rows of a stretch.
#[derive(Debug)]
struct Rows {
    held: Arc<Held>,
    places: Range<u64>,
    /// The rows at the places before them; `None` where the index does not say.
    ahead: VecDeque<Option<u32>>,
}

impl Rows {
    fn new((held, places): (Arc<Held>, Range<u64>)) -> Self {
        Self { held, places, ahead: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Option<u32>> {
        if self.ahead.is_empty() {
            self.find(AHEAD);
            look_ahead(std::slice::from_ref(self));
        }
        self.ahead.pop_front()
    }

    /// Finds the next rows, so many at most, and returns how many there were.
    fn find(&mut self, count: usize) -> usize {
        let places = self.places.by_ref().take(count);
        self.ahead.extend(places.map(|place| self.held.index.row_at(place)));
        self.ahead.len()
    }
}

/// Looks at the lines of rows that were found. It tells nothing: the looks do not depend on each other, so that the
/// memory of one is fetched while that of others is, and is at hand when each line is read.
fn look_ahead(stretches: &[Rows]) {
    let found = stretches.iter().flat_map(|rows| rows.ahead.iter().map(|row| (&rows.held, *row)));
    let places: Vec<_> =
        found.filter_map(|(held, row)| Some((held, held.index.line(row?)?))).collect();
    let seen = places.iter().map(|(held, (offset, len))| held.source.look(*offset, *len));
    std::hint::black_box(seen.fold(0, u8::wrapping_add));
}

/// What comes next without a reading in order.
enum Next {
    Record(Box<Record>),
    End,
    /// Something is not as it should be.
    Unknown,
}

impl StreamReader {
    pub(in crate::log) fn new(
        view: Arc<LogView>,
        stream: &StreamName,
        after: Version,
    ) -> Result<Self> {
        let plan = view.catalog.plan(&view, stream.as_str(), after)?;
        let known = plan.is_some();
        let Plan { stretches, recent, .. } = plan.unwrap_or_default();
        let mut stretches: Vec<_> = stretches.into_iter().map(Rows::new).collect();
        let mut left = AHEAD;
        for rows in &mut stretches {
            left = left.saturating_sub(rows.find(left));
        }
        look_ahead(&stretches);
        let mut reader = Self {
            view,
            stream: stream.clone(),
            behind: after,
            stretches: stretches.into_iter(),
            rows: None,
            kind: None,
            recent,
            given: 0,
            in_order: None,
        };
        if !known {
            reader.read_in_order()?;
        }
        Ok(reader)
    }

    fn read_in_order(&mut self) -> Result<()> {
        let streams = vec![NamePattern::Exact(self.stream.as_str().to_owned())];
        let filter = Filter { streams, types: Vec::new() };
        let read = Read::default().view(View::Written).filter(filter);
        let reader = Reader::new(Arc::clone(&self.view), read)?.behind(self.behind);
        self.in_order = Some(Box::new(reader));
        Ok(())
    }

    fn next_known(&mut self) -> Next {
        loop {
            if let Some(rows) = &mut self.rows {
                let Some(row) = rows.next() else {
                    self.rows = None;
                    continue;
                };
                let Some(row) = row else { return Next::Unknown };
                let held = Arc::clone(&rows.held);
                let Some(raw) = held.line(row) else { return Next::Unknown };
                let line = held.decode(row, &raw).filter(|line| held.batch_is_whole(row, line));
                return self.take(line.as_ref());
            }
            if let Some(rows) = self.stretches.next() {
                self.rows = Some(rows);
                continue;
            }
            let rest = self.recent.get(self.given..).filter(|rest| !rest.is_empty());
            let Some(rest) = rest else { return Next::End };
            let Some(end) = memchr::memchr(b'\n', rest) else { return Next::Unknown };
            let raw = rest.get(..=end).unwrap_or_default().to_vec();
            self.given += raw.len();
            return self.take(decode(&raw).ok().as_ref());
        }
    }

    /// Takes a line if it is the next event.
    fn take(&mut self, line: Option<&Line<'_>>) -> Next {
        let next = |line: &&Line<'_>| {
            line.fields.version == self.behind.next()
                && line.fields.stream.as_ref() == self.stream.as_str()
        };
        let Some(line) = line.filter(next) else { return Next::Unknown };
        let known = self.kind.take().filter(|kind| kind.as_str() == line.fields.kind);
        let Some(kind) = known.or_else(|| EventType::new(line.fields.kind).ok()) else {
            return Next::Unknown;
        };
        let record = Record::named(line, self.stream.clone(), kind);
        self.behind = record.version;
        self.kind = Some(record.kind.clone());
        Next::Record(Box::new(record))
    }
}

impl Iterator for StreamReader {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.in_order.is_none() {
            match self.next_known() {
                Next::Record(record) => return Some(Ok(Item::Record(record))),
                Next::End => return None,
                Next::Unknown => {}
            }
            if let Err(e) = self.read_in_order() {
                (self.rows, self.stretches, self.recent) =
                    (None, Vec::new().into_iter(), Vec::new());
                return Some(Err(e));
            }
        }
        let (behind, reader) = (self.behind, self.in_order.as_mut()?);
        reader.find(|item| match item {
            Ok(Item::Record(record)) => record.version > behind,
            _ => true,
        })
    }
}
