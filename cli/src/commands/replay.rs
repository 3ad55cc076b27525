//! `replay`: the sessions, built again from the events alone, as of now or as of any moment of the past. It uses no
//! snapshot and writes none.

mod check;
mod tree;

use annals_engine::Engine;
use annals_engine::clock::Timestamp;
use annals_engine::format::{Fields, control};
use annals_engine::projection::{Folded, Losses, Projection, Until};
use annals_engine::session::index::{Lens, Sessions, Shape};
use annals_engine::store::{Damage, Item, Read, View};
use annals_tools::list::list;
use annals_tools::wire::{ArchivedArg, ListArgs, ListReply, Listed};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::sessions::list;
use crate::exit::{Exit, Failure};
use crate::output::table::dress;
use crate::output::text::count;
use crate::output::{Format, Output, say};
use crate::shown::mask::MaskArgs;
use crate::store;
use crate::when::{self, Bound};

/// Rebuild the sessions from nothing, as of now or of any moment
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Events are taken in the order of the log. --until with a time stops at the first that was recorded \
after it, and the rows are those of that time; the same --until prints the same bytes as long \
as the settings are the same: states that depend on settings, such as expired and archived, are those \
of the settings in force now. The store is only read, and no snapshot is used.

--check proves that the sessions of the newest snapshot, with what was recorded since, are those that \
all events give, byte for byte as a snapshot holds them; if not, it says which differ and ends with \
exit code 1.

Examples:
  annals replay
  annals replay --until yesterday --json | jq '.sessions[].key'
  annals replay --until '#1200'
  annals replay --tree agent:main:main
  annals replay --check")]
pub(crate) struct Args {
    /// As of then: 2h, 3d, yesterday, 14:30, an ISO time, or #42 for a place in the log
    #[arg(long, value_name = "WHEN", value_hint = clap::ValueHint::Other)]
    until: Option<String>,
    /// One flow as a tree: this session, its parts and runs, what it sent, and whom it spawned
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other)]
    tree: Option<String>,
    /// Prove that the newest snapshot and the rest give the same
    #[arg(long, conflicts_with_all = ["until", "tree"])]
    check: bool,
    #[command(flatten)]
    mask: MaskArgs,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    let mut forms = vec![Format::Table, Format::Json];
    if args.tree.is_none() && !args.check {
        forms.extend([Format::Jsonl, Format::Csv]);
    }
    out.only("replay", &forms)?;
    args.mask.on(out)?;
    let (_, until) = when::range(None, args.until.as_ref(), out.now, &out.zone)?;
    let engine = store::open_read_only(&context.global)?;
    if args.check {
        return check::run(&engine, out);
    }
    note(&engine, until)?;
    if let Some(key) = &args.tree {
        return tree::run(key, &engine, until, out);
    }
    let (sessions, losses) = match until {
        None => Folded::<(Sessions, Losses)>::replayed(engine.store(), View::Durable)?.split(),
        Some(until) => {
            let past = Past::<()>::read(&engine, Some(until), out.now)?;
            out.now = past.now;
            (past.sessions, past.losses)
        }
    };
    rows(&engine, &sessions, &losses, out)?;
    Ok(Exit::Ok)
}

/// Says what is easily taken for an empty past: a time before all that was recorded, and a place behind the end.
fn note(engine: &Engine, until: Option<Bound>) -> Result<(), Failure> {
    let events = engine.store();
    match until {
        None => {}
        Some(Bound::Seq(last)) => {
            let end = events.end(View::Durable)?.map_or(0, |cursor| cursor.seq().0);
            if last.0 > end {
                say(&format!("note: the log ends at #{end}"));
            }
        }
        Some(Bound::Time(last)) => {
            for item in events.read(Read::default())? {
                let Item::Record(record) = item? else { return Ok(()) };
                if record.stream.as_str() == control::STREAM {
                    continue;
                }
                if record.time > last {
                    let first = record.time;
                    say(&format!(
                        "note: nothing was recorded before then: the first event was on {first}; imported events \
                         count from their import, whenever they happened"
                    ));
                }
                break;
            }
        }
    }
    Ok(())
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    rebuilt: usize,
    events: u64,
    as_of: u64,
    now: Timestamp,
    gaps: u64,
    missing: u64,
    sessions: Vec<Listed>,
}

fn rows(
    engine: &Engine,
    sessions: &Folded<Sessions>,
    losses: &Losses,
    out: &mut Output,
) -> Result<(), Failure> {
    let config = crate::settings::get()?;
    let rules = config.time_rules();
    let lens = Lens { rules: &rules, now: out.now };
    let all =
        ListArgs { limit: Some(usize::MAX), archived: ArchivedArg::All, ..ListArgs::default() };
    let view = annals_tools::View { store: engine.store(), sessions, lens, config, desk: None };
    let reply = list(&store::operator()?, &view, &all, Shape::Any)?;
    match out.format {
        Format::Json => out.object(&Answer {
            ok: true,
            rebuilt: reply.total,
            events: sessions.events(),
            as_of: reply.as_of,
            now: out.now,
            gaps: losses.ranges(),
            missing: losses.events(),
            sessions: reply.sessions,
        }),
        Format::Jsonl => reply.sessions.iter().try_for_each(|listed| out.object(listed)),
        Format::Csv => list::csv(&reply, out),
        _ => show(&reply, sessions, losses, out),
    }
}

fn show(
    reply: &ListReply,
    sessions: &Folded<Sessions>,
    losses: &Losses,
    out: &mut Output,
) -> Result<(), Failure> {
    if !reply.sessions.is_empty() {
        list::table(reply, out)?;
        out.line("")?;
    }
    tell(losses, out)?;
    let rebuilt = count(u64::try_from(reply.total).unwrap_or(u64::MAX), "session");
    out.line(&format!("rebuilt {rebuilt} from {}", count(sessions.events(), "event")))
}

/// Says what the log lacks, if it lacks something.
fn tell(losses: &Losses, out: &mut Output) -> Result<(), Failure> {
    if losses.ranges() == 0 {
        return Ok(());
    }
    let (gaps, missing) = (count(losses.ranges(), "gap"), count(losses.events(), "event"));
    let text = format!("!!!!!!!! {gaps} in the log, {missing} missing: `annals verify` says more");
    out.line(&dress(&text, out.paint.loud()))
}

/// The log as of a moment: the sessions, and one state more that is folded beside them.
struct Past<P> {
    sessions: Folded<Sessions>,
    losses: Losses,
    more: P,
    /// That moment: the time that was named, or when the last event was recorded before the place that was named.
    now: Timestamp,
}

impl<P: Projection> Past<P> {
    /// # Errors
    /// Whatever reading meets.
    fn read(engine: &Engine, until: Option<Bound>, now: Timestamp) -> Result<Self, Failure> {
        type State<P> = (Sessions, (Losses, (Recorded, P)));
        let end = until.map(|until| match until {
            Bound::Seq(last) => Until::Seq(last),
            Bound::Time(last) => Until::Time(last),
        });
        let state = State::<P>::default();
        let (sessions, (losses, (recorded, more))) =
            Folded::until(state, engine.store(), Read::default(), end)?.split();
        let now = match until {
            None => now,
            Some(Bound::Time(until)) => until,
            Some(Bound::Seq(_)) => recorded.0,
        };
        Ok(Self { sessions, losses, more, now })
    }
}

/// When the last event was recorded.
#[derive(Default)]
struct Recorded(Timestamp);

impl Projection for Recorded {
    fn apply(&mut self, event: &Fields<'_>) {
        self.0 = event.time;
    }

    fn gap(&mut self, _: &Damage) {}
}
