//! Sessions as JSON lines that an import takes back. What has no place in them is counted by its type.

use std::collections::BTreeMap;

use annals_engine::format::control;
use annals_engine::session::transcript;

use crate::exit::Failure;
use crate::output::text::count;
use crate::output::{Output, say};
use crate::shown::{gap, wire};
use crate::sieve::Step;

/// A transcript on its way.
#[derive(Default)]
pub(super) struct Transcript {
    /// How many events of each type were left out.
    left_out: BTreeMap<String, u64>,
}

impl Transcript {
    pub(super) fn write(&mut self, step: &Step, out: &mut Output) -> Result<(), Failure> {
        let shown = match step {
            Step::Event(shown) => shown,
            Step::Gap(damage) => return out.line(&transcript::write_gap(&gap::sentence(damage))?),
        };
        let record = &*shown.record;
        match transcript::write(record, shown.payload(), shown.at, wire::lost(shown))? {
            Some(line) => out.line(&line),
            None => {
                if record.stream.as_str() != control::STREAM {
                    *self.left_out.entry(record.kind.to_string()).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    /// Says at the end what was left out.
    pub(super) fn end(&self, out: &mut Output) -> Result<(), Failure> {
        if self.left_out.is_empty() {
            return Ok(());
        }
        out.flush()?;
        let types = self.left_out.iter().map(|(kind, count)| format!("{kind} {count}"));
        let events = count(self.left_out.values().sum(), "event");
        let types = types.collect::<Vec<_>>().join(", ");
        say(&format!("left out: {events} that no transcript tells ({types})"));
        Ok(())
    }
}
