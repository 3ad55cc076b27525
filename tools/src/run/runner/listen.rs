//! Reads the pipes of a process while it runs, and for a short time after its end.

use std::time::Duration;

use annals_engine::session::event::OutputStream;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::Heard;
use super::late;
use super::lines::{Lines, take_text};
use super::pieces::Pieces;
use crate::run::dialect::{Reader, Reply, Told};
use crate::run::spec::AgentSpec;

/// Bytes of one read.
const CHUNK_BYTES: usize = 64 << 10;
/// After the end of the process: so long without a byte, and nothing of its own is left in the pipes.
const QUIET: Duration = Duration::from_millis(200);
/// After the end of the process: so long the pipes are read at most.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// So many reads empty both pipes, however large the system makes them.
const SWEEP_READS_MAX: usize = (2 << 20) / CHUNK_BYTES;

/// Where the process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It runs, or is being ended.
    Runs,
    /// It ended by itself.
    Ended,
    /// It was ended: nothing that comes later counts, and nobody is waited for.
    Stopped,
}

/// What the one who waits for the end has to know.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sign {
    /// The last byte came then.
    Heard(Instant),
    /// Nothing is read, because what was heard is not taken.
    Waits,
    /// There is more output than is allowed.
    TooMuch,
}

/// What the process said, in the end.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// What its output told.
    pub(super) reply: Reply,
    /// Whether there was more of it than is allowed.
    pub(super) too_much: bool,
    /// What was done to it, in words.
    pub(super) notes: Vec<String>,
    /// The end of standard error.
    pub(super) stderr_tail: Option<String>,
}

/// Listens to one process.
pub(super) struct Listener {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    ear: Ear,
    lines: Lines,
    reader: Reader,
    pieces: Pieces,
    tail: Tail,
    /// The beginning of a character on standard error.
    open: Vec<u8>,
    /// Bytes of standard output that may still come.
    room: usize,
    too_much: bool,
}

impl Listener {
    /// A listener to the pipes of a process.
    pub(super) fn new(
        child: &mut Child,
        spec: &AgentSpec,
        run_id: &str,
        heard: mpsc::Sender<Heard>,
        phases: watch::Receiver<Phase>,
        signs: watch::Sender<Sign>,
    ) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            ear: Ear { heard: Some(heard), phases, signs, rest: None, stopped: false },
            lines: Lines::new(spec.limits.line_bytes),
            reader: Reader::new(spec.dialect, spec.output).in_run(run_id),
            pieces: Pieces::default(),
            tail: Tail { bytes: Vec::new(), most: spec.limits.stderr_tail_bytes, cut: false },
            open: Vec::new(),
            room: spec.limits.stdout_bytes,
            too_much: false,
        }
    }

    /// Listens to the end, says what was said, and then listens to what comes late.
    pub(super) async fn listen(mut self, first: Heard, said: oneshot::Sender<Said>) {
        self.ear.tell(first).await;
        let (mut out, mut err) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        while self.stdout.is_some() || self.stderr.is_some() {
            let due = self.pieces.due();
            let over = self.ear.rest.as_ref().map(Rest::over);
            tokio::select! {
                count = read(&mut self.stdout, &mut out) => {
                    self.ear.hears();
                    self.take_stdout(out.get(..count).unwrap_or_default());
                }
                count = read(&mut self.stderr, &mut err) => {
                    self.ear.hears();
                    self.take_stderr(err.get(..count).unwrap_or_default());
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.tell().await;
                }
                changed = self.ear.phases.changed(), if !self.ear.stopped => {
                    self.ear.hurry(changed.is_ok());
                }
                () = sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => break,
            }
            if self.pieces.is_much() {
                self.tell().await;
            }
        }
        self.sweep(&mut out, &mut err).await;
        self.close(said).await;
    }

    /// Takes what stands in the pipes by now. Where nobody looked after us for a while, the time to read them was over
    /// before it began.
    async fn sweep(&mut self, out: &mut [u8], err: &mut [u8]) {
        for _ in 0..SWEEP_READS_MAX {
            tokio::select! {
                biased;
                count = read(&mut self.stdout, out) => self.take_stdout(out.get(..count).unwrap_or_default()),
                count = read(&mut self.stderr, err) => self.take_stderr(err.get(..count).unwrap_or_default()),
                () = std::future::ready(()) => break,
            }
        }
    }

    async fn close(mut self, said: oneshot::Sender<Said>) {
        self.end_of_stdout();
        self.end_of_stderr();
        self.tell().await;
        let told = Said {
            reply: self.reader.finish(),
            too_much: self.too_much,
            notes: self.lines.notes(),
            stderr_tail: self.tail.text(),
        };
        // Nobody waits for it when the run was dropped.
        drop(said.send(told));
        if let Some(heard) = self.ear.heard.filter(|_| !self.ear.stopped) {
            late::listen(self.stdout, self.stderr, heard).await;
        }
    }

    /// Takes bytes of standard output; none are its end.
    fn take_stdout(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.stdout = None;
            return self.end_of_stdout();
        }
        let taken = bytes.get(..self.room).unwrap_or(bytes);
        self.room -= taken.len();
        let (lines, reader, pieces) = (&mut self.lines, &mut self.reader, &mut self.pieces);
        lines.push(taken, |line| hear(reader, pieces, line));
        if taken.len() < bytes.len() {
            self.stdout = None;
            self.too_much = true;
            self.ear.signs.send_replace(Sign::TooMuch);
        }
    }

    fn end_of_stdout(&mut self) {
        if let Some(line) = self.lines.rest() {
            hear(&mut self.reader, &mut self.pieces, &line);
        }
    }

    /// Takes bytes of standard error; none are its end.
    fn take_stderr(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.stderr = None;
            return self.end_of_stderr();
        }
        self.tail.push(bytes);
        self.open.extend_from_slice(bytes);
        let text = take_text(&mut self.open);
        self.pieces.add(OutputStream::Stderr, &text, Instant::now());
    }

    fn end_of_stderr(&mut self) {
        let rest = std::mem::take(&mut self.open);
        let text = String::from_utf8_lossy(&rest);
        self.pieces.add(OutputStream::Stderr, &text, Instant::now());
    }

    /// Tells all that was heard.
    async fn tell(&mut self) {
        while let Some(piece) = self.pieces.take(false, Instant::now()) {
            self.ear.tell(piece).await;
        }
    }
}

