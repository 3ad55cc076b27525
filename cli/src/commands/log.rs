//! `log`: past events, oldest first, a page at a time.

use annals_engine::id::StoreId;
use annals_engine::store::{Cursor, EventStore, View};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::{FilterArgs, Reach};
use crate::output::text::{count, grouped};
use crate::output::{Format, Output, say};
use crate::shown::gap::GapLine;
use crate::shown::mask::{MaskArgs, Masker};
use crate::shown::print::Printer;
use crate::shown::wire::EventWire;
use crate::shown::{gap, wire};
use crate::sieve::{Sieve, Step};
use crate::store;

/// Query past events
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --json the answer is one object: events (a missing range stands among them as {\"gap\": …}), how \
many more match, and `next`, the cursor to go on from. Every event carries its own cursor too.

In JSON and CSV `time` is when an event was recorded, and `at` when it happened: in JSON only where \
the two differ. --since, --until and the lines for eyes go by when it happened.

A session that --session names must be there (exit code 3); the other filters may fit nothing, which \
is an empty answer. Secrets (keys, tokens, passwords, what security.maskValues and maskEnv name) are \
shown as [masked:RULE]; --no-mask shows them. A raw line with one has other bytes than the log.

The log's own housekeeping (log.opened, log.sealed, log.mark) is left out unless \
--type asks for it; `annals export` has every line.

Examples:
  annals log --since yesterday
  annals log --type spawn,error --since 1h --session 'agent:main:*' -n 50
  annals log -m --from agent:main:main      what the main session sent
  annals log --since '#1200' --until '#1300' -o raw
  annals log --json --after \"$(annals log --json | jq -r .next)\"")]
pub(crate) struct Args {
    /// How many events at most, from the oldest on; 0 for all. `annals tail -n` gives the last
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    limit: usize,
    /// Only what goes between sessions: turns, sends, spawns, announces, refusals, policy
    #[arg(short, long)]
    messages: bool,
    /// Begin after this cursor, as `next` printed it
    #[arg(long, value_name = "CURSOR", value_hint = clap::ValueHint::Other)]
    after: Option<Cursor>,
    /// Fail with exit code 6 when events are missing
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    mask: MaskArgs,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    let mut wanted = args.filter.check(out)?;
    let engine = store::open_read_only(&context.global)?;
    let events = engine.store();
    wanted.resolve(&engine)?;
    let mut sieve = Sieve::new(wanted, args.messages, args.after, events.id());
    sieve.learn_all(events)?;
    let read = sieve.read(View::Durable, Reach::Past);
    let masker = args.mask.masker()?;
    let mut page = Page::new(args.limit, masker, Printer::new(out, events.id(), out.time_style()));
    for item in events.read(read)? {
        if let Some(step) = sieve.pass(item?, events)? {
            page.take(step, sieve.cursor, out)?;
        }
        if sieve.over {
            break;
        }
    }
    let next = if page.more > 0 { page.last } else { sieve.cursor };
    page.end(next, events, out)?;
    Ok(if args.strict && page.gaps > 0 { Exit::Damage } else { Exit::Ok })
}

/// One page.
struct Page {
    room: usize,
    masker: Masker,
    printer: Printer,
    /// The steps of a page that is one object.
    steps: Vec<Step>,
    shown: u64,
    /// How many events more match.
    more: u64,
    gaps: u64,
    /// The cursor of the last event on the page.
    last: Option<Cursor>,
}

/// A page as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageWire<'a> {
    ok: bool,
    events: Vec<StepWire<'a>>,
    more: u64,
    gaps: u64,
    next: Option<String>,
    as_of: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum StepWire<'a> {
    Event(Box<EventWire<'a>>),
    Gap(Box<GapLine<'a>>),
}

impl<'a> StepWire<'a> {
    fn of(step: &'a Step, store: StoreId) -> Self {
        match step {
            Step::Event(shown) => Self::Event(Box::new(wire::wire(shown, store))),
            Step::Gap(damage) => Self::Gap(Box::new(gap::wire(damage))),
        }
    }
}

impl Page {
    fn new(limit: usize, masker: Masker, printer: Printer) -> Self {
        let room = if limit == 0 { usize::MAX } else { limit };
        Self { room, masker, printer, steps: Vec::new(), shown: 0, more: 0, gaps: 0, last: None }
    }

    fn take(&mut self, step: Step, at: Option<Cursor>, out: &mut Output) -> Result<(), Failure> {
        if self.room == 0 {
            self.more += u64::from(matches!(step, Step::Event(_)));
            return Ok(());
        }
        self.gaps += u64::from(step.misses_something());
        if matches!(step, Step::Event(_)) {
            self.room -= 1;
            self.shown += 1;
            self.last = at;
        }
        let step = self.masker.mask(step);
        if out.format == Format::Json {
            self.steps.push(step);
            return Ok(());
        }
        self.printer.print(out, &step)
    }

    fn end(
        &self,
        next: Option<Cursor>,
        events: &dyn EventStore,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if out.format == Format::Json {
            return out.object(&self.wire(next, events)?);
        }
        out.flush()?;
        if self.shown == 0 && out.format == Format::Table {
            say("no event matches");
        }
        if let Some(next) = next.filter(|_| self.more > 0) {
            say(&format!("{} more; go on with --after {next}", grouped(self.more)));
        }
        if self.gaps > 0 {
            say(&format!(
                "{} in what was read: `annals verify` says more",
                count(self.gaps, "gap")
            ));
        }
        Ok(())
    }

    fn wire(&self, next: Option<Cursor>, events: &dyn EventStore) -> Result<PageWire<'_>, Failure> {
        let id = events.id();
        Ok(PageWire {
            ok: true,
            events: self.steps.iter().map(|step| StepWire::of(step, id)).collect(),
            more: self.more,
            gaps: self.gaps,
            next: next.map(|cursor| cursor.to_string()),
            as_of: events.end(View::Durable)?.map_or(0, |cursor| cursor.seq().0),
        })
    }
}
