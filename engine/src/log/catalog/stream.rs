//! Reading one stream by what is kept open. Each line is verified as it is given, and its version is the next one; at
//! the first that is not, the stream is read on in order, so that damage comes as a gap.

use std::ops::Range;
use std::sync::Arc;

use super::Plan;
use super::held::Held;
use crate::error::Result;
use crate::format::{Line, decode};
use crate::id::{StreamName, Version};
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
    stretches: std::vec::IntoIter<(Arc<Held>, u64)>,
    /// The stretch that is read, and the places of the rows that are left of it.
    rows: Option<(Arc<Held>, Range<u64>)>,
    /// The lines behind all stretches, and how many bytes of them were given.
    recent: Vec<u8>,
    given: usize,
    /// Reads in order, once something was not as expected.
    in_order: Option<Box<Reader>>,
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
        let mut reader = Self {
            view,
            stream: stream.clone(),
            behind: after,
            stretches: stretches.into_iter(),
            rows: None,
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
            if let Some((held, places)) = &mut self.rows {
                let Some(place) = places.next() else {
                    self.rows = None;
                    continue;
                };
                let Some(row) = held.index.row_at(place) else { return Next::Unknown };
                let held = Arc::clone(held);
                let Some(raw) = held.line(row) else { return Next::Unknown };
                let line = held.decode(row, &raw).filter(|line| held.batch_is_whole(row, line));
                return self.take(line.as_ref());
            }
            if let Some((held, skip)) = self.stretches.next() {
                let Some(posted) = held.index.posted(self.stream.as_str()) else {
                    return Next::Unknown;
                };
                let end = posted.start.saturating_add(posted.count);
                self.rows = Some((held, posted.start.saturating_add(skip)..end));
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
        let record = line.filter(next).and_then(|line| Record::from_line(line).ok());
        match record {
            Some(record) => {
                self.behind = record.version;
                Next::Record(Box::new(record))
            }
            None => Next::Unknown,
        }
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
