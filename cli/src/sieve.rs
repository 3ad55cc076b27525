//! Items of the log on their way to the screen: what is not wanted falls through, what is wanted comes out with what
//! it says between sessions, and gaps always come out.

use std::collections::VecDeque;

use annals_engine::id::StoreId;
use annals_engine::session::audit::{Audit, Message};
use annals_engine::store::{Cursor, Damage, EventStore, Item, Read, Record, View};

use crate::exit::Failure;
use crate::filter::{self, Wanted};
use crate::shown::{Apart, Shown};

/// What comes out.
pub(crate) enum Step {
    /// An event that is wanted.
    Event(Box<Shown>),
    /// Events that should be here cannot be read.
    Gap(Box<Damage>),
}

impl Step {
    /// Whether something of the log cannot be shown here.
    pub(crate) fn misses_something(&self) -> bool {
        match self {
            Self::Gap(_) => true,
            Self::Event(shown) => matches!(shown.apart, Apart::Lost(_)),
        }
    }
}

/// The sieve of one query.
pub(crate) struct Sieve {
    wanted: Wanted,
    messages_only: bool,
    audit: Audit,
    /// Where reading is, or would be if nothing came.
    pub(crate) cursor: Option<Cursor>,
    pub(crate) store: StoreId,
    /// Whether nothing more can be wanted.
    pub(crate) over: bool,
}

impl Sieve {
    /// A sieve for what comes after a cursor.
    pub(crate) fn new(
        wanted: Wanted,
        messages_only: bool,
        after: Option<Cursor>,
        store: StoreId,
    ) -> Self {
        Self { wanted, messages_only, audit: Audit::default(), cursor: after, store, over: false }
    }

    /// Begins again after a cursor, having seen nothing.
    pub(crate) fn restart(&mut self, after: Option<Cursor>) {
        self.cursor = after;
        self.audit = Audit::default();
    }

    /// Learns what the log says up to the cursor about what comes behind it, and gives what to read from there.
    ///
    /// # Errors
    /// `HistoryChanged` when the cursor is not of this history; whatever reading meets.
    pub(crate) fn read(&mut self, store: &dyn EventStore, view: View) -> Result<Read, Failure> {
        let read = Read::after(self.cursor).view(view).filter(self.wanted.narrowed());
        let Some(after) = self.cursor else { return Ok(read) };
        drop(store.read(read.clone())?);
        for item in store.read(Read::default().filter(filter::origins()))? {
            match item? {
                Item::Record(record) if record.seq > after.seq() => break,
                Item::Record(record) => drop(self.learn(&record)),
                Item::Gap(_) => {}
            }
        }
        Ok(read)
    }

    fn learn(&mut self, record: &Record) -> Option<Message> {
        self.wanted.learn(record);
        self.audit.message(record, usize::MAX)
    }

    /// The last steps of what a view shows, at most so many, the oldest first.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn last(
        &mut self,
        store: &dyn EventStore,
        view: View,
        count: usize,
    ) -> Result<VecDeque<Step>, Failure> {
        let mut last = VecDeque::new();
        for item in store.read(self.read(store, view)?)? {
            last.extend(self.pass(item?, store)?);
            if last.len() > count {
                last.pop_front();
            }
            if self.over {
                break;
            }
        }
        Ok(last)
    }

    /// Takes the next item of the log.
    ///
    /// # Errors
    /// Whatever reading content that lies apart meets.
    pub(crate) fn pass(
        &mut self,
        item: Item,
        store: &dyn EventStore,
    ) -> Result<Option<Step>, Failure> {
        let record = match item {
            Item::Record(record) => record,
            Item::Gap(damage) => return Ok(Some(Step::Gap(damage))),
        };
        let message = self.learn(&record);
        self.cursor = Some(record.cursor(self.store));
        self.over |= self.wanted.is_over(&record);
        let told = !self.messages_only || message.is_some();
        if !told || !self.wanted.may_keep(&record) {
            return Ok(None);
        }
        let shown = Shown::new(record, message, store)?;
        Ok(self.wanted.keeps(&shown).then_some(Step::Event(Box::new(shown))))
    }
}
