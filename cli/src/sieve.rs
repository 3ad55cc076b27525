//! Items of the log on their way to the screen: what is not wanted falls through, what is wanted comes out with what
//! it says between sessions, and gaps always come out.

use std::collections::VecDeque;

use annals_engine::clock::Timestamp;
use annals_engine::format::control;
use annals_engine::id::StoreId;
use annals_engine::session::audit::{Audit, Message, ORIGINS};
use annals_engine::store::{
    Cursor, Damage, EventStore, Filter, Item, NamePattern, Read, Record, View,
};

use crate::exit::Failure;
use crate::filter::{Reach, Wanted};
use crate::shown::{Apart, Shown};

/// How much further back each try of [`Sieve::last`] goes than the one before, in segments.
const FURTHER: usize = 4;

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
    store: StoreId,
    /// Behind the last event that passed by.
    pub(crate) cursor: Option<Cursor>,
    /// Behind the last event that can no longer be taken back.
    pub(crate) sure: Option<Cursor>,
    /// The events between the two.
    unsure: VecDeque<Cursor>,
    /// The gap that passed by last.
    gap: Option<Box<Damage>>,
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
        Self {
            wanted,
            messages_only,
            audit: Audit::default(),
            store,
            cursor: after,
            sure: after,
            unsure: VecDeque::new(),
            gap: None,
            over: false,
        }
    }

    /// The time after which nothing that happens is wanted.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        self.wanted.ends_at()
    }

    /// Whether something that has passed by could still be taken back.
    pub(crate) fn is_unsure(&self) -> bool {
        !self.unsure.is_empty()
    }

    /// Begins again after a cursor. What was learned stays: it is about the past, or comes again.
    pub(crate) fn begin(&mut self, after: Option<Cursor>) {
        self.cursor = after;
        self.sure = after;
        self.unsure.clear();
        self.gap = None;
        self.over = false;
    }

    /// Learns what the log says about whose events are and who speaks to whom in them, wherever it says so.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn learn_all(&mut self, store: &dyn EventStore) -> Result<(), Failure> {
        for kind in ORIGINS {
            let types = vec![NamePattern::Exact(kind.to_owned())];
            let filter = Filter { streams: Vec::new(), types };
            for item in store.read(Read::default().filter(filter))? {
                if let Item::Record(record) = item? {
                    self.learn(&record);
                }
            }
        }
        Ok(())
    }

    /// What is wanted.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// An event with what it says between sessions, if it says something, wanted or not.
    ///
    /// # Errors
    /// Whatever reading content that lies apart meets.
    pub(crate) fn message(
        &mut self,
        record: Box<Record>,
        store: &dyn EventStore,
    ) -> Result<Option<Shown>, Failure> {
        let Some(message) = self.learn(&record) else { return Ok(None) };
        Ok(Some(Shown::new(record, Some(message), store)?))
    }

    /// What to read so that everything wanted passes by.
    pub(crate) fn read(&self, view: View, reach: Reach) -> Read {
        Read::after(self.cursor).view(view).filter(self.wanted.narrowed(reach))
    }

    /// The last steps of what a view shows, at most so many, the oldest first. Afterwards the cursor stands at the end.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn last(
        &mut self,
        store: &dyn EventStore,
        view: View,
        count: usize,
    ) -> Result<VecDeque<Step>, Failure> {
        self.learn_all(store)?;
        let marks = landmarks(store, view)?;
        let mut back = 1;
        loop {
            let start = marks.len().checked_sub(back).and_then(|i| marks.get(i)).copied();
            self.begin(start);
            let last = self.last_from_here(store, view, count)?;
            if start.is_none() || last.len() >= count {
                return Ok(last);
            }
            back *= FURTHER;
        }
    }

    fn last_from_here(
        &mut self,
        store: &dyn EventStore,
        view: View,
        count: usize,
    ) -> Result<VecDeque<Step>, Failure> {
        let mut last = VecDeque::new();
        for item in store.read(self.read(view, Reach::Past))? {
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
            Item::Gap(damage) => return Ok(self.pass_gap(damage)),
        };
        let message = self.learn(&record);
        self.passed(&record);
        self.over |= self.wanted.is_over(&record);
        let told = !self.messages_only || message.is_some();
        if !told || !self.wanted.may_keep(&record) {
            return Ok(None);
        }
        let shown = Shown::new(record, message, store)?;
        Ok(self.wanted.keeps(&shown).then_some(Step::Event(Box::new(shown))))
    }

    /// A gap at the end of the log stands behind every cursor there, and comes again when reading goes on.
    fn pass_gap(&mut self, damage: Box<Damage>) -> Option<Step> {
        if self.gap.as_ref() == Some(&damage) {
            return None;
        }
        self.gap = Some(damage.clone());
        Some(Step::Gap(damage))
    }

    fn passed(&mut self, record: &Record) {
        let cursor = record.cursor(self.store);
        self.cursor = Some(cursor);
        self.unsure.push_back(cursor);
        while let Some(cursor) = self.unsure.pop_front_if(|c| c.seq() <= record.durable) {
            self.sure = Some(cursor);
        }
    }

    fn learn(&mut self, record: &Record) -> Option<Message> {
        self.wanted.learn(record);
        self.audit.message(record, usize::MAX)
    }
}

/// Places from which one can read on without having read what lies before, oldest first: the first line of each
/// segment. A store that has no segments has none.
fn landmarks(store: &dyn EventStore, view: View) -> Result<Vec<Cursor>, Failure> {
    let filter = Filter {
        streams: vec![NamePattern::Exact(control::STREAM.to_owned())],
        types: vec![NamePattern::Exact(control::OPENED.to_owned())],
    };
    let id = store.id();
    let mut marks = Vec::new();
    for item in store.read(Read::default().view(view).filter(filter))? {
        if let Item::Record(record) = item? {
            marks.push(record.cursor(id));
        }
    }
    Ok(marks)
}
