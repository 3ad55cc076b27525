//! A simulated machine with a store on it, and the words in which the tests speak of both.

use std::sync::{Arc, Mutex, MutexGuard};

use super::counter::{Counter, counts_rightly};
use annals_engine::Result;
use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::log::{Log, Options};
use annals_engine::storage::Storage;
use annals_engine::store::{
    Append, Appended, Cursor, Durability, EventStore, Item, NewEvent, Read,
};
use annals_tests::disk::{Call, Kernel, Loss, Op, Pid, SimDisk, Stop, View};
use annals_tests::history::{
    Found, Told, Wrong, bytes_are_kept, only_whole_lines, path, prefix_of, segments, told_is_there,
    torn_is_named,
};

/// The name of no file.
const OPENED: &str = "opened";

/// A machine, its clock, and what callers on it were told.
pub(crate) struct Machine {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) segment_bytes: u64,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            disk: SimDisk::new(seed),
            clock: Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000))),
            told: Arc::default(),
            segment_bytes: 64 << 20,
        }
    }

    /// Makes segments roll when they have so many bytes.
    pub(crate) fn rolling_at(self, segment_bytes: u64) -> Self {
        Self { segment_bytes, ..self }
    }

    /// Another machine in the same state, whose callers were told the same.
    pub(crate) fn on(&self, disk: SimDisk) -> Self {
        let clock = Arc::clone(&self.clock);
        let told = Arc::new(Mutex::new(self.told().clone()));
        Self { disk, clock, told, segment_bytes: self.segment_bytes }
    }

    pub(crate) fn opener(&self) -> Opener {
        Opener {
            clock: Arc::clone(&self.clock),
            told: Arc::clone(&self.told),
            segment_bytes: self.segment_bytes,
        }
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    /// Opens the log in a process on this thread.
    pub(crate) fn open(&self) -> Result<Client> {
        self.opener().open(self.disk.process("direct"))
    }

    /// Starts a process that opens the log, again when that fails once, and appends these batches one after the other.
    pub(crate) fn writer(&self, name: &str, batches: Vec<Vec<NewEvent>>) -> Pid {
        let opener = self.opener();
        self.disk.spawn(name, move |view| {
            let client = opener.open(view.clone()).or_else(|_| opener.open(view.clone())).unwrap();
            // A call that means nothing, to be held at.
            let _ = view.stat(OPENED);
            for batch in batches {
                let _ = client.append(batch);
            }
        })
    }

    /// Runs a process until it has opened the log and begins to append.
    pub(crate) fn until_it_has_opened(&self, pid: Pid) {
        let stop = self.disk.run_until(pid, |_, call| call.op == Op::Stat && &*call.name == OPENED);
        assert_eq!(stop, Stop::Reached);
    }

    /// Runs a process until it is about to sync the log after it has written the event with this text.
    pub(crate) fn until_it_syncs(&self, pid: Pid, text: &str) {
        let stop = self
            .disk
            .run_until(pid, |kernel, call| call.syncs("log/") && log_contains(kernel, text));
        assert_eq!(stop, Stop::Reached);
    }

    /// Runs a process until it has written the event with this text and waits for the lock of syncing.
    pub(crate) fn until_it_has_written(&self, pid: Pid, text: &str) {
        let stop = self
            .disk
            .run_until(pid, |kernel, call| call.locks("lock.sync") && log_contains(kernel, text));
        assert!(matches!(stop, Stop::Reached | Stop::Blocked(_)), "{stop:?}");
    }

    /// The power fails; callers that were only told "written" may find nothing.
    pub(crate) fn power_loss(&self, loss: &Loss) {
        self.disk.power_loss(loss);
        self.told().power_loss();
    }

    /// Opens the log after a crash and holds what is there against what was told, the lines that were there before, and
    /// the bytes of the images that nothing but recovery has changed since.
    pub(crate) fn check_recovery(&self, before: Option<&Found>, images: &[&Kernel]) -> Wrong {
        match self.open() {
            Ok(client) => self.check(&client.log, before, images),
            Err(error) => vec![format!("the log does not open: {error}")],
        }
    }

    pub(crate) fn check(&self, log: &Log, before: Option<&Found>, images: &[&Kernel]) -> Wrong {
        let found = self.disk.look(Found::read);
        let mut wrong = told_is_there(&self.told(), &found);
        self.disk.look(|now| {
            wrong.extend(only_whole_lines(now, &found));
            wrong.extend(torn_is_named(now, &found));
            for image in images {
                wrong.extend(bytes_are_kept(image, now, &found));
            }
        });
        // A sync that failed may have put a line on the platter that no process saw any more: it may come back.
        if let Some(before) = before.filter(|_| !self.told().syncs_fail) {
            wrong.extend(prefix_of(before, &found));
        }
        wrong.extend(counts_rightly(&found));
        wrong.extend(reader_agrees(log, &found));
        wrong
    }
}

/// What a process needs to use the store.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) told: Arc<Mutex<Told>>,
    pub(crate) segment_bytes: u64,
}

