//! Imports that come again, go on, stop in between or meet a store that holds something already.

use std::cell::Cell;
use std::sync::Mutex;

use super::*;
use crate::error::{Error, ErrorKind};
use crate::format::Payload;
use crate::id::{EventId, EventType, StoreId, StreamName, Version};
use crate::session::event::{Event, SessionKind};
use crate::store::{
    Append, Appended, Cursor, Decider, Durability, Follow, Health, Items, NewEvent,
};

fn tree(lines: &[&str]) -> MemoryTree {
    MemoryTree::new([("p/s.jsonl", session("s", lines))])
}

/// Goal: an import that is repeated adds nothing, and one of a file that grew adds what is new. Method: the same files
/// three times, with a line more, and with a torn line that is whole the next time.
#[test]
fn again_and_grown() {
    let world = World::new();
    let (a, b, c) = (said("a", 1, "one"), said("b", 2, "two"), said("c", 3, "three"));
    let first = world.import(&tree(&[&a]), "p").totals();
    assert_eq!((first.records, first.new, first.known), (2, 2, 0));
    let before = world.len();
    let second = world.import(&tree(&[&a]), "p").totals();
    assert_eq!((second.records, second.new, second.known), (2, 0, 2));
    assert_eq!(world.len(), before, "not even that an import began");
    let torn = format!("{}{}\n{}", header("s", "09:00:00"), a, &b[..50]);
    let torn = world.import(&MemoryTree::new([("p/s.jsonl", torn)]), "p").totals();
    assert_eq!((torn.new, torn.damages), (1, 1));
    let grown = world.import(&tree(&[&a, &b, &c]), "p").totals();
    assert_eq!((grown.new, grown.known, grown.damages), (2, 2, 0));
    assert_eq!(
        world.stream("pi:s"),
        [
            "opened s",
            r#"user external "one""#,
            r#"user external "two""#,
            r#"user external "three""#,
        ]
    );
}

/// Goal: a dry run tells what an import would do and does nothing. Method: both reports of the same files, compared.
#[test]
fn dry_run() {
    let world = World::new();
    let tree = sample_tree();
    let found = discover_sample(&tree).unwrap();
    let dry = Options { mode: Mode::DryRun, only: None };
    let dry = world.take(&tree, &found, &dry).unwrap();
    assert_eq!(world.len(), 0);
    let real = world.take(&tree, &found, &Options::default()).unwrap();
    assert!(dry.dry_run && !real.dry_run);
    assert_eq!(Report { dry_run: false, ..dry }, real);
    assert!(real.totals().new > 40);
}

/// A store that fails at one append, or lets somebody else append before one.
struct Meddled<'a> {
    store: &'a MemoryStore,
    appends: Mutex<Cell<u32>>,
    at: u32,
    meddling: Meddling,
}

enum Meddling {
    Stops,
    IsUnsure,
    ComesBetween(NewEvent),
    IsDamaged,
    Takes(usize),
}

impl<'a> Meddled<'a> {
    fn new(store: &'a MemoryStore, at: u32, meddling: Meddling) -> Self {
        Self { store, appends: Mutex::default(), at, meddling }
    }
}

