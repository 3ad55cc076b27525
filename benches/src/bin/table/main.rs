//! The table of figures: annals beside its floors and its rivals in interleaved rounds of one process.

use std::path::PathBuf;

use annals_benches::report::{Section, Verdict, targets};
use annals_benches::sections::{Plan, append, point, processes, replay, verify};
use annals_benches::workload::Shape;
use annals_benches::{machine, stored};
use clap::{Parser, Subcommand};

/// Measures annals beside floors and rivals and prints what it finds as Markdown.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where stores of the workload are kept from run to run
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How many events the store has that is read
    #[arg(long, global = true, default_value_t = 1_000_000)]
    events: usize,
    /// How often everything runs
    #[arg(long, global = true, default_value_t = 5)]
    rounds: usize,
    /// How long a round of appends takes, in milliseconds
    #[arg(long, global = true, default_value_t = 400)]
    millis: u64,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Makes the store that is read, unless it is there, and prints its folder
    Make,
    /// Everything
    All,
    /// Appends from one process
    Append {
        /// How many threads append, one after the other
        #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256])]
        callers: Vec<usize>,
    },
    /// Appends from several processes
    Processes {
        /// How many processes append, one after the other
        #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
        processes: Vec<usize>,
    },
    /// Appends that the operating system writes back when it likes
    Buffered,
    /// Every byte checked
    Verify,
    /// Session rows from nothing
    Replay,
    /// The last turns of one session
    Point,
    #[command(hide = true)]
    ChildAppend { who: String, millis: u64, store: PathBuf },
}

fn main() {
    let arguments = Arguments::parse();
    let plan = Plan {
        data: arguments.data.unwrap_or_else(stored::data_folder),
        events: arguments.events,
        rounds: arguments.rounds,
        millis: arguments.millis,
    };
    if matches!(arguments.verb, Verb::Make) {
        println!("{}", stored::store(&plan.data, Shape::default(), plan.events).display());
        return;
    }
    if let Verb::ChildAppend { who, millis, store } = &arguments.verb {
        return processes::child(who, *millis, store);
    }
    std::fs::create_dir_all(&plan.data).ok();
    println!("Machine: {}.\n", machine::describe(&plan.data));
    let mut verdicts = Vec::new();
    for section in of(&arguments.verb, &plan) {
        show(&section, &mut verdicts);
    }
    println!("{}", targets(&verdicts));
}

type Sections<'a> = Box<dyn Iterator<Item = Section> + 'a>;

/// The sections that a verb asks for, each measured when it is taken.
fn of<'a>(verb: &'a Verb, plan: &'a Plan) -> Sections<'a> {
    let one = |section: fn(&Plan) -> Section| -> Sections<'a> {
        Box::new(std::iter::once_with(move || section(plan)))
    };
    match verb {
        Verb::Make => Box::new(std::iter::empty()),
        Verb::Append { callers } => {
            Box::new(callers.iter().map(|&callers| append::synced(plan, callers)))
        }
        Verb::Processes { processes } => {
            Box::new(processes.iter().map(|&processes| processes::section(plan, processes)))
        }
        Verb::ChildAppend { .. } => Box::new(std::iter::empty()),
        Verb::Buffered => one(append::buffered),
        Verb::Verify => one(verify::section),
        Verb::Replay => one(replay::section),
        Verb::Point => one(point::section),
        Verb::All => Box::new(
            [1, 16, 64, 256]
                .into_iter()
                .map(|callers| append::synced(plan, callers))
                .chain([1, 8].into_iter().map(|processes| processes::section(plan, processes)))
                .chain(one(append::buffered))
                .chain(one(verify::section))
                .chain(one(replay::section))
                .chain(one(point::section)),
        ),
    }
}

fn show(section: &Section, verdicts: &mut Vec<Verdict>) {
    println!("{}", section.markdown());
    verdicts.extend(section.verdicts.iter().cloned());
}
