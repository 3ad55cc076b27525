//! A decision under the append lock: the next number of a count. Whoever decides on what is not the log's whole content
//! counts wrongly.

use std::sync::{Arc, Mutex};

use annals_engine::Result;
use annals_engine::clock::Timestamp;
use annals_engine::format::Payload;
use annals_engine::store::{Append, Cursor, Decider, Item, NewEvent};
use annals_tests::disk::Pid;
use annals_tests::history::{Found, Told, Wrong};

use super::machine::event;

const STREAM: &str = "count";

/// Counts the events of one stream and decides to append the next number.
pub(crate) struct Counter {
    seen: Option<Cursor>,
    count: u64,
    decisions: u64,
    process: Pid,
    told: Arc<Mutex<Told>>,
}

impl Counter {
    pub(crate) fn new(process: Pid, told: Arc<Mutex<Told>>) -> Self {
        Self { seen: None, count: 0, decisions: 0, process, told }
    }
}

impl Decider for Counter {
    fn seen(&self) -> Option<Cursor> {
        self.seen
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        if let Item::Record(record) = item {
            self.count += u64::from(record.stream.as_str() == STREAM);
        }
        self.seen = Some(*cursor);
    }

    fn restart(&mut self) {
        (self.seen, self.count) = (None, 0);
    }

    fn decide(&mut self, _: Timestamp) -> Result<Append> {
        self.decisions += 1;
        let number = self.count + 1;
        // Each decision is an event of its own, so that two that are both in the log are seen.
        let text = format!("{number} of {} by {}", self.decisions, self.process.0);
        let events: Vec<NewEvent> = vec![event(STREAM, &text, 5)];
        let mut told = self.told.lock().unwrap();
        let batch = told.send(events.clone());
        told.begin(self.process, batch);
        Ok(Append::new(events))
    }
}

/// Whether the events are a number that somebody decided on.
pub(crate) fn is_number(events: &[NewEvent]) -> bool {
    events.iter().any(|event| event.stream.as_str() == STREAM)
}

/// Every number of the count stands at the version of that number.
pub(crate) fn counts_rightly(found: &Found) -> Wrong {
    let number = |data: &Payload| {
        let text = data.as_str().strip_prefix(r#"{"text":""#)?;
        text.split(' ').next()?.parse().ok()
    };
    let counted = found.lines.iter().filter(|line| line.record.stream.as_str() == STREAM);
    counted
        .filter(|line| number(&line.record.data) != Some(line.record.version.0))
        .map(|line| format!("{} v{} is {}", line.record.seq, line.record.version, line.record.data))
        .collect()
}
