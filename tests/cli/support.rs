//! A home of one's own for each test, and the program run in it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use annals_engine::clock::{Clock, SystemClock};
use annals_engine::engine::{Engine, Options};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::store::{Append, Durability, NewEvent};
use serde_json::Value;
use tempfile::TempDir;

/// A home folder with nothing in it, and a place for a store.
pub(crate) struct Home {
    dir: TempDir,
}

/// How a program ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where the store lies when nothing names it.
    pub(crate) fn store(&self) -> PathBuf {
        self.path().join(".local/share/annals")
    }

    /// The program with these arguments, in an environment that holds nothing but this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.other(env!("CARGO_BIN_EXE_annals"), args);
        command.env_remove("PATH");
        command
    }

    /// Another program in the same environment.
    #[expect(clippy::disallowed_methods, reason = "the tests of the program start processes")]
    pub(crate) fn other(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path())
            .env("TZ", "UTC")
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args))
    }

    /// Runs the program and expects success; gives what it wrote to standard output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:#?}");
        ran.stdout
    }

    /// Runs the program and expects success and one JSON object.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let stdout = self.ok(args);
        assert_eq!(stdout.lines().count(), 1, "one object in one line: {stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Runs the program and expects success and one JSON object a line.
    #[track_caller]
    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<Value> {
        lines_of(&self.ok(args))
    }

    /// Runs the program with `--json` and expects this exit code and this error code.
    #[track_caller]
    pub(crate) fn fails(&self, args: &[&str], exit: i32, code: &str) -> Value {
        let mut args = args.to_vec();
        args.push("--json");
        let ran = self.run(&args);
        assert_eq!(ran.code, Some(exit), "{args:?}: {ran:#?}");
        let last = ran.stdout.lines().last().unwrap_or_default();
        let answer: Value = serde_json::from_str(last).expect("a JSON object");
        assert_eq!(answer["ok"], Value::Bool(false), "{answer}");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|m| !m.is_empty()), "{answer}");
        answer
    }

    /// Pushes a user's turn to a chat.
    #[track_caller]
    pub(crate) fn push(&self, channel: &str, chat: &str, text: &str) -> Value {
        self.json(&["session", "push", channel, chat, "user", text, "--json"])
    }
}

impl Ran {
    pub(crate) fn of(mut command: Command) -> Self {
        Self::end(command.spawn().expect("the program starts"))
    }

    pub(crate) fn end(child: Child) -> Self {
        let output = child.wait_with_output().expect("the program ends");
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// The fake agent, a program of the package `annals-tests`: `tests/src/bin/fake-agent.rs` says what it can do. Cargo builds
/// it for the tests of that package alone, and what lies beside this test may be old; so it is compiled here, once for
/// every state of its source. It is one file that uses the standard library alone.
pub(crate) fn fake_agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/src/bin/fake-agent.rs");
        let text = fs::read(source).expect("its source");
        let hash = {
            let mut hasher = std::hash::DefaultHasher::new();
            std::hash::Hash::hash(&text, &mut hasher);
            std::hash::Hasher::finish(&hasher)
        };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let agent = folder.join(format!("fake-agent-{hash:016x}"));
        if agent.exists() {
            return agent;
        }
        // Tests that run at the same time each compile their own, and the last one's stays.
        let new = tempfile::Builder::new().prefix("fake-agent-").tempdir_in(folder).expect("room");
        let made = new.path().join("fake-agent");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        #[expect(clippy::disallowed_methods, reason = "the agent of the tests is compiled")]
        let status =
            Command::new(rustc).args(["--edition", "2024", "-o"]).arg(&made).arg(source).status();
        assert!(status.expect("a compiler").success(), "the fake agent does not compile");
        #[expect(
            clippy::disallowed_methods,
            reason = "the agent of the tests is put in its place"
        )]
        fs::rename(&made, &agent).expect("in its place");
        agent
    })
}

/// Configures the fake agent, under these ids with these steps.
pub(crate) fn configure_agents(home: &Home, agents: &[(&str, &[&str])]) {
    let of = |(id, steps): &(&str, &[&str])| {
        serde_json::json!({ "id": id, "run": { "command": fake_agent(), "args": steps, "cwd": home.path(),
            "timeouts": { "killGrace": 1 }, "env": { "FAKE_AGENT_ANNALS": env!("CARGO_BIN_EXE_annals") } } })
    };
    let list: Vec<Value> = agents.iter().map(of).collect();
    let config = serde_json::json!({ "agents": { "list": list } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
}

/// Makes a named pipe in a home, at which an agent waits until it was written; gives its path.
pub(crate) fn fifo(home: &Home, name: &str) -> String {
    let path = home.path().join(name);
    let text = path.to_str().expect("UTF-8").to_owned();
    let made = Ran::of(home.other("mkfifo", &[&text]));
    assert_eq!(made.code, Some(0), "{made:#?}");
    text
}

/// The types of all events of sessions and runs, in their order.
pub(crate) fn kinds(home: &Home) -> Vec<String> {
    let log = home.json_lines(&["log", "-o", "jsonl", "-n", "0"]);
    let kinds: Vec<String> =
        log.iter().filter_map(|event| Some(event["type"].as_str()?.to_owned())).collect();
    assert!(!kinds.is_empty(), "no event has a type");
    kinds
}

/// Writes a file, as somebody who is not the program.
#[expect(clippy::disallowed_methods, reason = "the tests prepare files for the program to meet")]
pub(crate) fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

/// Renames a file, as somebody who is not the program.
#[expect(clippy::disallowed_methods, reason = "the tests save files and put others in their place")]
pub(crate) fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).expect("renamed");
}

