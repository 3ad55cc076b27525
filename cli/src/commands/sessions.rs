//! `sessions`: which sessions there are, and what was said in them: the tools of the agents, with flags.

pub(crate) mod history;
pub(crate) mod list;
mod search;
pub(crate) mod send;
pub(crate) mod spawn;

use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// List sessions, read, search, send messages, spawn children
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    History(history::Args),
    Search(search::Args),
    Send(send::Args),
    Spawn(spawn::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(args) => list::run(args, context),
        Verb::History(args) => history::run(args, context),
        Verb::Search(args) => search::run(args, context),
        Verb::Send(args) => send::run(args, context),
        Verb::Spawn(args) => spawn::run(args, context),
    }
}
