//! `tail`: the end of the log, and with `-f` what comes after it, as it comes.

use std::collections::VecDeque;

use annals_engine::store::{Cursor, EventStore, Followed, Item, Read, View};
use annals_engine::{Error, ErrorKind};

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::FilterArgs;
use crate::output::time::TimeStyle;
use crate::output::{Format, Output, say};
use crate::shown::print::Printer;
use crate::sieve::{Sieve, Step};
use crate::{signal, store};

/// Watch events as they come: the audit view
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An inter-session message shows as `from -> to` with its run, round and decision. Missing events show
as a GAP line, and as an object {\"gap\": …} in JSON. On a screen the view reaches to the last whole
batch; in every other form to what is on stable storage.

Examples:
  annals tail -n 50                          the last 50 events
  annals tail -f -m                          only what sessions say to each other, as they say it
  annals tail -f --session 'agent:*:subagent:*' --type turn
  annals tail -f --json | jq -c '{seq, type}'
  annals tail -f --json --after CURSOR       go on where a line printed that cursor")]
pub(crate) struct Args {
    /// Go on as events come
    #[arg(short, long)]
    follow: bool,
    /// Only what goes between sessions: turns, sends, spawns, announces, refusals, policy
    #[arg(short, long)]
    messages: bool,
    /// How many events to begin with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Begin after this cursor instead, with every event
    #[arg(long, value_name = "CURSOR", conflicts_with = "lines")]
    after: Option<Cursor>,
    /// Fail with exit code 6 when events are missing
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let mut wanted = args.filter.check(&context.out)?;
    let engine = store::open_read_only(&context.global)?;
    let events = engine.store();
    wanted.resolve(events)?;
    let view = if context.out.format == Format::Table { View::Written } else { View::Durable };
    let mut tail = Tail {
        printer: Printer::new(&context.out, events.id(), time_style(args, &context.out)),
        sieve: Sieve::new(wanted, args.messages, args.after, events.id()),
        last: VecDeque::new(),
        keep: if args.after.is_some() { None } else { Some(args.lines) },
        gaps: 0,
        sure: args.after,
        unsure: VecDeque::new(),
    };
    let read = tail.sieve.read(events, view)?;
    if args.follow {
        signal::end_when_unread()?;
        tail.follow(events, read, &mut context.out)?;
    } else {
        for item in events.read(read)? {
            tail.take(item?, events, &mut context.out)?;
        }
        tail.print_last(&mut context.out)?;
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
    /// The last steps so far, while it is not known which are the last.
    last: VecDeque<Step>,
    /// How many of them to keep; `None` when every step is printed as it comes.
    keep: Option<usize>,
    gaps: u64,
    /// Up to here the log can no longer change.
    sure: Option<Cursor>,
    /// What was read beyond it.
    unsure: VecDeque<Cursor>,
}

impl Tail {
    fn follow(
        &mut self,
        events: &dyn EventStore,
        mut read: Read,
        out: &mut Output,
    ) -> Result<(), Failure> {
        loop {
            match self.follow_history(events, read, out)? {
                None => return Ok(()),
                Some(changed) if self.unsure.is_empty() => return Err(changed.into()),
                Some(_) => {
                    self.print_last(out)?;
                    out.flush()?;
                    let after = self.sure.map(|cursor| cursor.seq()).unwrap_or_default();
                    say(&format!(
                        "what was shown after #{after} was not yet durable and was taken back; going on from there"
                    ));
                    self.unsure.clear();
                    self.sieve.restart(self.sure);
                    read = self.sieve.read(events, View::Written)?;
                }
            }
        }
    }

    /// Follows one history to its end: `None` when nothing more is wanted, the error when the history changed.
    fn follow_history(
        &mut self,
        events: &dyn EventStore,
        read: Read,
        out: &mut Output,
    ) -> Result<Option<Error>, Failure> {
        let mut follower = events.follow(read)?;
        while !self.sieve.over {
            match follower.next(None) {
                Ok(Followed::Item(item)) => self.take(item, events, out)?,
                Ok(Followed::CaughtUp(_)) => {
                    self.print_last(out)?;
                    out.flush()?;
                }
                Ok(Followed::Quiet) => {}
                Err(error) if *error.kind() == ErrorKind::HistoryChanged => return Ok(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        self.print_last(out)?;
        Ok(None)
    }

    fn take(
        &mut self,
        item: Item,
        events: &dyn EventStore,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if let Item::Record(record) = &item {
            self.unsure.push_back(record.cursor(self.sieve.store));
            while let Some(cursor) = self.unsure.pop_front_if(|c| c.seq() <= record.durable) {
                self.sure = Some(cursor);
            }
        }
        let Some(step) = self.sieve.pass(item, events)? else { return Ok(()) };
        self.gaps += u64::from(step.misses_something());
        let Some(keep) = self.keep else { return self.printer.print(out, &step) };
        self.last.push_back(step);
        if self.last.len() > keep {
            self.last.pop_front();
        }
        Ok(())
    }

    fn print_last(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.keep = None;
        while let Some(step) = self.last.pop_front() {
            self.printer.print(out, &step)?;
        }
        Ok(())
    }
}
