//! Processes of their own: the program starts itself again with what a child is to do, and speaks with it by lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// A child of this program, killed when it is dropped.
pub struct Child {
    process: std::process::Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program again with these arguments.
    pub fn start(arguments: &[&str], store: &Path) -> Self {
        let mut process = Command::new(program())
            .args(arguments)
            .arg(store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, to, from: BufReader::new(from) }
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// That it has ended.
    pub fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(bytes) if bytes > 0 => Ok(line.trim_end().to_owned()),
            _ => Err("a child ended before its time".to_owned()),
        }
    }

    /// Says a line to it.
    pub fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    /// Ends it with a signal that it cannot see, and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// This program.
#[must_use]
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// In a child: says a line to the parent.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// In a child: waits for a line of the parent; `None` when the parent is gone.
pub fn wait() -> Option<String> {
    let mut line = String::new();
    let bytes = std::io::stdin().lock().read_line(&mut line).unwrap();
    (bytes > 0).then(|| line.trim_end().to_owned())
}