impl Opener {
    pub(crate) fn open(&self, view: Arc<View>) -> Result<Client> {
        let options = Options {
            segment_bytes: self.segment_bytes,
            index_bytes: self.segment_bytes / 3,
            ..Options::default()
        };
        let pid = view.pid();
        let log = Log::open(view, Arc::clone(&self.clock) as _, options)?;
        Ok(Client { log, pid, told: Arc::clone(&self.told) })
    }
}

/// Reads on from a cursor as far as the log is durable, and remembers what was shown. Returns where it stands then.
///
/// # Errors
/// What opening and reading say.
pub(crate) fn read_durable(
    opener: &Opener,
    view: Arc<View>,
    mut cursor: Option<Cursor>,
) -> Result<Option<Cursor>> {
    let log = Log::open_read_only(view, Options::default())?;
    for item in log.read(Read::after(cursor))? {
        match item? {
            Item::Record(record) => {
                opener.told.lock().unwrap().show(record.seq, record.crc);
                cursor = Some(record.cursor(log.id()));
            }
            Item::Gap(damage) if damage.seqs.is_none() => {}
            Item::Gap(damage) => {
                opener.told.lock().unwrap().wrong.push(format!("I3: false damage: {damage:?}"));
            }
        }
    }
    Ok(cursor)
}

/// A process that has the log open and remembers what it was told.
pub(crate) struct Client {
    pub(crate) log: Log,
    pub(crate) pid: Pid,
    told: Arc<Mutex<Told>>,
}

impl Client {
    /// Appends a batch, new or sent before, and waits for the disk.
    pub(crate) fn append(&self, events: Vec<NewEvent>) -> Result<Appended> {
        self.append_with(events, Durability::Synced)
    }

    pub(crate) fn append_with(
        &self,
        events: Vec<NewEvent>,
        durability: Durability,
    ) -> Result<Appended> {
        {
            let mut told = self.told.lock().unwrap();
            let known = told.sent.iter().position(|sent| *sent == events);
            let batch = known.unwrap_or_else(|| told.send(events.clone()));
            told.begin(self.pid, batch);
        }
        let result = self.log.append(Append::new(events).durability(durability));
        self.told.lock().unwrap().answer(self.pid, durability, &result);
        result
    }
}

impl Client {
    /// A counter whose decisions are remembered as this process's.
    pub(crate) fn counter(&self) -> Counter {
        Counter::new(self.pid, Arc::clone(&self.told))
    }

    /// Appends the next number of the count.
    pub(crate) fn count(&self, counter: &mut Counter, durability: Durability) -> Result<Appended> {
        let result = self.log.append_deciding(counter, durability);
        self.told.lock().unwrap().answer(self.pid, durability, &result);
        result
    }
}

/// An event whose identity follows from its text, with some bytes of filling.
pub(crate) fn event(stream: &str, text: &str, bytes: usize) -> NewEvent {
    let data = format!(r#"{{"text":"{text}","fill":"{}"}}"#, "x".repeat(bytes));
    NewEvent {
        id: EventId::derived("key", "test", text),
        stream: StreamName::new(stream).unwrap(),
        kind: EventType::new("x.test.noted").unwrap(),
        cause: None,
        flow: None,
        data: Payload::from_json(&data).unwrap(),
    }
}

/// Whether some segment holds the event with this text.
pub(crate) fn log_contains(kernel: &Kernel, text: &str) -> bool {
    let needle = format!(r#""text":"{text}""#);
    segments(kernel).iter().any(|segment| {
        let bytes = kernel.bytes(&path(segment)).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    })
}

/// The path of the segment that is written to.
pub(crate) fn active(kernel: &Kernel) -> String {
    path(segments(kernel).last().unwrap())
}

/// Whether a call writes a line that contains this text. The bytes are not in the call, so it is told by what follows:
/// the first write to the log after which the text is there.
pub(crate) fn is_write_to_log(call: &Call) -> bool {
    matches!(call.op, Op::WriteAt { .. }) && call.name.starts_with("log/")
}

/// What the engine's reader shows is what lies on the disk, and it reports no damage.
fn reader_agrees(log: &Log, found: &Found) -> Wrong {
    use annals_engine::store::{Health, View};
    let mut wrong = Wrong::new();
    let items = match log.read(Read::default().view(View::Written)) {
        Ok(items) => items.collect::<Result<Vec<Item>>>(),
        Err(error) => Err(error),
    };
    match items {
        Ok(items) => {
            let records: Vec<_> = items
                .iter()
                .filter_map(|item| match item {
                    Item::Record(record) => Some(&**record),
                    Item::Gap(damage) => {
                        wrong.push(format!("I3: false damage: {damage:?}"));
                        None
                    }
                })
                .collect();
            if !records.iter().copied().eq(found.lines.iter().map(|line| &line.record)) {
                wrong.push(format!(
                    "the reader shows {} events, the files hold {}",
                    records.len(),
                    found.lines.len()
                ));
            }
        }
        Err(error) => wrong.push(format!("reading fails: {error}")),
    }
    match log.health() {
        Ok(Health::Ok) => {}
        other => wrong.push(format!("health: {other:?}")),
    }
    wrong
}
