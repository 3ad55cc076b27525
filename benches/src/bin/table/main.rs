//! The table of figures: annals beside its floors and its rivals in interleaved rounds of one process.

use std::path::PathBuf;

use annals_benches::stored;
use annals_benches::workload::Shape;
use clap::{Parser, Subcommand};

/// Measures annals beside floors and rivals and prints what it finds as Markdown.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where stores of the workload are kept from run to run
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Makes a store of the workload, unless it is there, and prints its folder
    Make {
        /// How many events
        #[arg(long, default_value_t = 1_000_000)]
        events: usize,
    },
}

fn main() {
    let arguments = Arguments::parse();
    let data = arguments.data.unwrap_or_else(stored::data_folder);
    match arguments.verb {
        Verb::Make { events } => {
            println!("{}", stored::store(&data, Shape::default(), events).display());
        }
    }
}
