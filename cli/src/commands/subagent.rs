//! `subagent`: children that work on tasks: spawned, looked at, asked again, ended.

mod child;
mod kill;
mod list;
mod resume;
mod spawn;
mod status;

use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// Spawn children, and see what becomes of them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Spawn(Box<spawn::Args>),
    List(list::Args),
    Resume(resume::Args),
    Status(status::Args),
    Kill(kill::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::Spawn(args) => spawn::run(args, context),
        Verb::List(args) => list::run(args, context),
        Verb::Resume(args) => resume::run(args, context),
        Verb::Status(args) => status::run(args, context),
        Verb::Kill(args) => kill::run(args, context),
    }
}
