//! What every store must do, written against [`EventStore`] alone. [`conformance!`](crate::conformance!) makes one test
//! of each check for a store that lives in one handle, [`persistence!`](crate::persistence!) those for a store that can
//! be opened again.
//!
//! Positions in the log are the store's own matter: a check compares the order of the events that it appended, and
//! passes over control lines.
#![expect(clippy::unwrap_used, reason = "a check panics where a store breaks the contract")]

use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::format::{Payload, control};
use annals_engine::id::{EventId, EventType, StreamName, Version};
use annals_engine::store::{
    Append, Appended, Cursor, EventStore, Follow, Followed, Item, Items, MemoryStore, NewEvent,
    Read, Record,
};
use annals_engine::{ErrorKind, Result};

pub mod append;
pub mod deciding;
pub mod follow;
pub mod identity;
pub mod persistent;
pub mod read;

/// How long a follower waits before a check takes it for lost: a guard against hanging, never a measure.
const PATIENCE: Duration = Duration::from_secs(120);

type Open = Box<dyn Fn(Arc<dyn Clock>) -> Arc<dyn EventStore> + Send + Sync>;

/// A store under test and the clock that it reads.
pub struct Subject {
    /// A handle on it.
    pub store: Arc<dyn EventStore>,
    /// Its clock, which stands still until a check moves it.
    pub clock: Arc<ManualClock>,
    open: Open,
}

impl Subject {
    /// An empty store. `open` is called again where a check wants a second handle on the same store.
    pub fn new(
        open: impl Fn(Arc<dyn Clock>) -> Arc<dyn EventStore> + Send + Sync + 'static,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
        let store = open(clock.clone());
        Self { store, clock, open: Box::new(open) }
    }

    /// Another handle on the same store.
    #[must_use]
    pub fn another(&self) -> Arc<dyn EventStore> {
        (self.open)(self.clock.clone())
    }

    /// Closes the handle, which must be the only one, and opens the store again.
    pub fn reopen(&mut self) {
        self.store = Arc::new(MemoryStore::new(self.clock.clone()));
        self.store = (self.open)(self.clock.clone());
    }

    /// A new event whose text is `n`.
    #[must_use]
    pub fn event(&self, stream: &str, n: u64) -> NewEvent {
        event(EventId::new(self.clock.now()), stream, n)
    }

    /// Appends one new event, synced.
    pub fn put(&self, stream: &str, n: u64) -> Appended {
        self.store.append(Append::new(vec![self.event(stream, n)])).unwrap()
    }

    /// Every event of the log, control lines left out.
    #[must_use]
    pub fn events(&self) -> Vec<Record> {
        events(self.store.read(Read::default()).unwrap())
    }

    /// Asserts that `attempt` is refused with an error of this kind and leaves no trace in the log.
    pub fn refused(&self, attempt: Append, fits: impl Fn(&ErrorKind) -> bool) {
        let before = self.events();
        let error = self.store.append(attempt).unwrap_err();
        assert!(fits(error.kind()), "{:?}: {error}", error.kind());
        assert_eq!(self.events(), before, "a refused append left something");
    }
}

/// The name of a stream.
#[must_use]
pub fn stream(name: &str) -> StreamName {
    StreamName::new(name).unwrap()
}

/// An event of type `x.test.noted` whose text is `n`.
#[must_use]
pub fn event(id: EventId, on: &str, n: u64) -> NewEvent {
    NewEvent {
        id,
        stream: stream(on),
        kind: EventType::new("x.test.noted").unwrap(),
        cause: None,
        flow: None,
        data: data(n),
    }
}