impl EventStore for Meddled<'_> {
    fn id(&self) -> StoreId {
        self.store.id()
    }

    fn append(&self, append: Append) -> Result<Appended> {
        let appends = self.appends.lock().unwrap();
        appends.set(appends.get() + 1);
        match &self.meddling {
            Meddling::Takes(bytes) => {
                if append.events.iter().any(|event| event.data.as_str().len() > *bytes) {
                    return Err(Error::new(ErrorKind::TooLarge, "too large"));
                }
            }
            _ if appends.get() != self.at => {}
            Meddling::Stops => return Err(Error::new(ErrorKind::Unavailable, "gone")),
            Meddling::IsDamaged => {
                return Err(Error::new(ErrorKind::Corrupt, "damaged").path("/store/log/1.jsonl"));
            }
            Meddling::IsUnsure => {
                self.store.append(append)?;
                return Err(Error::new(ErrorKind::Indeterminate, "perhaps"));
            }
            Meddling::ComesBetween(event) => {
                self.store.append(Append::new(vec![event.clone()]))?;
            }
        }
        self.store.append(append)
    }

    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended> {
        self.store.append_deciding(decider, durability)
    }

    fn read(&self, read: Read) -> Result<Items<'_>> {
        self.store.read(read)
    }

    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>> {
        self.store.read_stream(stream, after)
    }

    fn payload(&self, record: &Record) -> Result<Payload> {
        self.store.payload(record)
    }

    fn head(&self, stream: &StreamName) -> Result<Version> {
        self.store.head(stream)
    }

    fn end(&self, view: View) -> Result<Option<Cursor>> {
        self.store.end(view)
    }

    fn follow(&self, read: Read) -> Result<Box<dyn Follow + '_>> {
        self.store.follow(read)
    }

    fn health(&self) -> Result<Health> {
        self.store.health()
    }
}

/// The sample, imported through a store that is meddled with.
fn meddle(world: &World, at: u32, meddling: Meddling) -> Result<Report> {
    let tree = sample_tree();
    let found = discover_sample(&tree).unwrap();
    let store = Meddled::new(&world.store, at, meddling);
    import(&store, &*world.clock, &tree, &found, &Options::default(), &mut |_| {})
}

/// What the store holds, without what says that an import began or ended.
fn brought(world: &World) -> Vec<(String, String)> {
    let mut events: Vec<(String, String)> = world
        .records()
        .iter()
        .filter(|r| !matches!(r.kind.as_str(), "import.started" | "import.finished"))
        .map(|r| (format!("{} {:06}", r.stream, r.version.0), told(r)))
        .collect();
    events.sort();
    events
}

/// Goal: an import that stops anywhere goes on when it is repeated, and ends as if it had not stopped; so does one that
/// was told "perhaps". Method: a failure at each append of the sample's import in turn.
#[test]
fn interrupted_anywhere() {
    let whole = World::new();
    meddle(&whole, 0, Meddling::Stops).unwrap();
    let mut stopped = 0;
    for at in 1.. {
        let world = World::new();
        let Err(error) = meddle(&world, at, Meddling::Stops) else { break };
        assert_eq!(*error.kind(), ErrorKind::Unavailable);
        stopped += 1;
        meddle(&world, 0, Meddling::Stops).unwrap();
        assert_eq!(brought(&world), brought(&whole), "stopped at append {at}");
        let unsure = World::new();
        meddle(&unsure, at, Meddling::IsUnsure).unwrap();
        assert_eq!(brought(&unsure), brought(&whole), "unsure at append {at}");
    }
    assert!(stopped > 8, "{stopped}");
}

/// Goal: somebody who appends to the same stream at the same time loses nothing and makes nothing be lost or doubled.
/// Method: an event of another writer before each append of the import, also one that the import was about to append.
#[test]
fn others_append_meanwhile() {
    let whole = World::new();
    meddle(&whole, 0, Meddling::Stops).unwrap();
    let opened =
        whole.records().into_iter().find(|r| r.stream.as_str() == "agent:demo:main").unwrap();
    let same = NewEvent {
        id: opened.id,
        stream: opened.stream,
        kind: opened.kind,
        cause: None,
        flow: None,
        data: opened.data,
    };
    let world = World::new();
    let at = 2;
    meddle(&world, at, Meddling::ComesBetween(same)).unwrap();
    assert_eq!(brought(&world), brought(&whole));
    let other = NewEvent {
        id: EventId::derived("key", "test", "1"),
        stream: StreamName::new("agent:demo:main").unwrap(),
        kind: EventType::new("x.acme.note").unwrap(),
        cause: None,
        flow: None,
        data: Payload::from_json("{}").unwrap(),
    };
    for at in 1..6 {
        let world = World::new();
        meddle(&world, at, Meddling::ComesBetween(other.clone())).unwrap();
        let brought: Vec<String> = brought(&world)
            .into_iter()
            .map(|(_, told)| told)
            .filter(|t| t != "x.acme.note")
            .collect();
        let mut expect: Vec<String> =
            super::flows::brought(&whole).into_iter().map(|(_, told)| told).collect();
        let mut brought = brought;
        brought.sort();
        expect.sort();
        assert_eq!(brought, expect, "before append {at}");
    }
}

