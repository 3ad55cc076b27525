//! `sessions`: which sessions there are, and what was said in them: the tools of the agents, with flags.

pub(crate) mod history;
pub(crate) mod list;
mod search;

use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// List sessions, read and search what was said in them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    History(history::Args),
    Search(search::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(args) => list::run(args, context),
        Verb::History(args) => history::run(args, context),
        Verb::Search(args) => search::run(args, context),
    }
}
