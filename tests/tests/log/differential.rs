//! The same script on the real disk and on the simulated one: the same answers, the same files.

use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::format::{LOG_DIR, TORN_DIR, segment_path};
use annals_engine::id::{Seq, StreamName, Version};
use annals_engine::log::{Log, Options, repair, verify};
use annals_engine::storage::{Access, Disk, Storage, read_full, write_full};
use annals_engine::store::{Append, Durability, EventStore, Expected, Item, NewEvent, Read, View};
use annals_tests::disk::SimDisk;

use super::machine::event;

/// One run of the script: what was said at each step, without what differs between any two stores.
struct Run {
    storage: Arc<dyn Storage>,
    clock: Arc<ManualClock>,
    said: Vec<String>,
}

impl Run {
    fn open(&mut self) -> Option<Log> {
        let options = Options { segment_bytes: 3_000, ..Options::default() };
        let opened = Log::open(Arc::clone(&self.storage), Arc::clone(&self.clock) as _, options);
        self.said.push(match &opened {
            Ok(_) => "open".to_owned(),
            Err(error) => format!("open: {:?} {}", error.kind(), error.message()),
        });
        opened.ok()
    }

    fn append(&mut self, log: &Log, append: Append) {
        self.said.push(match log.append(append) {
            Ok(appended) => {
                let at = appended.positions.iter().map(|p| (p.seq.0, p.version.0));
                format!("appended {:?}, repeated {}", at.collect::<Vec<_>>(), appended.repeated)
            }
            Err(error) => {
                let place = error.place();
                format!("{:?} {:?} {:?}", error.kind(), place.offset, place.seq)
            }
        });
    }

    fn read(&mut self, log: &Log) {
        for view in [View::Durable, View::Written] {
            for item in log.read(Read::default().view(view)).unwrap() {
                self.said.push(match item.unwrap() {
                    Item::Record(r) => format!("{} {} v{} {}", r.seq, r.stream, r.version, r.kind),
                    Item::Gap(d) => {
                        format!(
                            "gap {:?} {} {} {:?} {}",
                            d.class, d.offset, d.bytes, d.seqs, d.accepted
                        )
                    }
                });
            }
        }
    }

    fn verify(&mut self) {
        let report = verify(&self.storage, &mut |_| {}).unwrap();
        let damages: Vec<_> = report
            .damages
            .iter()
            .map(|d| (d.class, d.offset, d.bytes, d.seqs, d.accepted))
            .collect();
        self.said.push(format!("{} lines, durable {}, {damages:?}", report.lines, report.durable));
    }

    /// The files of the store with their lengths; names that hold a hash of random bytes are cut before it.
    fn files(&mut self) {
        for dir in ["", LOG_DIR, TORN_DIR] {
            for name in self.storage.list(dir).unwrap_or_default() {
                let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
                let len = if self.storage.list(&path).is_ok() {
                    0
                } else {
                    self.storage.stat(&path).unwrap().len
                };
                let known = if dir == TORN_DIR { name.split('.').next().unwrap() } else { &name };
                self.said.push(format!("{dir}/{known} {len}"));
            }
        }
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.storage.open(path, Access::Write).unwrap();
        let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
        read_full(&*file, &mut bytes, 0).unwrap();
        change(&mut bytes);
        file.truncate(bytes.len() as u64).unwrap();
        write_full(&*file, &bytes, 0).unwrap();
    }

    fn active(&self) -> String {
        let names = self.storage.list(LOG_DIR).unwrap();
        let firsts = names.iter().filter_map(|name| annals_engine::format::segment_first(name));
        segment_path(firsts.max().unwrap())
    }
}

fn one(stream: &str, text: &str, bytes: usize) -> Vec<NewEvent> {
    vec![event(stream, text, bytes)]
}

/// Appends of all sorts, rolls, reopenings, a torn tail, damage and its repair.
fn play(storage: Arc<dyn Storage>) -> Vec<String> {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
    let mut run = Run { storage, clock, said: Vec::new() };
    let name = |name: &str| StreamName::new(name).unwrap();
    let log = run.open().unwrap();
    run.append(&log, Append::new(one("s1", "a", 5)));
    run.append(&log, Append::new(vec![event("s1", "b1", 300), event("s2", "b2", 5)]));
    run.append(&log, Append::new(one("s1", "a", 5)));
    run.append(&log, Append::new(one("s1", "a", 6)));
    run.append(&log, Append::new(one("s2", "c", 5)).expecting(name("s2"), Expected::NoStream));
    let at = Expected::Version(Version(1));
    run.append(&log, Append::new(one("s2", "c", 5)).expecting(name("s2"), at));
    run.append(&log, Append::new(one("s3", "d", 900)).durability(Durability::Buffered));
    for n in 0..6 {
        run.append(&log, Append::new(one("s3", &n.to_string(), 500)));
    }
    run.read(&log);
    drop(log);
    run.files();
    run.change(&run.active(), |bytes| bytes.extend_from_slice(b"{\"seq\":99,\"time"));
    run.verify();
    let log = run.open().unwrap();
    run.append(&log, Append::new(one("s1", "e", 5)));
    run.append(&log, Append::new(one("s1", "f", 5)));
    run.read(&log);
    drop(log);
    run.change(&run.active(), |bytes| {
        let at = bytes.len() - 300;
        bytes[at] ^= 1;
    });
    run.verify();
    let log = run.open().unwrap();
    run.append(&log, Append::new(one("s1", "g", 5)));
    run.read(&log);
    drop(log);
    let clock = Arc::clone(&run.clock) as _;
    let accepted =
        repair(Arc::clone(&run.storage), clock, Options::default(), "seen", &mut |_| {}).unwrap();
    run.said.push(format!(
        "{} accepted, {} copies",
        accepted.accepted.len(),
        accepted.copies.len()
    ));
    let log = run.open().unwrap();
    run.append(&log, Append::new(one("s1", "g", 5)));
    run.read(&log);
    drop(log);
    run.verify();
    run.files();
    assert!(run.said.len() > 60 && run.active() != segment_path(Seq(1)));
    run.said
}

/// Both disks say the same, line by line.
#[test]
fn both_disks_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let real = play(Arc::new(Disk::new(folder.path().join("store"))));
    let simulated = play(SimDisk::new(1).process("script"));
    for (n, (real, simulated)) in real.iter().zip(&simulated).enumerate() {
        assert_eq!(real, simulated, "step {n}");
    }
    assert_eq!(real.len(), simulated.len());
}
