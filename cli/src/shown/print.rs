//! Events and gaps to standard output, one by one, in whatever form was asked for.

use annals_engine::id::StoreId;
use annals_engine::store::Damage;

use super::line::{self, Fields, LineStyle};
use super::{Shown, gap, wire};
use crate::exit::Failure;
use crate::output::text::one_line;
use crate::output::time::TimeStyle;
use crate::output::{Format, Output, say};
use crate::sieve::Step;

/// Prints the steps of a stream.
pub(crate) struct Printer {
    style: LineStyle,
    store: StoreId,
    titled: bool,
}

impl Printer {
    /// A printer whose times look so.
    pub(crate) fn new(out: &Output, store: StoreId, time: TimeStyle) -> Self {
        let style = LineStyle { paint: out.paint, time, width: out.width };
        Self { style, store, titled: false }
    }

    /// Prints one step.
    ///
    /// # Errors
    /// Whatever writing says.
    pub(crate) fn print(&mut self, out: &mut Output, step: &Step) -> Result<(), Failure> {
        match step {
            Step::Event(shown) => self.event(out, shown),
            Step::Gap(damage) => self.gap(out, damage),
        }
    }

    fn event(&mut self, out: &mut Output, shown: &Shown) -> Result<(), Failure> {
        match out.format {
            Format::Table => out.line(&self.style.event(shown)),
            Format::Json | Format::Jsonl => out.object(&wire::wire(shown, self.store)),
            Format::Raw => out.bytes(&shown.record.to_line()),
            Format::Csv => {
                self.csv_titles(out)?;
                csv_event(out, shown)
            }
        }
    }

    fn gap(&mut self, out: &mut Output, damage: &Damage) -> Result<(), Failure> {
        match out.format {
            Format::Table => out.line(&self.style.gap(damage)),
            Format::Json | Format::Jsonl => out.object(&gap::wire(damage)),
            Format::Raw => {
                out.flush()?;
                say(&format!("GAP: {}", gap::sentence(damage)));
                Ok(())
            }
            Format::Csv => {
                self.csv_titles(out)?;
                let seq = damage.seqs.map(|(first, _)| first.to_string()).unwrap_or_default();
                out.csv(&[&seq, "", "", "", "gap", "", "", "", "", &gap::sentence(damage)])
            }
        }
    }

    fn csv_titles(&mut self, out: &mut Output) -> Result<(), Failure> {
        if std::mem::replace(&mut self.titled, true) {
            return Ok(());
        }
        out.csv(&["seq", "time", "at", "stream", "type", "id", "from", "to", "run", "text"])
    }
}

fn csv_event(out: &mut Output, shown: &Shown) -> Result<(), Failure> {
    let record = &*shown.record;
    let message = shown.message.as_ref();
    let of = |part: Option<&String>| part.cloned().unwrap_or_default();
    out.csv(&[
        &record.seq.to_string(),
        &record.time.to_string(),
        &shown.at.to_string(),
        record.stream.as_str(),
        record.kind.as_str(),
        &record.id.to_string(),
        &of(message.map(|m| &m.from)),
        &of(message.map(|m| &m.to)),
        &of(message.and_then(|m| m.run.as_ref())),
        &one_line(&line::summary(shown, Fields::Whole)),
    ])
}
