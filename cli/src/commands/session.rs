//! `session`: the channel sessions of the command line.

mod push;

use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// Talk to the session of a chat on a channel
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Push(push::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::Push(args) => push::run(args, context),
    }
}
