//! The README says nothing that does not run: every line of its shell blocks is run by a shell in a home of its own.
#![expect(clippy::unwrap_used, reason = "a shell that cannot be started fails the test")]
#![expect(clippy::disallowed_methods, reason = "the commands of the README are run")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where the project is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Where the server of the README listens.
const ADDRESS: &str = "127.0.0.1:8767";

/// Commands that run this very test.
const NOT_FROM_HERE: [&str; 1] = ["cargo test --workspace"];

/// Takes the shell blocks in their order, with the built program in place of `cargo run`, and runs them one after the
/// other in one home with a small transcript to import. Each must succeed and say something.
#[test]
fn every_command_runs() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    let transcripts = home.path().join(".openclaw/agents/main/sessions");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&transcripts).unwrap();
    symlink(env!("CARGO_BIN_EXE_annals"), bin.join("annals")).unwrap();
    symlink(Path::new(ROOT).join("tests"), home.path().join("tests")).unwrap();
    fs::write(transcripts.join("0b1f6a52-5d0e-4a57-9a55-0f1f6f1f6f01.jsonl"), TRANSCRIPT).unwrap();

    let commands = commands(&fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap());
    assert!(commands.len() > 8, "{commands:?}");
    // The server of the README listens where nobody else does.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = free.to_string();
    let mut exported = format!("export ANNALS_HTTP_ADDRESS={address}; ");
    let mut behind = Vec::new();
    for command in commands {
        if NOT_FROM_HERE.contains(&command.as_str()) {
            continue;
        }
        // Each line has a shell of its own: what one exports the next ones are told.
        if command.starts_with("export ") {
            exported.push_str(&format!("{command}; "));
            continue;
        }
        let command = command.replace(ADDRESS, &address);
        if let Some(command) = command.strip_suffix(" &") {
            behind.push(Behind::start(&format!("{exported}exec {command}"), home.path(), &bin));
            continue;
        }
        let command = format!("{exported}{command}");
        let Some(said) = run(&command, home.path(), &bin) else { continue };
        let quiet = command.contains(" > ");
        assert!(quiet || !said.is_empty(), "{command} says nothing");
    }
    drop(behind);
    let exported = fs::read_to_string(home.path().join("ferry.jsonl")).unwrap();
    assert!(exported.contains("When does the ferry leave?"), "{exported}");
}

/// Goal: the settings that the README shows are settings. Method: they stand in a file; every one of them comes back from
/// there, and nothing is told about them.
#[test]
fn its_settings_are_settings() {
    let home = tempfile::tempdir().unwrap();
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let shown =
        readme.split("```json5\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let file = home.path().join("annals.json5");
    fs::write(&file, shown).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(["config", "show", "--config"])
        .arg(&file)
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
    let settings = String::from_utf8_lossy(&output.stdout).into_owned();
    let from_file = settings.lines().filter(|line| line.trim_end().ends_with("file")).count();
    assert_eq!(from_file, 6, "{settings}");
}

/// A command that goes on while the next ones run, until this is dropped.
struct Behind(Child);

impl Behind {
    /// Starts it, and waits until it has said something.
    fn start(command: &str, home: &Path, bin: &Path) -> Self {
        let mut child = shell(command, home, bin).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{command} says nothing");
        Self(child)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn shell(command: &str, home: &Path, bin: &Path) -> Command {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", command]).current_dir(home).env_clear().env("HOME", home).env("PATH", path);
    shell
}

/// What may not be there: lines that need it are passed over then.
const MAY_BE_ABSENT: [&str; 2] = ["python3", "curl"];

/// What the command says; `None` where there is no program for it.
fn run(command: &str, home: &Path, bin: &Path) -> Option<String> {
    let output = shell(command, home, bin).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    let absent = MAY_BE_ABSENT.iter().find(|name| command.contains(&format!("{name} ")));
    if let (Some(name), Some(127)) = (absent, output.status.code()) {
        // Not by a macro: what those write is not shown of a test that passes.
        let said = format!("skipped: there is no {name} for {command}\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return None;
    }
    assert!(output.status.success(), "{command}\n{said}{complained}");
    Some(said + &complained)
}

/// The lines of the blocks marked `sh`.
fn commands(readme: &str) -> Vec<String> {
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter(|line| !line.is_empty());
    lines.map(|line| line.replace("cargo run --release -- ", "annals ")).collect()
}

/// A session of two turns, as OpenClaw writes one.
const TRANSCRIPT: &str = r#"{"type":"session","version":3,"id":"0b1f6a52-5d0e-4a57-9a55-0f1f6f1f6f01","timestamp":"2026-03-14T09:26:53.000Z","cwd":"/home/ana"}
{"type":"message","id":"5a3d6c1e","parentId":null,"timestamp":"2026-03-14T09:26:53.589Z","message":{"role":"user","content":"list the piers"}}
{"type":"message","id":"5a3d6c1f","parentId":"5a3d6c1e","timestamp":"2026-03-14T09:26:55.000Z","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"1, 2 and 3"}]}}
"#;