/// Removes a file, as somebody who is not the program.
#[expect(clippy::disallowed_methods, reason = "the tests damage stores")]
pub(crate) fn remove(path: &Path) {
    fs::remove_file(path).expect("removed");
}

/// Removes every file below a folder, as somebody who is not the program.
pub(crate) fn remove_below(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { remove_below(&path) } else { remove(&path) }
    }
}

/// Every line as a JSON object.
#[track_caller]
pub(crate) fn lines_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

/// Every file and folder below, with length and content: what a reader must not change.
pub(crate) fn snapshot(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&dir).expect("a folder").map(|e| e.expect("an entry").path()).collect();
        entries.sort();
        for path in entries {
            let mut bytes = Vec::new();
            if path.is_dir() {
                open.push(path.clone());
            } else {
                fs::File::open(&path).and_then(|mut f| f.read_to_end(&mut bytes)).expect("a file");
            }
            found.push((path, bytes));
        }
    }
    found
}

/// Runs the program with a terminal of this width as its standard output and gives what the terminal got.
pub(crate) fn on_terminal(mut command: Command, columns: u16) -> (Option<i32>, String) {
    let (master, slave) = terminal(columns);
    let child = command.stdout(slave).spawn().expect("the program starts");
    drop(command);
    end_on(master, child)
}

/// Runs the program with all three streams on a terminal on which somebody has typed ahead.
pub(crate) fn typing(mut command: Command, typed: &str) -> (Option<i32>, String) {
    let (mut master, slave) = terminal(100);
    let again = || slave.try_clone().expect("the same terminal");
    command.stdin(again()).stderr(again());
    let child = command.stdout(slave).spawn().expect("the program starts");
    drop(command);
    master.write_all(typed.as_bytes()).expect("typed");
    end_on(master, child)
}

/// Both sides of a new terminal.
fn terminal(columns: u16) -> (fs::File, fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};

    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
    let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
    let slave = fs::OpenOptions::new().read(true).write(true).open(name).expect("its other side");
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size).expect("its size");
    (fs::File::from(master), slave)
}

/// Reads a terminal until the program on it has ended.
fn end_on(mut master: fs::File, mut child: Child) -> (Option<i32>, String) {
    let mut got = Vec::new();
    let mut buffer = [0; 4_096];
    // A terminal whose other side is closed gives EIO instead of the end of a file.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        got.extend_from_slice(&buffer[..count]);
    }
    let status = child.wait().expect("the program ends");
    let text = String::from_utf8(got).expect("UTF-8").replace("\r\n", "\n");
    (status.code(), text)
}

/// Appends an event to a store as a program that uses the library would. Single quotes in `data` stand for double ones.
pub(crate) fn append(store: &Path, stream: &str, kind: &str, data: &str) {
    append_all(store, Options::default(), stream, kind, std::iter::once(data.to_owned()));
}

/// Appends an event that returns before it is on stable storage.
pub(crate) fn append_buffered(store: &Path, stream: &str, kind: &str, data: &str) {
    let engine = Engine::open(store, Options::default()).expect("a store");
    let append = Append::new(vec![event(stream, kind, data)]);
    engine.append(append.durability(Durability::Buffered)).expect("appended");
}

/// Appends many events of one type to one stream, one by one; the last brings all of them to stable storage.
pub(crate) fn append_all(
    store: &Path,
    options: Options,
    stream: &str,
    kind: &str,
    payloads: impl Iterator<Item = String>,
) {
    let engine = Engine::open(store, options).expect("a store");
    let mut payloads = payloads.peekable();
    while let Some(data) = payloads.next() {
        let last = payloads.peek().is_none();
        let durability = if last { Durability::Synced } else { Durability::Buffered };
        let append = Append::new(vec![event(stream, kind, &data)]);
        engine.append(append.durability(durability)).expect("appended");
    }
}

fn event(stream: &str, kind: &str, data: &str) -> NewEvent {
    NewEvent {
        id: EventId::new(SystemClock.now()),
        stream: StreamName::new(stream).expect("a stream"),
        kind: EventType::new(kind).expect("a type"),
        cause: None,
        flow: None,
        data: Payload::from_json(&data.replace('\'', "\"")).expect("a payload"),
    }
}