/// The payload whose text is `n`.
#[must_use]
pub fn data(n: u64) -> Payload {
    Payload::from_json(&format!(r#"{{"text":"{n}"}}"#)).unwrap()
}

/// The events among the items, control lines left out; a gap is a failure.
#[must_use]
pub fn events(items: Items<'_>) -> Vec<Record> {
    items.filter_map(|item| own(item.unwrap())).collect()
}

/// The record of an item that is no control line.
fn own(item: Item) -> Option<Record> {
    match item {
        Item::Record(record) => (record.stream.as_str() != control::STREAM).then_some(*record),
        Item::Gap(damage) => panic!("a gap in a store that nobody damaged: {damage:?}"),
    }
}

/// What tells events apart in a failure: stream, version and payload.
#[must_use]
pub fn told(records: &[Record]) -> Vec<String> {
    let tell = |r: &Record| format!("{}@{} {}", r.stream, r.version, r.data);
    records.iter().map(tell).collect()
}

/// The next event that a follower gives, control lines and the ends that it reaches left out.
fn next_event(follower: &mut (dyn Follow + '_)) -> Record {
    loop {
        match follower.next(Some(PATIENCE)).unwrap() {
            Followed::Item(item) => {
                if let Some(record) = own(item) {
                    return record;
                }
            }
            Followed::CaughtUp(_) => {}
            Followed::Quiet => panic!("the follower waits for an event that is in the log"),
        }
    }
}

/// Everything that a follower gives until it says that there is nothing more, and where it says that it is then.
fn until_caught_up(follower: &mut (dyn Follow + '_)) -> (Vec<Record>, Option<Cursor>) {
    let mut records = Vec::new();
    loop {
        match follower.next(Some(PATIENCE)).unwrap() {
            Followed::Item(item) => records.extend(own(item)),
            Followed::CaughtUp(cursor) => return (records, cursor),
            Followed::Quiet => panic!("quiet before the end was told"),
        }
    }
}

/// The same position with the checksum of another line.
fn rewritten(cursor: &Cursor) -> Cursor {
    let text = cursor.to_string();
    let parts: Vec<&str> = text.split('.').collect();
    let [seq, crc, store] = parts.as_slice() else { panic!("{text}") };
    let crc = u32::from_str_radix(crc, 16).unwrap() ^ 1;
    format!("{seq}.{crc:08x}.{store}").parse().unwrap()
}

fn version(n: u64) -> Version {
    Version(n)
}

fn kind_of<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it goes ahead"),
        Err(error) => error.kind().clone(),
    }
}

/// Makes one test of each check that holds for every store: `conformance!(name, subject)`, where `subject` is a
/// function that gives a [`Subject`] with an empty store.
#[macro_export]
macro_rules! conformance {
    ($store:ident, $subject:expr) => {
        $crate::checks!($store, $subject, {
            append: versions_are_dense, expectations_that_hold, conflicts,
                conflict_on_a_stream_not_written, batches_over_streams, all_or_nothing,
                limits_of_a_batch, limit_of_a_line, contents_too_big_for_a_line, reserved_names, nothing_to_append,
                content_survives, times_follow_the_order, one_winner_per_version,
                appends_from_many_threads;
            identity: repeats, repeats_of_parts, reused_ids, partly_known_batches,
                an_id_twice_in_a_batch, age_of_ids;
            deciding: told_its_position, sees_everything_first, counts_without_loss, refusals, deciding_nothing,
                folds_of_lost_lines_begin_again, folds_of_another_store, decided_conflicts, decided_repeats;
            read: from_every_cursor, cursors_as_text, cursors_of_another_history, filters,
                one_stream, one_stream_of_some_types, heads_and_ends, written_and_durable, batches_come_whole,
                lines_and_chain;
            follow: old_then_new, the_end_is_told, filtered_places_count, resumed_at_every_place,
                no_gap_between_looking_and_waiting, whole_batches_from_many_threads,
                foreign_cursors;
        });
    };
}

/// Makes one test of each check that holds for a store that can be opened again.
#[macro_export]
macro_rules! persistence {
    ($store:ident, $subject:expr) => {
        $crate::checks!($store, $subject, {
            persistent: everything_is_there_again, handles_see_each_other,
                a_follower_sees_another_handle, handles_count_without_loss,
                repeats_through_another_handle;
        });
    };
}

/// One test per check, in a module named after the store.
#[doc(hidden)]
#[macro_export]
macro_rules! checks {
    ($store:ident, $subject:expr, { $($group:ident: $($check:ident),+;)+ }) => {
        mod $store {
            $(mod $group {
                $(#[test]
                fn $check() {
                    $crate::conformance::$group::$check(&mut $subject());
                })+
            })+
        }
    };
}