/// Lets the dialect hear a line, and keeps what it tells.
fn hear(reader: &mut Reader, pieces: &mut Pieces, line: &str) {
    let (stream, text) = match reader.line(line.as_bytes()) {
        Some(Told::Text(text)) => (OutputStream::Stdout, text),
        Some(Told::Progress(text)) => (OutputStream::Progress, text + "\n"),
        // It is in the reply too.
        Some(Told::AgentSession(_)) | None => return,
    };
    pieces.add(stream, &text, Instant::now());
}

/// Reads a pipe; for ever when it is closed. No bytes are its end, and so is an error.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, chunk: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(chunk).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// What connects a listener with others.
struct Ear {
    /// Nobody listens any more when it is gone.
    heard: Option<mpsc::Sender<Heard>>,
    phases: watch::Receiver<Phase>,
    signs: watch::Sender<Sign>,
    /// How long to go on, once the process has ended.
    rest: Option<Rest>,
    stopped: bool,
}

struct Rest {
    quiet: Instant,
    most: Instant,
}

impl Rest {
    fn begin() -> Self {
        let now = Instant::now();
        Self { quiet: now + QUIET, most: now + DRAIN_MAX }
    }

    fn over(&self) -> Instant {
        self.quiet.min(self.most)
    }
}

impl Ear {
    /// Something came.
    fn hears(&mut self) {
        let now = Instant::now();
        self.sign(Sign::Heard(now));
        if let Some(rest) = &mut self.rest {
            rest.quiet = now + QUIET;
        }
    }

    /// Leaves a sign that is looked at in its time; that there is too much stays.
    fn sign(&self, sign: Sign) {
        self.signs.send_if_modified(|left| {
            if !matches!(left, Sign::TooMuch) {
                *left = sign;
            }
            false
        });
    }

    /// The phase is another one; without anybody who says which, everything is over.
    fn hurry(&mut self, said: bool) {
        let phase = *self.phases.borrow_and_update();
        self.stopped = !said || phase == Phase::Stopped;
        if self.stopped || phase == Phase::Ended {
            self.rest = Some(Rest::begin());
        }
    }

    /// Tells something, and waits for room as long as that makes sense.
    async fn tell(&mut self, heard: Heard) {
        let Some(sender) = &self.heard else { return };
        let heard = match sender.try_send(heard) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(heard)) => heard,
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.heard = None;
                return;
            }
        };
        self.sign(Sign::Waits);
        let since = Instant::now();
        self.wait_for_room(heard).await;
        let now = Instant::now();
        self.sign(Sign::Heard(now));
        if let Some(rest) = self.rest.as_mut().filter(|_| !self.stopped) {
            rest.most += now - since;
            rest.quiet = now + QUIET;
        }
    }

    async fn wait_for_room(&mut self, heard: Heard) {
        let Some(sender) = self.heard.clone() else { return };
        loop {
            let most = self.rest.as_ref().filter(|_| self.stopped).map(|rest| rest.most);
            tokio::select! {
                permit = sender.reserve() => {
                    match permit {
                        Ok(permit) => permit.send(heard),
                        Err(_) => self.heard = None,
                    }
                    return;
                }
                changed = self.phases.changed(), if !self.stopped => self.hurry(changed.is_ok()),
                () = sleep_until(most.unwrap_or_else(Instant::now)), if most.is_some() => {
                    self.heard = None;
                    return;
                }
            }
        }
    }
}

/// The end of what was written.
struct Tail {
    bytes: Vec<u8>,
    most: usize,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.most.saturating_mul(2).max(CHUNK_BYTES) {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let over = self.bytes.len().saturating_sub(self.most);
        self.cut |= over > 0;
        self.bytes.drain(..over);
    }

    /// The text; where it begins in the middle it begins with a whole character.
    fn text(mut self) -> Option<String> {
        self.shorten();
        let part = |byte: &u8| self.cut && (0x80..0xC0).contains(byte);
        let begin = self.bytes.iter().take(3).take_while(|byte| part(byte)).count();
        let text = String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default());
        Some(text.into_owned()).filter(|text| !text.is_empty())
    }
}
