//! `sessions`: which sessions there are, and what was said in them: the tools of the agents, with flags.

mod history;
pub(crate) mod list;

use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// List sessions and read what was said in them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    History(history::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(args) => list::run(args, context),
        Verb::History(args) => history::run(args, context),
    }
}
