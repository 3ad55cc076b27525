//! An agent for tests: a program that does what its arguments say, one step after the other, or the lines of the variable
//! `FAKE_AGENT` where there are none. `--` ends the steps; what follows is for `rest`.
//!
//! It uses nothing but the standard library, so that a test of another package, which has no path to this package's
//! programs, can compile this one file with `rustc` and have the agent as it is now.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

const STEPS: &str = "\
say=TEXT       prints TEXT and a line feed         print=TEXT  prints TEXT
err=TEXT       prints TEXT to standard error       hex=HEX     prints these bytes
echo           prints what comes on its input      read        reads its input to the end
rest           prints the arguments behind --      env=NAME    prints the variable, or - without it
cwd            prints the folder it is in          cat=FILE    prints a file
flood=BYTES    prints so many bytes of lines       huge=BYTES  prints one line of so many bytes
native=TEXT    TEXT in the native dialect, with usage
torn=TEXT      the beginning of a native result
count=FILE     adds a line to FILE                 wait=FIFO   waits until FIFO was written and closed
forever        never ends                          close       closes its output and never ends
exit=CODE      ends                                kill=SIGNAL ends by this signal
deaf           ignores TERM from now on
child=FILE     starts a process that holds the output for ever, and adds its pid to FILE
session=FILE   the same in a session of its own
later=FIFO=TEXT starts a process that waits for FIFO, prints TEXT and ends
http=PATH      asks the server of ANNALS_MCP_URL with ANNALS_TOKEN, and prints what it answers
calls=WORDS    runs the program of FAKE_AGENT_ANNALS with these words, cut at |, and prints what it prints";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        let lines = std::env::var("FAKE_AGENT").unwrap_or_default();
        words = lines.lines().map(str::to_owned).collect();
    }
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let rest = words.split_off(end);
    let mut steps = words.iter();
    while let Some(word) = steps.next() {
        let (step, value) = word.split_once('=').unwrap_or((word, ""));
        let done = match step {
            "exit" => return ExitCode::from(value.parse::<u8>().unwrap_or(u8::MAX)),
            "rest" => rest.iter().skip(1).try_for_each(|word| print(&format!("{word}\n"))),
            "deaf" => hand_over("trap '' TERM; exec \"$0\" \"$@\"", steps.as_slice(), &rest),
            "close" => hand_over("exec \"$0\" forever >&- 2>&-", &[], &[]),
            _ => take(step, value),
        };
        if let Err(e) = done {
            drop(writeln!(std::io::stderr(), "fake-agent: {word}: {e}"));
            return ExitCode::from(99);
        }
    }
    ExitCode::SUCCESS
}

type Done = std::io::Result<()>;

fn take(step: &str, value: &str) -> Done {
    match step {
        "say" => print(&format!("{value}\n")),
        "print" => print(value),
        "err" => writeln!(std::io::stderr(), "{value}"),
        "hex" => bytes(&unhex(value)?),
        "echo" => bytes(&input()?),
        "read" => input().map(drop),
        "env" => print(&format!("{}\n", std::env::var(value).unwrap_or_else(|_| "-".to_owned()))),
        "cwd" => print(&format!("{}\n", std::env::current_dir()?.display())),
        "cat" => bytes(&std::fs::read(value)?),
        "flood" => flood(number(value)?),
        "huge" => huge(number(value)?),
        "native" => native(value),
        "torn" => print(&format!("{{\"type\":\"result\",\"status\":\"ok\",\"text\":\"{value}")),
        "count" => add(value, "started"),
        "wait" => std::fs::read(value).map(drop),
        "forever" => forever(),
        "kill" => kill(value),
        "child" => child(&["forever"], false).and_then(|pid| add(value, &pid)),
        "session" => child(&["forever"], true).and_then(|pid| add(value, &pid)),
        "later" => later(value),
        "calls" => calls(value),
        "http" => http(value),
        _ => Err(wrong(STEPS)),
    }
}