/// Goal: a store that refuses for damage is left as it is, and so is the source; the error names both, and a later
/// import succeeds. Method: the first append fails with the store's own path.
#[test]
fn a_damaged_store_is_named_with_the_source() {
    let world = World::new();
    let error = meddle(&world, 1, Meddling::IsDamaged).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt);
    let text = error.to_string();
    assert!(
        text.contains("importing sample stopped") && text.contains("/store/log/1.jsonl"),
        "{text}"
    );
    assert_eq!(world.len(), 0);
    assert!(meddle(&world, 0, Meddling::Stops).unwrap().totals().new > 40);
}

/// Goal: a record that the store cannot take is told, and everything else is taken. Method: a store that takes events
/// of at most 1,000 bytes, and one turn of 2,000 among others.
#[test]
fn too_large() {
    let world = World::new();
    let (a, b) = (said("a", 1, "one"), said("b", 2, &"x".repeat(2_000)));
    let tree = tree(&[&a, &b, &said("c", 3, "three")]);
    let store = Meddled::new(&world.store, 0, Meddling::Takes(1_000));
    let found = discover_in(&tree, Path::new("p")).unwrap();
    let go = || import(&store, &*world.clock, &tree, &found, &Options::default(), &mut |_| {});
    let report = go().unwrap();
    let offset = header("s", "09:00:00").len() + a.len() + 1;
    assert_eq!(damages(&report), [format!("too_large s.jsonl {offset}+{}/0", b.len())]);
    assert_eq!(report.totals().new, 4, "three events and the damage");
    assert_eq!(
        world.stream("pi:s"),
        ["opened s", r#"user external "one""#, r#"user external "three""#]
    );
    let again = go().unwrap();
    assert_eq!((again.totals().new, again.totals().damages), (0, 1));
}

/// Goal: the files of the source stay as they are, to the byte and the nanosecond. Method: the sample on disk, written
/// protected from writing, before and after.
#[test]
fn the_source_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let tree = sample_tree();
    let found = discover_sample(&tree).unwrap();
    for transcript in &found.sources[0].transcripts {
        let mut bytes = Vec::new();
        tree.open(&transcript.path).unwrap().read_to_end(&mut bytes).unwrap();
        let path = folder.path().join(&transcript.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test makes its own source")]
        std::fs::write(&path, bytes).unwrap();
    }
    let root = folder.path().join("sample");
    let state = || {
        let found = discover(&root).unwrap();
        let read = |path: &std::path::PathBuf| {
            let meta = std::fs::metadata(path).unwrap();
            (path.clone(), std::fs::read(path).unwrap(), meta.modified().unwrap())
        };
        found.sources[0].transcripts.iter().map(|t| read(&t.path)).collect::<Vec<_>>()
    };
    let before = state();
    assert_eq!(before.len(), 4);
    let world = World::new();
    assert!(world.import(&DiskTree, root.to_str().unwrap()).totals().new > 20);
    assert_eq!(state(), before);
}

/// Goal: progress comes in order and ends at the whole. Method: the sample.
#[test]
fn progress() {
    let world = World::new();
    let tree = sample_tree();
    let found = discover_sample(&tree).unwrap();
    let mut told = Vec::new();
    let report =
        import(&world.store, &*world.clock, &tree, &found, &Options::default(), &mut |p| {
            told.push(p);
        })
        .unwrap();
    assert!(told.is_sorted_by_key(|p| p.bytes_done));
    let last = told.last().unwrap();
    assert_eq!((last.bytes_done, last.bytes_total), (report.totals().bytes, report.totals().bytes));
}

/// Goal: a key that this store uses for a session of its own is left alone. Method: a main session of its own, then an
/// import whose index claims the key; what others say of the imported session names its key here.
#[test]
fn a_key_of_our_own_is_left_alone() {
    let world = World::new();
    let stream = StreamName::new("agent:demo:main").unwrap();
    let mut opening = crate::import::plan::Opening::bare(SessionKind::Main, "main".into(), "-").0;
    (opening.program, opening.session_id) = (None, "mine".into());
    let event = Event::SessionOpened(opening);
    let id = EventId::new(world.clock.now());
    let event = event.to_new(stream, id, Default::default()).unwrap();
    world.store.append(Append::new(vec![event])).unwrap();
    let tree = sample_tree();
    let report = world.import(&tree, "sample");
    assert_eq!(world.stream("agent:demo:main"), ["opened mine"]);
    let key = "openclaw:6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01";
    assert!(world.stream(key).len() > 15);
    assert_eq!(report.sources[0].damage_count(DamageClass::KeyTaken), 1);
    let child = world
        .records()
        .into_iter()
        .find(|r| r.stream.as_str().contains("8f2d6c10") && r.kind.as_str() == "session.opened");
    assert!(child.unwrap().data.as_str().contains(&format!("\"parentKey\":\"{key}\"")));
    let requested =
        format!("requested agent:demo:subagent:8f2d6c10-4b7a-4e59-9c3d-5a1e0b7f2c11 of {key}");
    assert_eq!(world.stream("run:run-north")[0], requested);
    assert_eq!(world.import(&tree, "sample").totals().new, 0);
}

/// Goal: pi's copies of one session are one session, and forks are two whose usage is counted once. Method: the same
/// file twice, one of them longer; a fork that repeats two records of its parent.
#[test]
fn copies_and_forks() {
    let (a, b, c) = (said("a", 1, "one"), said("b", 2, "two"), said("c", 3, "three"));
    let world = World::new();
    let tree = MemoryTree::new([
        ("p/x.jsonl", session("s", &[&a, &b])),
        ("p/y.jsonl", session("s", &[&a, &b, &c])),
    ]);
    let report = world.import(&tree, "p");
    assert_eq!(world.stream("pi:s").len(), 4);
    assert_eq!(report.sources[0].damage_count(DamageClass::Duplicate), 1);
    assert_eq!(world.import(&tree, "p").totals().new, 0);

    let paid = r#"{"type":"message","id":"r","timestamp":"2026-03-01T09:00:04Z","message":{"role":"assistant","content":[],"usage":{"input":5,"output":6}}}"#;
    let fork = header("f", "09:10:00")
        .replace("\"cwd\"", "\"parentSession\":\"/home/u/.pi/x.jsonl\",\"cwd\"");
    let tree = MemoryTree::new([
        ("p/x.jsonl", session("s", &[&a, paid])),
        ("p/f.jsonl", format!("{fork}{a}\n{paid}\n{c}\n")),
    ]);
    let world = World::new();
    let report = world.import(&tree, "p");
    let told = damages(&report);
    let bytes = a.len() + 1 + paid.len();
    assert_eq!(
        told[told.len() - 2..],
        [
            format!("replayed_fork f.jsonl {}+{bytes}/2", fork.len()),
            format!("clock_back f.jsonl {}+{}/1", fork.len() + bytes + 1, c.len()),
        ]
    );
    let counted =
        world.records().iter().filter(|r| r.data.as_str().contains("\"tokens\":")).count();
    assert_eq!((world.stream("pi:f").len(), counted), (4, 1));
}
