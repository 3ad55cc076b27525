//! Disks that are really full and writes that are really short: a small memory file system, and the kernel's limit on
//! the size of a file.

#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(clippy::disallowed_methods, reason = "the tests fill a disk and start processes")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use annals_engine::ErrorKind;
use annals_engine::clock::{Clock, SystemClock};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::log::{Log, Options, verify};
use annals_engine::storage::{Disk, Storage};
use annals_engine::store::{Append, EventStore, Item, NewEvent, Read, View};

/// A file system of so many KiB in memory, gone when the value is dropped; `None` where this user may not mount one.
struct Small(PathBuf);

impl Small {
    fn mount(at: &Path, kib: u32) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_path_buf()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn event(text: &str) -> NewEvent {
    NewEvent {
        id: EventId::new(SystemClock.now()),
        stream: StreamName::new("a").unwrap(),
        kind: EventType::new("x.test.said").unwrap(),
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "text": text })).unwrap(),
    }
}

fn open(dir: &Path, segment_bytes: u64) -> annals_engine::Result<Log> {
    let options = Options { segment_bytes, index_bytes: segment_bytes / 3, ..Options::default() };
    Log::open(Arc::new(Disk::new(dir)), Arc::new(SystemClock), options)
}

/// The ids of every event, and the proof that nothing in the log is damaged.
fn ids(dir: &Path) -> Vec<EventId> {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir));
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    let log = Log::open_read_only(storage, Options::default()).unwrap();
    log.read(Read::default().view(View::Written))
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(r) if r.kind.as_str() == "x.test.said" => Some(r.id),
            Item::Record(_) => None,
            Item::Gap(gap) => panic!("{gap:?}"),
        })
        .collect()
}

/// Appends until the disk is full, in segments of several sizes so that it fills in the middle of an append, of a seal
/// and of a new segment: the error is `Full`, reads go on, what was acknowledged is there and nothing else; after a
/// file is removed the same handle appends again, and so does a fresh one.
#[test]
fn a_full_disk_fills_and_empties() {
    for (round, segment_bytes) in [4_000, 9_000, 64 << 20].into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let Some(small) = Small::mount(&dir.path().join("small"), 256) else {
            println!("skipped: this user may not mount a file system");
            return;
        };
        let ballast = small.0.join("ballast");
        std::fs::write(&ballast, vec![0; 100 << 10]).unwrap();
        let store = small.0.join("store");
        let log = open(&store, segment_bytes).unwrap();
        let mut acknowledged = Vec::new();
        let error = loop {
            let event = event(&"x".repeat(700 + round * 13));
            match log.append(Append::new(vec![event.clone()])) {
                Ok(_) => acknowledged.push(event.id),
                Err(e) => break e,
            }
        };
        assert_eq!(*error.kind(), ErrorKind::Full, "{error}");
        assert!(acknowledged.len() > 10, "{}", acknowledged.len());
        assert_eq!(ids(&store), acknowledged);

        std::fs::remove_file(&ballast).unwrap();
        for log in [log, open(&store, segment_bytes).unwrap()] {
            let event = event("there is room again");
            log.append(Append::new(vec![event.clone()])).unwrap();
            acknowledged.push(event.id);
        }
        assert_eq!(ids(&store), acknowledged);
    }
}

/// The kernel cuts a write short at the limit of a file's size: the append is refused as `Full`, no half line stays, and
/// a process without the limit goes on.
#[test]
fn a_write_is_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" append \"$1\" a 1000 100000000";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_scribe")])
        .arg(&store)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.pop(), Some("error full"));
    assert!(lines.len() > 10, "{said}");
    let count = ids(&store).len();
    assert_eq!(count, lines.len());
    open(&store, 64 << 20).unwrap().append(Append::new(vec![event("no limit")])).unwrap();
    assert_eq!(ids(&store).len(), count + 1);
}