fn print(text: &str) -> Done {
    bytes(text.as_bytes())
}

fn bytes(bytes: &[u8]) -> Done {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn input() -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    std::io::stdin().lock().read_to_end(&mut read)?;
    Ok(read)
}

fn number(text: &str) -> std::io::Result<usize> {
    text.parse().map_err(|_| wrong("a number"))
}

fn wrong(words: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidInput, words)
}

fn unhex(text: &str) -> std::io::Result<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_| wrong("bytes in hex"))).collect()
}

fn flood(count: usize) -> Done {
    let line = [[b'x'; 63].as_slice(), b"\n"].concat();
    for _ in 0..count.div_ceil(line.len()) {
        bytes(&line)?;
    }
    Ok(())
}

fn huge(count: usize) -> Done {
    bytes(&vec![b'y'; count])?;
    bytes(b"\n")
}

/// One request without arguments, with the token and at the address that a run is given.
fn http(path: &str) -> Done {
    let variable = |name: &str| std::env::var(name).map_err(|_| wrong(name));
    let (url, token) = (variable("ANNALS_MCP_URL")?, variable("ANNALS_TOKEN")?);
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = std::net::TcpStream::connect(host)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    print(&format!("{body}\n"))
}

/// One answer in the native dialect.
fn native(text: &str) -> Done {
    let text = quoted(text);
    print(&format!(
        "{{\"type\":\"progress\",\"text\":\"thinking\"}}\n\
         {{\"type\":\"usage\",\"in\":900,\"out\":300}}\n\
         {{\"type\":\"result\",\"status\":\"ok\",\"text\":{text},\"usage\":{{\"in\":900,\"out\":300}}}}\n"
    ))
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out + "\""
}

/// Adds a line to a file in one piece.
fn add(path: &str, line: &str) -> Done {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn forever() -> Done {
    loop {
        std::thread::park();
    }
}

#[expect(clippy::disallowed_methods, reason = "an agent starts processes")]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn own() -> std::io::Result<String> {
    let path = std::env::current_exe()?;
    path.into_os_string().into_string().map_err(|_| wrong("a path in UTF-8"))
}

/// Goes on with the steps that are left, in this process, started by a shell.
fn hand_over(script: &str, steps: &[String], rest: &[String]) -> Done {
    use std::os::unix::process::CommandExt;
    let mut shell = command("/bin/sh");
    shell.args(["-c", script, &own()?]).args(steps).args(rest);
    Err(shell.exec())
}

fn kill(signal: &str) -> Done {
    let pid = std::process::id().to_string();
    command("/bin/sh").args(["-c", "kill -\"$0\" \"$1\"", signal, &pid]).status()?;
    forever()
}

/// Starts this program with another step, holding the output; gives its pid.
fn child(steps: &[&str], of_its_own: bool) -> std::io::Result<String> {
    let own = own()?;
    let mut other = if of_its_own {
        let mut other = command("setsid");
        other.arg(&own);
        other
    } else {
        command(&own)
    };
    let started = other.args(steps).stdin(Stdio::null()).spawn()?;
    Ok(started.id().to_string())
}

fn later(value: &str) -> Done {
    let (fifo, text) = value.split_once('=').ok_or_else(|| wrong("FIFO=TEXT"))?;
    child(&[&format!("wait={fifo}"), &format!("print={text}")], false).map(drop)
}

/// Calls the program under test as an agent does.
fn calls(words: &str) -> Done {
    let program = std::env::var("FAKE_AGENT_ANNALS").map_err(|_| wrong("FAKE_AGENT_ANNALS"))?;
    let out = command(&program).args(words.split('|')).stdin(Stdio::null()).output()?;
    bytes(&out.stdout)?;
    std::io::stderr().write_all(&out.stderr)?;
    match out.status.success() {
        true => Ok(()),
        false => Err(wrong(&format!("it ended with {}", out.status))),
    }
}
