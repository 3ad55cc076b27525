//! `sessions`: which sessions there are, and what was said in them: the tools of the agents, with flags.

mod history;
pub(crate) mod list;

use annals_engine::projection::Folded;
use annals_engine::session::index::Sessions;
use annals_engine::store::{EventStore, View};

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

/// The sessions as the log tells them now.
pub(crate) fn folded(events: &dyn EventStore) -> Result<Folded<Sessions>, Failure> {
    Ok(Folded::of(events, View::Durable)?)
}
