//! A transcript that grows, is cut and is replaced between looks: what is whole comes once, or is told as damage.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::Engine;
use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::import::{
    DamageClass, Following, MemoryTree, Node, Options, SourceFile, SourceTree, discover_in, import,
};
use annals_engine::store::{Item, Read};
use annals_engine::watch::{Files, Hints, Look, NoNotice, Scan, Stamp};
use serde_json::Value;

/// The transcript.
const FILE: &str = "p/s.jsonl";

/// A folder of files that others write.
struct Folder {
    files: RefCell<BTreeMap<PathBuf, (Vec<u8>, Stamp)>>,
    hints: RefCell<BTreeSet<PathBuf>>,
    clock: Arc<ManualClock>,
    inodes: Cell<u64>,
}

/// Which inode a file has that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inode {
    /// That which it had.
    Same,
    /// Another.
    New,
}

impl Folder {
    fn content(&self) -> Vec<u8> {
        let files = self.files.borrow();
        files.get(Path::new(FILE)).map(|(bytes, _)| bytes.clone()).unwrap_or_default()
    }

    fn put(&self, path: &str, bytes: Vec<u8>, inode: Inode) {
        let mut files = self.files.borrow_mut();
        let before = files.get(Path::new(path)).map(|(_, stamp)| stamp.inode);
        let inode = before.filter(|_| inode == Inode::Same).unwrap_or_else(|| {
            self.inodes.set(self.inodes.get() + 1);
            self.inodes.get()
        });
        let changed = self.clock.now();
        let len = bytes.len() as u64;
        let stamp = Stamp { inode, len, modified: changed.as_micros().into(), changed };
        files.insert(path.into(), (bytes, stamp));
        self.hints.borrow_mut().insert(path.into());
    }

    fn remove(&self) {
        self.files.borrow_mut().remove(Path::new(FILE));
        self.hints.borrow_mut().insert(FILE.into());
    }

    fn tree(&self) -> MemoryTree {
        let files = self.files.borrow();
        let mut tree =
            MemoryTree::new(files.iter().map(|(path, (bytes, _))| (path, bytes.clone())));
        // The folder is there whatever is in it.
        tree.put("p/notes.txt", "notes");
        tree
    }
}

impl SourceTree for Folder {
    fn stat(&self, path: &Path) -> io::Result<Node> {
        self.tree().stat(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Node>> {
        self.tree().list(folder)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SourceFile + '_>> {
        let files = self.files.borrow();
        let (bytes, _) = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(bytes.clone())))
    }
}

/// What is seen of the folder.
struct Seen(Rc<Folder>);

impl Files for Seen {
    fn notify(&mut self) -> Result<(), NoNotice> {
        Ok(())
    }

    fn hints(&mut self, _: Duration) -> Result<Hints, NoNotice> {
        Ok(Hints { paths: std::mem::take(&mut *self.0.hints.borrow_mut()), lost: false })
    }

    fn scan(&mut self) -> Scan {
        let files = self.0.files.borrow();
        let files = files.iter().map(|(path, (_, stamp))| (path.clone(), *stamp));
        Scan { files: files.collect(), unread: Vec::new() }
    }

    fn look(&self, _: &Path) -> Look {
        Look::Gone
    }

    fn selects(&self, _: &Path) -> bool {
        true
    }
}

/// A script of what becomes of a transcript. The lines are steps:
///
/// | step | what |
/// |---|---|
/// | `+TEXT`, `~TEXT` | the text is appended, with a line feed and without |
/// | `<N`, `=` | so many bytes of the end are cut off; the file is emptied |
/// | `^TEXT`, `@` | another file with this text, or with the same, comes in its place |
/// | `%TEXT` | it is written anew in the same inode |
/// | `-`, `c` | it is removed; it is copied beside itself |
/// | `.` | time passes that file systems notice |
/// | `*` | who follows ends, and another begins |
/// | `!` | a look |
///
/// In texts `$A` to `$Z` stand for the headers of sessions, and `$` with any other letter for a message of that id.
pub fn follow(bytes: &[u8]) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
    let folder = Rc::new(Folder {
        files: RefCell::default(),
        hints: RefCell::default(),
        clock: Arc::clone(&clock),
        inodes: Cell::new(0),
    });
    let engine = Engine::in_memory(clock.clone());
    let begin = || {
        let (files, paths) = (Box::new(Seen(Rc::clone(&folder))), vec![PathBuf::from("p")]);
        Following::new(engine.store(), engine.clock(), &*folder, files, paths).unwrap()
    };
    let mut following = begin();
    let mut copies = 0;
    // What the file was at each look, whole lines alone; what it grew from needs no check of its own.
    let mut looks: Vec<Vec<u8>> = Vec::new();
    let steps = bytes.split(|byte| *byte == b'\n').chain([&b"+"[..], b".", b"!"]);
    for step in steps {
        let Some((what, rest)) = step.split_first() else { continue };
        let content = folder.content();
        match what {
            b'+' => folder.put(FILE, [&content, &text(rest)[..], b"\n"].concat(), Inode::Same),
            b'~' => folder.put(FILE, [content, text(rest)].concat(), Inode::Same),
            b'<' => {
                let count =
                    std::str::from_utf8(rest).ok().and_then(|n| n.parse().ok()).unwrap_or(1);
                let left = content.len().saturating_sub(count);
                folder.put(FILE, content[..left].to_vec(), Inode::Same);
            }
            b'=' => folder.put(FILE, Vec::new(), Inode::Same),
            b'^' => folder.put(FILE, [&text(rest)[..], b"\n"].concat(), Inode::New),
            b'@' => folder.put(FILE, content, Inode::New),
            b'%' => folder.put(FILE, [&text(rest)[..], b"\n"].concat(), Inode::Same),
            b'-' => folder.remove(),
            b'c' => {
                copies += 1;
                folder.put(&format!("{FILE}.{copies}"), content, Inode::New);
            }
            b'.' => clock.advance(Duration::from_secs(3)),
            b'*' => following = begin(),
            b'!' => {
                following.round(&mut |_| {}).unwrap();
                let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                looks.pop_if(|before| content.starts_with(before));
                looks.push(content[..end].to_vec());
            }
            _ => {}
        }
    }
    let got = Told::by(&engine);
    assert!(got.reuses_ids || got.twice.is_empty(), "twice: {:?}", got.twice);
    looks.iter().for_each(|content| assert_holds(&engine, &got, content));
}

