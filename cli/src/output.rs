//! Words out: data to standard output in the form that was asked for, talk to standard error. Nothing else in the
//! program writes to either.

pub(crate) mod color;
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use annals_engine::clock::Timestamp;
use annals_tools::mask::Mask;
use serde::Serialize;

use crate::exit::{Exit, Failure, Told};
use color::{ColorWhen, Paint};
use time::{TimeStyle, Zone};

/// How many cells a line has on a terminal that does not tell.
const WIDTH_UNKNOWN: usize = 80;

/// The forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For eyes
    #[default]
    Table,
    /// One JSON object; for a stream, one a line
    Json,
    /// One JSON object a line
    Jsonl,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// The lines of the log, byte for byte
    Raw,
}

/// Standard output and what it needs to know.
pub(crate) struct Output {
    /// The form asked for.
    pub(crate) format: Format,
    /// The colours of standard output.
    pub(crate) paint: Paint,
    /// How many cells a line has; `None` when it is no terminal, and nothing is cut.
    pub(crate) width: Option<usize>,
    /// When the program started: what `ago` is relative to.
    pub(crate) now: Timestamp,
    /// The zone of the person at the screen.
    pub(crate) zone: Zone,
    /// What masks all that is written from here on.
    mask: Option<Mask>,
    sink: Box<dyn Write>,
}

impl Output {
    /// Standard output in a form.
    pub(crate) fn stdout(format: Format, color: ColorWhen, now: Timestamp) -> Self {
        let stdout = io::stdout();
        Self {
            format,
            paint: Paint::decide(color, &stdout),
            width: stdout.is_terminal().then(|| terminal_width(&stdout)),
            now,
            zone: time::local_zone(),
            mask: None,
            sink: Box::new(io::BufWriter::with_capacity(1 << 16, stdout)),
        }
    }

    /// Masks the secrets of all that is written from here on.
    pub(crate) fn mask_with(&mut self, mask: Option<Mask>) {
        self.mask = mask;
    }

    /// A text as it may be shown. What is cut is to be shown first: half a secret is none that a rule knows.
    pub(crate) fn seen<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.mask.as_ref().map_or(Cow::Borrowed(text), |mask| mask.text(text))
    }

    /// Refuses a form that a command does not speak.
    pub(crate) fn only(&self, verb: &str, formats: &[Format]) -> Result<(), Failure> {
        if formats.contains(&self.format) {
            return Ok(());
        }
        let names: Vec<String> = formats.iter().map(name_of).collect();
        Err(Failure::usage(format!(
            "`{verb}` has no output form `{}`; it has {}",
            name_of(&self.format),
            names.join(", ")
        )))
    }

    /// How times look in a list.
    pub(crate) fn time_style(&self) -> TimeStyle {
        if self.width.is_none() {
            return TimeStyle::Rfc3339;
        }
        TimeStyle::Relative { now: self.now, zone: self.zone.clone() }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let seen = self.seen(line).into_owned();
        self.sink.write_all(seen.as_bytes())?;
        self.sink.write_all(b"\n")?;
        Ok(())
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.sink.write_all(bytes)?)
    }

    /// Text that somebody said, set in from the margin.
    pub(crate) fn indented(&mut self, said: &str) -> Result<(), Failure> {
        let seen = text::indented(&text::many_lines(&self.seen(said)));
        self.bytes(seen.as_bytes())
    }

    /// Text that somebody said, as whole lines; what a terminal would obey is spelled out on one.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let seen = self.seen(text).into_owned();
        match self.width {
            Some(_) => self.line(&text::many_lines(&seen)),
            None => self.line(&seen),
        }
    }

    /// One JSON object in one line.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        match &self.mask {
            None => serde_json::to_writer(&mut self.sink, object).map_err(io::Error::from)?,
            Some(mask) => {
                let json = serde_json::to_string(object).map_err(io::Error::from)?;
                let seen = mask.json(&json).unwrap_or(json);
                self.sink.write_all(seen.as_bytes())?;
            }
        }
        Ok(self.sink.write_all(b"\n")?)
    }

    /// A table, titles first.
    pub(crate) fn table(
        &mut self,
        columns: &[table::Column],
        rows: &[Vec<table::Cell>],
    ) -> Result<(), Failure> {
        let seen: Vec<Vec<table::Cell>>;
        let rows = match &self.mask {
            None => rows,
            Some(mask) => {
                let one = |cell: &table::Cell| cell.with(|text| mask.text(text).into_owned());
                seen = rows.iter().map(|row| row.iter().map(one).collect()).collect();
                &seen
            }
        };
        for line in table::lines(columns, rows, self.paint.title(), self.width) {
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// One row of comma-separated values.
    pub(crate) fn csv(&mut self, fields: &[&str]) -> Result<(), Failure> {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        let seen = fields.iter().map(|field| self.seen(field).into_owned());
        writer.write_record(seen.collect::<Vec<_>>()).map_err(io::Error::from)?;
        let row = writer.into_inner().map_err(|error| error.into_error())?;
        self.bytes(&row)
    }

    /// Hands everything to whoever reads it.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.sink.flush()?)
    }

    /// Whether the answer is JSON, and so are failures.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.format, Format::Json | Format::Jsonl)
    }

    /// Ends the program's words: what was written is flushed, and a failure is told where this form tells it.
    pub(crate) fn finish(mut self, result: Result<Exit, Failure>) -> Exit {
        let told = match result.and_then(|exit| self.flush().map(|()| exit)) {
            Ok(exit) => return exit,
            Err(Failure::Closed) => return Exit::Ok,
            Err(Failure::Told(told)) => told,
        };
        if self.is_json() {
            let written = self.object(&failed(&told)).and_then(|()| self.flush());
            drop(written);
        } else {
            drop(self.flush());
            complain(&told, Paint::decide(ColorWhen::Auto, &io::stderr()));
        }
        told.exit
    }
}

/// Talk: a sentence to standard error. It is never data, and nobody minds when it cannot be written.
pub(crate) fn say(sentence: &str) {
    drop(writeln!(io::stderr().lock(), "{sentence}"));
}

/// A failure in words: message, then hint.
pub(crate) fn complain(told: &Told, paint: Paint) {
    let label = table::dress("error:", paint.loud());
    say(&format!("{label} {}", text::many_lines(&told.message)));
    if let Some(hint) = &told.hint {
        say(&format!("  hint: {hint}"));
    }
}

/// A failure as the object that every `--json` answer may be instead.
#[derive(Serialize)]
struct Failed<'a> {
    ok: bool,
    error: FailedError<'a>,
}

/// A failure inside an object.
#[derive(Serialize)]
pub(crate) struct FailedError<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<&'a str>,
}

fn failed(told: &Told) -> Failed<'_> {
    let error =
        FailedError { code: &told.code, message: &told.message, hint: told.hint.as_deref() };
    Failed { ok: false, error }
}

fn name_of(format: &Format) -> String {
    use clap::ValueEnum;
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The width that the terminal tells, or the shell in `COLUMNS`.
pub(crate) fn terminal_width(stdout: &io::Stdout) -> usize {
    let told = rustix::termios::tcgetwinsize(stdout).ok().map(|size| usize::from(size.ws_col));
    let shell = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    told.filter(|width| *width > 0)
        .or_else(|| shell().filter(|width| *width > 0))
        .unwrap_or(WIDTH_UNKNOWN)
}
