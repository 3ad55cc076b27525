//! Catching up with a log: long stretches are digested by several threads and the digests taken in order; what remains
//! is read in order and digested a little at a time. Both give what taking the events one by one gives, because a
//! stretch counts only where it follows, line by line, on what was taken before.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use crate::error::{ErrorKind, Result};
use crate::id::{Crc, Seq};
use crate::store::{Chain, Cursor, EventStore, Item, Read, Stretch, View};

use super::folded::{Folded, Went, voids};
use super::{Digestible, Projection, Saved};

/// How many items that are read in order are digested at a time.
const ITEMS: u64 = 4_096;

/// The most threads that read: beyond these the one that takes their digests is what takes the time.
const THREADS_MAX: usize = 8;

/// So many digests more than there are threads wait at the most to be taken.
const AHEAD: usize = 2;

/// How often stretches are asked for again behind damage.
const ATTEMPTS: usize = 16;

/// Brings a fold up to the end of a view. Where there is nothing new it is not touched; else it is copied first if
/// somebody else has it too. A fold of lines that are not part of the log any more begins again.
pub(super) fn catch_up<P: Digestible + Clone>(
    folded: &mut Arc<Folded<P>>,
    store: &dyn EventStore,
    view: View,
) -> Result<()> {
    let went = match go_on(folded, store, view) {
        Err(error) if folded.cursor.is_some() && *error.kind() == ErrorKind::HistoryChanged => {
            Went::Void
        }
        other => other?,
    };
    if went == Went::Void {
        *folded = Arc::new(Folded::default());
        go_on(folded, store, view)?;
    }
    Ok(())
}

fn go_on<P: Digestible + Clone>(
    folded: &mut Arc<Folded<P>>,
    store: &dyn EventStore,
    view: View,
) -> Result<Went> {
    let base = folded.as_of();
    for attempt in 1..=ATTEMPTS {
        let stretches = store.stretches(folded.cursor, view)?;
        if stretches.is_empty() {
            break;
        }
        let start = Cursor { store: store.id(), seq: Seq::ZERO, crc: Crc::NONE };
        match take_stretches(Arc::make_mut(folded), &stretches, start, base)? {
            Took::All => break,
            Took::Void => return Ok(Went::Void),
            Took::UpToBreak if attempt == ATTEMPTS => break,
            Took::UpToBreak => match read_on(folded, store, view, base, Until::BehindGap)? {
                Reached::BehindGap => {}
                Reached::End => return Ok(Went::On),
                Reached::Void => return Ok(Went::Void),
            },
        }
    }
    match read_on(folded, store, view, base, Until::End)? {
        Reached::Void => Ok(Went::Void),
        Reached::BehindGap | Reached::End => Ok(Went::On),
    }
}

/// How far reading in order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// To the end of the view.
    End,
    /// Until events follow on damage.
    BehindGap,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    End,
    BehindGap,
    /// See [`Went::Void`].
    Void,
}

fn read_on<P: Digestible + Clone>(
    folded: &mut Arc<Folded<P>>,
    store: &dyn EventStore,
    view: View,
    base: Seq,
    until: Until,
) -> Result<Reached> {
    let mut items = store.read(Read::after(folded.cursor).view(view))?;
    let mut gaps = false;
    loop {
        let mut digest = P::Digest::default();
        let mut reached = None;
        let mut events = 0;
        let mut count = 0;
        let mut ended = Ok(false);
        while count < ITEMS {
            match items.next() {
                Some(Ok(Item::Record(record))) => {
                    let fields = record.fields();
                    if voids(&fields, base) {
                        return Ok(Reached::Void);
                    }
                    digest.apply(&fields);
                    reached = Some(record.cursor(store.id()));
                    events += 1;
                }
                Some(Ok(Item::Gap(damage))) => {
                    digest.gap(&damage);
                    gaps = true;
                }
                Some(Err(error)) => {
                    ended = Err(error);
                    break;
                }
                None => {
                    ended = Ok(true);
                    break;
                }
            }
            count += 1;
        }
        if count > 0 {
            let folded = Arc::make_mut(folded);
            folded.state.take(digest);
            folded.cursor = reached.or(folded.cursor);
            folded.events += events;
        }
        if ended? {
            return Ok(Reached::End);
        }
        if gaps && until == Until::BehindGap {
            return Ok(Reached::BehindGap);
        }
    }
}