/// Everything that an import of the file would take is there, and what is wrong with it was told.
fn assert_holds(engine: &Engine, got: &Told, content: &[u8]) {
    let tree = MemoryTree::new([(FILE, content)]);
    let Ok(found) = discover_in(&tree, Path::new("p")) else { return };
    let once = Engine::in_memory(Arc::new(ManualClock::new(engine.clock().now())));
    let options = Options::default();
    import(once.store(), once.clock(), &tree, &found, &options, &mut |_| {}).unwrap();
    let expect = Told::by(&once);
    let shas: BTreeSet<&str> = got.events.values().flatten().map(|(_, sha)| sha.as_str()).collect();
    for (id, sha256) in &expect.events {
        // A header that comes behind records without one is of a session that was opened without it.
        let Some((kind, sha256)) = sha256 else { continue };
        if got.headerless && kind == "session.opened" {
            continue;
        }
        let came = shas.contains(sha256.as_str()) || got.events.contains_key(id);
        assert!(came, "a record did not come: {sha256}");
    }
    assert_eq!(expect.damages.difference(&got.damages).next(), None, "damage was not told");
}

/// What a store was told.
#[derive(Default)]
struct Told {
    /// The ids of events of sessions, with their types and the hashes of the records that they were made from. A record goes by its id where
    /// it has one, and which session it is of was decided when its file began.
    events: BTreeMap<String, Option<(String, String)>>,
    /// Class and place of damages that do not depend on where a file ends.
    damages: BTreeSet<String>,
    /// Messages that are in a session more than once, and whether there are others of the same ids: then they may be.
    twice: BTreeSet<String>,
    reuses_ids: bool,
    /// Whether there were records without a header.
    headerless: bool,
}

/// What is told of the end of a file, and of a story that has one.
const AT_THE_END: [DamageClass; 5] = [
    DamageClass::TornTail,
    DamageClass::HeaderOnly,
    DamageClass::UnansweredCall,
    DamageClass::EmptyFile,
    DamageClass::Duplicate,
];

impl Told {
    fn by(engine: &Engine) -> Self {
        let mut told = Self::default();
        let mut messages = BTreeSet::new();
        for item in engine.store().read(Read::default()).unwrap() {
            let Item::Record(record) = item.unwrap() else { panic!("a gap in memory") };
            let stream = record.stream.to_string();
            let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
            if stream != "import" {
                let sha256 = data["source"]["sha256"].as_str().map(str::to_owned);
                let made = sha256.map(|sha256| (record.kind.to_string(), sha256));
                told.events.insert(record.id.to_string(), made);
            }
            told.reuses_ids |= data["class"] == DamageClass::IdReused.code();
            told.headerless |= data["class"] == DamageClass::MissingHeader.code();
            if record.kind.as_str() == "import.damage"
                && AT_THE_END.iter().all(|class| data["class"] != class.code())
            {
                let place = format!("{} {}+{}", data["class"], data["offset"], data["bytes"]);
                told.damages.insert(place);
            }
            if let Some(message) = data["messageId"].as_str() {
                let message = format!("{stream} {message} {}", data["source"]["sha256"]);
                if !messages.insert(message.clone()) {
                    told.twice.insert(message);
                }
            }
        }
        told
    }
}

fn text(of: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut bytes = of.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.clone().next()) {
            (b'$', Some(name)) => {
                bytes.next();
                text.extend(record(char::from(name)).into_bytes());
            }
            (byte, _) => text.push(byte),
        }
    }
    text
}

fn record(name: char) -> String {
    let at = "2026-03-01T09:00:00Z";
    if name.is_ascii_uppercase() {
        return format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{name}\",\"timestamp\":\"{at}\"}}"
        );
    }
    let name = if name.is_ascii_alphanumeric() { name } else { '0' };
    format!(
        "{{\"type\":\"message\",\"id\":\"{name}\",\"timestamp\":\"{at}\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{name}\"}}}}"
    )
}
