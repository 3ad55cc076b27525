//! `tail`: the end of the log, and with `-f` what comes after it, as it comes.

use std::time::Duration;

use annals_engine::clock::Clock;
use annals_engine::store::{Cursor, EventStore, Followed, Item, View};
use annals_engine::{Engine, Error, ErrorKind};

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::{FilterArgs, Reach};
use crate::output::time::TimeStyle;
use crate::output::{Format, Output, say};
use crate::shown::mask::{MaskArgs, Masker};
use crate::shown::print::Printer;
use crate::sieve::{Sieve, Step};
use crate::{signal, store};

/// What only following adds to a filter that other verbs have too.
const UNTIL: &str = "Not after; the same forms. Following ends when that time has come";

/// Watch events as they come: the audit view
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An inter-session message shows as `from -> to` with its run, round and decision. Missing events show \
as a GAP line, and as an object {\"gap\": …} in JSON. Lines for eyes reach to the last whole batch, \
every other form to what is on stable storage. Secrets (keys, tokens, passwords, what \
security.maskValues and maskEnv name) are shown as [masked:RULE]; --no-mask shows them.

Examples:
  annals tail -n 50                         the last 50 events
  annals tail -f -m                         only what sessions say to each other
  annals tail -f --session 'agent:*:subagent:*' --type turn
  annals tail -f --json | jq -c '{seq, type}'
  annals tail -f --json --after CURSOR      go on where a line had that cursor")]
#[command(mut_arg("until", |until| until.help(UNTIL)))]
pub(crate) struct Args {
    /// Go on as events come
    #[arg(short, long)]
    follow: bool,
    /// Only what goes between sessions: turns, sends, spawns, announces, refusals, policy
    #[arg(short, long)]
    messages: bool,
    /// How many events to begin with
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 20)]
    lines: usize,
    /// Begin after this cursor instead, with every event
    #[arg(long, value_name = "CURSOR", value_hint = clap::ValueHint::Other, conflicts_with = "lines")]
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
    let mut wanted = args.filter.check(&context.out)?;
    let engine = store::open_read_only(&context.global)?;
    let events = engine.store();
    wanted.resolve(&engine)?;
    let view = if context.out.format == Format::Table { View::Written } else { View::Durable };
    let mut tail = Tail {
        printer: Printer::new(&context.out, events.id(), time_style(args, &context.out)),
        sieve: Sieve::new(wanted, args.messages, args.after, events.id()),
        masker: args.mask.masker()?,
        view,
        gaps: 0,
    };
    match args.after {
        None => tail.last(events, args.lines, &mut context.out)?,
        Some(_) => tail.rest(events, &mut context.out)?,
    }
    if args.follow {
        signal::end_when_unread()?;
        tail.follow(&engine, &mut context.out)?;
    }
    Ok(if args.strict && tail.gaps > 0 { Exit::Damage } else { Exit::Ok })
}

/// A line that stays on the screen says when by the clock on the wall.
fn time_style(args: &Args, out: &Output) -> TimeStyle {
    if args.follow && out.width.is_some() {
        return TimeStyle::WallClock { zone: out.zone.clone() };
    }
    out.time_style()
}

/// A tail on its way.
struct Tail {
    sieve: Sieve,
    printer: Printer,
    masker: Masker,
    view: View,
    gaps: u64,
}

impl Tail {
    /// The last steps of what is there.
    fn last(
        &mut self,
        events: &dyn EventStore,
        count: usize,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let steps = self.sieve.last(events, self.view, count)?;
        steps.into_iter().try_for_each(|step| self.print(step, out))
    }

    /// All that is there behind the cursor.
    fn rest(&mut self, events: &dyn EventStore, out: &mut Output) -> Result<(), Failure> {
        self.sieve.learn_all(events)?;
        for item in events.read(self.sieve.read(self.view, Reach::Past))? {
            self.take(item?, events, out)?;
            if self.sieve.over {
                break;
            }
        }
        Ok(())
    }

    /// All that comes, until nothing more can be wanted.
    fn follow(&mut self, engine: &Engine, out: &mut Output) -> Result<(), Failure> {
        out.flush()?;
        while let Some(changed) = self.follow_history(engine, out)? {
            if !self.sieve.is_unsure() {
                return Err(changed.into());
            }
            out.flush()?;
            let after = self.sieve.sure.map(|cursor| cursor.seq()).unwrap_or_default();
            say(&format!(
                "what was shown after #{after} was not yet durable and was taken back; going on from there"
            ));
            self.sieve.begin(self.sieve.sure);
        }
        Ok(())
    }

    /// Follows one history to its end: `None` when nothing more is wanted, the error when the history changed.
    fn follow_history(
        &mut self,
        engine: &Engine,
        out: &mut Output,
    ) -> Result<Option<Error>, Failure> {
        let events = engine.store();
        let changed = |error: &Error| *error.kind() == ErrorKind::HistoryChanged;
        let mut follower = match events.follow(self.sieve.read(self.view, Reach::Future)) {
            Ok(follower) => follower,
            Err(error) if changed(&error) => return Ok(Some(error)),
            Err(error) => return Err(error.into()),
        };
        while !self.sieve.over {
            match follower.next(self.time_left(engine.clock())) {
                Ok(Followed::Item(item)) => self.take(item, events, out)?,
                Ok(Followed::CaughtUp(_)) => out.flush()?,
                Ok(Followed::Quiet) => {
                    self.sieve.over |= self.time_left(engine.clock()) == Some(Duration::ZERO);
                }
                Err(error) if changed(&error) => return Ok(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// How long events can still be wanted; `None` for ever.
    fn time_left(&self, clock: &dyn Clock) -> Option<Duration> {
        let left = self.sieve.ends_at()?.as_micros().saturating_sub(clock.now().as_micros());
        Some(Duration::from_micros(u64::try_from(left).unwrap_or(0)))
    }

    fn take(
        &mut self,
        item: Item,
        events: &dyn EventStore,
        out: &mut Output,
    ) -> Result<(), Failure> {
        match self.sieve.pass(item, events)? {
            Some(step) => self.print(step, out),
            None => Ok(()),
        }
    }

    fn print(&mut self, step: Step, out: &mut Output) -> Result<(), Failure> {
        self.gaps += u64::from(step.misses_something());
        self.printer.print(out, &self.masker.mask(step))
    }
}