/// How much of some stretches was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Took {
    All,
    /// Up to one that does not follow on what was taken.
    UpToBreak,
    /// See [`Went::Void`].
    Void,
}

/// A stretch that was read.
struct Digested<D> {
    digest: D,
    chain: Chain,
    void: bool,
}

fn digest<P: Digestible>(stretch: &dyn Stretch, base: Seq) -> Result<Digested<P::Digest>> {
    let mut digest = P::Digest::default();
    let mut void = false;
    let chain = stretch.read(&mut |fields| {
        void |= voids(fields, base);
        digest.apply(fields);
    })?;
    Ok(Digested { digest, chain, void })
}

/// Takes a stretch that was read, if it follows on what was taken.
fn take<P: Digestible>(
    folded: &mut Folded<P>,
    digested: Digested<P::Digest>,
    start: Cursor,
) -> Result<Option<Took>> {
    let Digested { digest, chain, void } = digested;
    let (follows, last, events) = match chain {
        Chain::Whole { follows, last, events } => (follows, last, events),
        Chain::Empty => return Ok(None),
        Chain::Broken => return Ok(Some(Took::UpToBreak)),
    };
    if follows != folded.cursor.unwrap_or(start) {
        return Ok(Some(Took::UpToBreak));
    }
    if void {
        return Ok(Some(Took::Void));
    }
    folded.state.take(digest);
    folded.reached(last, events);
    Ok(None)
}

/// A fold that goes on from the newest snapshot that can be read. What came since is digested while the snapshot is
/// decoded, where there is a processor for each.
pub(super) fn restored<P: Digestible + Saved>(store: &dyn EventStore) -> Folded<P> {
    let Some(snapshot) = store.snapshot(P::NAME, P::schema(), None) else {
        return Folded::default();
    };
    let after = snapshot.cursor;
    let alone = thread::available_parallelism().map_or(1, NonZero::get) < 2;
    thread::scope(|scope| {
        let ahead = (!alone).then(|| scope.spawn(move || ahead::<P>(store, after)));
        let mut folded = Folded::restored(store, snapshot);
        let ahead = ahead.and_then(|ahead| ahead.join().ok()).and_then(Result::ok);
        if folded.cursor == Some(after) {
            for digested in ahead.into_iter().flatten() {
                // Whatever does not follow is read again, and judged, by who goes on.
                if !matches!(take(&mut folded, digested, after), Ok(None)) {
                    break;
                }
            }
        }
        folded
    })
}

/// The digests of a few stretches behind a cursor; none where there are so many that several threads take them.
fn ahead<P: Digestible>(store: &dyn EventStore, after: Cursor) -> Result<Vec<Digested<P::Digest>>> {
    let stretches = store.stretches(Some(after), View::Durable)?;
    if stretches.len() > AHEAD {
        return Ok(Vec::new());
    }
    stretches.iter().map(|stretch| digest::<P>(&**stretch, after.seq())).collect()
}

