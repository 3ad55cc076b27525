//! The table of figures: annals beside its floors and its rivals in interleaved rounds of one process.

use std::path::PathBuf;

use annals_benches::report::{Section, targets};
use annals_benches::sections::{
    Plan, append, follow, foreign, growth, import, memory, open, point, processes, push, replay,
    search, verify,
};
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
        #[arg(long, value_delimiter = ',', default_values_t = CALLERS)]
        callers: Vec<usize>,
    },
    /// Appends from several processes
    Processes {
        /// How many processes append, one after the other
        #[arg(long, value_delimiter = ',', default_values_t = PROCESSES)]
        processes: Vec<usize>,
    },
    /// Appends that the operating system writes back when it likes
    Buffered,
    /// Every byte checked
    Verify,
    /// Session rows from nothing
    Replay,
    /// Session rows by programs of other languages
    Foreign,
    /// The last turns of one session
    Point,
    /// A word in everything that was said
    Search,
    /// `session push` of the program
    Push,
    /// How soon a follower has an event
    Follow,
    /// A store whose writer was killed
    Open,
    /// Transcripts of another program
    Import,
    /// Memory of the program
    Memory,
    /// The same work on stores of several sizes
    Growth {
        /// How many events the stores have, in rising order
        #[arg(long, value_delimiter = ',', default_values_t = SIZES)]
        sizes: Vec<usize>,
    },
    #[command(hide = true)]
    ChildAppend { who: String, millis: u64, store: PathBuf },
    #[command(hide = true)]
    ChildFollow { who: String, store: PathBuf },
}

const CALLERS: [usize; 4] = [1, 16, 64, 256];
const PROCESSES: [usize; 2] = [1, 8];
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

fn main() {
    let arguments = Arguments::parse();
    let plan = Plan {
        data: arguments.data.unwrap_or_else(stored::data_folder),
        events: arguments.events,
        rounds: arguments.rounds,
        millis: arguments.millis,
    };
    match &arguments.verb {
        Verb::Make => println!("{}", plan.store().display()),
        Verb::ChildAppend { who, millis, store } => processes::child(who, *millis, store),
        Verb::ChildFollow { who, store } => follow::child(who, store),
        verb => measure(verb, &plan),
    }
}

fn measure(verb: &Verb, plan: &Plan) {
    std::fs::create_dir_all(&plan.data).ok();
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("Machine: {}.\n", machine::describe(&plan.data));
    println!(
        "Command: `cargo run --release -p annals-benches{RIVALS} --bin table -- {}`\n",
        words.join(" ")
    );
    let mut verdicts = Vec::new();
    for section in of(verb, plan) {
        println!("{}", section.markdown());
        verdicts.extend(section.verdicts);
    }
    println!("### Targets\n\n{}", targets(&verdicts));
}

/// How this program was built.
const RIVALS: &str = if cfg!(feature = "rivals") { " --features rivals" } else { "" };

type Sections<'a> = Box<dyn Iterator<Item = Section> + 'a>;

/// The sections that a verb asks for, each measured when it is taken.
fn of<'a>(verb: &'a Verb, plan: &'a Plan) -> Sections<'a> {
    let one = |section: fn(&Plan) -> Section| -> Sections<'a> {
        Box::new(std::iter::once_with(move || section(plan)))
    };
    match verb {
        Verb::All => all(plan),
        Verb::Append { callers } => appends(plan, callers),
        Verb::Processes { processes } => several(plan, processes),
        Verb::Buffered => one(append::buffered),
        Verb::Verify => one(verify::section),
        Verb::Replay => one(replay::section),
        Verb::Foreign => one(foreign::section),
        Verb::Point => one(point::section),
        Verb::Search => one(search::section),
        Verb::Push => one(push::section),
        Verb::Follow => one(follow::section),
        Verb::Open => one(open::section),
        Verb::Import => one(import::section),
        Verb::Memory => one(memory::section),
        Verb::Growth { sizes } => Box::new(growth::sections(plan, sizes)),
        Verb::Make | Verb::ChildAppend { .. } | Verb::ChildFollow { .. } => {
            Box::new(std::iter::empty())
        }
    }
}

fn all(plan: &Plan) -> Sections<'_> {
    let ones: [fn(&Plan) -> Section; 11] = [
        append::buffered,
        verify::section,
        replay::section,
        foreign::section,
        point::section,
        search::section,
        push::section,
        open::section,
        follow::section,
        import::section,
        memory::section,
    ];
    let ones = ones.into_iter().map(|section| section(plan));
    let first = appends(plan, &CALLERS).chain(several(plan, &PROCESSES));
    Box::new(first.chain(ones).chain(growth::sections(plan, &SIZES)))
}

fn appends<'a>(plan: &'a Plan, callers: &'a [usize]) -> Sections<'a> {
    Box::new(callers.iter().map(|&callers| append::synced(plan, callers)))
}

fn several<'a>(plan: &'a Plan, processes: &'a [usize]) -> Sections<'a> {
    Box::new(processes.iter().map(|&processes| processes::section(plan, processes)))
}