/// Takes stretches in order, as far as each follows on the one before. `start` is the cursor of an empty log.
fn take_stretches<P: Digestible>(
    folded: &mut Folded<P>,
    stretches: &[Box<dyn Stretch + '_>],
    start: Cursor,
    base: Seq,
) -> Result<Took> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    let mut take = |digested: Result<Digested<P::Digest>>| take(folded, digested?, start);
    if threads.min(stretches.len()) < 2 {
        for stretch in stretches {
            if let Some(took) = take(digest::<P>(&**stretch, base))? {
                return Ok(took);
            }
        }
        return Ok(Took::All);
    }
    let line = Line::new(threads + AHEAD);
    thread::scope(|scope| {
        let (give, given) = mpsc::channel();
        let line = &line;
        let _watch = PanicWatch(line);
        for _ in 0..threads.min(stretches.len()) {
            let give = give.clone();
            scope.spawn(move || {
                let _watch = PanicWatch(line);
                while let Some((number, stretch)) = line.next(stretches) {
                    if give.send((number, digest::<P>(&**stretch, base))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(give);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (number, digested) in given {
            early.insert(number, digested);
            while let Some(digested) = early.remove(&due) {
                due += 1;
                let took = take(digested);
                line.advance(if matches!(took, Ok(None)) { due } else { usize::MAX });
                if let Some(took) = took? {
                    return Ok(took);
                }
            }
        }
        Ok(Took::All)
    })
}

/// The stretches as they wait for threads. None is begun that lies too far ahead of those that were taken, so that
/// memory stays bounded.
struct Line {
    next: AtomicUsize,
    /// How many were taken; `usize::MAX` once no more are wanted.
    taken: Mutex<usize>,
    moved: Condvar,
    ahead_max: usize,
}

impl Line {
    const fn new(ahead_max: usize) -> Self {
        Self { next: AtomicUsize::new(0), taken: Mutex::new(0), moved: Condvar::new(), ahead_max }
    }

    fn next<'a, T>(&self, all: &'a [T]) -> Option<(usize, &'a T)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let stretch = all.get(number)?;
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |taken: &mut usize| number >= taken.saturating_add(self.ahead_max);
        let taken = self.moved.wait_while(taken, wait).unwrap_or_else(PoisonError::into_inner);
        (*taken != usize::MAX).then_some((number, stretch))
    }

    /// Notes that so many were taken; never fewer than before.
    fn advance(&self, taken: usize) {
        let mut known = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *known = taken.max(*known);
        self.moved.notify_all();
    }
}

/// Sends all away who wait in a line when its thread panics: the turn that they wait for does not come any more.
struct PanicWatch<'a>(&'a Line);

impl Drop for PanicWatch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.advance(usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::format::Fields;
    use crate::store::Damage;

    /// A fold that panics where it is told to.
    #[derive(Clone, Default)]
    struct Fragile;

    impl Projection for Fragile {
        fn apply(&mut self, event: &Fields<'_>) {
            assert_ne!(event.kind, "digest");
        }

        fn gap(&mut self, _: &Damage) {}
    }

    impl Digestible for Fragile {
        type Digest = Self;

        fn take(&mut self, _: Self) {
            panic!("a digest is taken");
        }
    }

    /// A stretch of one event.
    struct One {
        kind: &'static str,
        seq: u64,
    }

    impl One {
        fn cursor(seq: u64) -> Cursor {
            Cursor { store: crate::id::StoreId(uuid::Uuid::nil()), seq: Seq(seq), crc: Crc::NONE }
        }
    }

    impl Stretch for One {
        fn read(&self, show: &mut dyn FnMut(&Fields<'_>)) -> Result<Chain> {
            show(&Fields {
                seq: Seq(self.seq),
                time: crate::clock::Timestamp::EPOCH,
                durable: Seq::ZERO,
                prev: Crc::NONE,
                stream: "a".into(),
                version: crate::id::Version(self.seq),
                kind: self.kind,
                id: crate::id::EventId(uuid::Uuid::nil()),
                batch: None,
                cause: None,
                flow: None,
                blob: None,
                data: "{}",
            });
            let (follows, last) = (Self::cursor(self.seq - 1), Self::cursor(self.seq));
            Ok(Chain::Whole { follows, last, events: 1 })
        }
    }

    /// Goal: a fold that panics ends the replay with that panic, and leaves no thread waiting for its turn. Method: more
    /// stretches than may be begun at once, with a panic in the digest of the first and in taking it.
    #[test]
    fn a_panic_keeps_nobody_waiting() {
        for kind in ["digest", "take"] {
            let stretches: Vec<Box<dyn Stretch>> = (1..=100)
                .map(|seq| {
                    let kind = if seq == 1 { kind } else { "other" };
                    Box::new(One { kind, seq }) as Box<dyn Stretch>
                })
                .collect();
            let mut folded = Folded::<Fragile>::default();
            let replay =
                || take_stretches(&mut folded, &stretches, One::cursor(0), Seq::ZERO).is_ok();
            assert!(catch_unwind(AssertUnwindSafe(replay)).is_err(), "{kind}");
        }
    }
}
