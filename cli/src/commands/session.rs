//! `session`: the channel sessions of the command line.

mod change;
mod chat;
mod context;
pub(crate) mod push;
mod resume;
mod status;

use annals_engine::session::index::Shape;

use crate::commands::{Context, sessions};
use crate::exit::{Exit, Failure};

/// Talk to the session of a chat on a channel
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Push(push::Args),
    Context(context::Args),
    Resume(resume::Args),
    /// List the sessions of channels, the last changed first
    List(sessions::list::Args),
    Reset(change::Reset),
    Status(status::Args),
    Patch(change::Patch),
    Archive(change::Archive),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::Push(args) => push::run(args, context),
        Verb::Context(args) => context::run(args, context),
        Verb::Resume(args) => resume::run(args, context),
        Verb::List(args) => sessions::list::run_for(args, Shape::ChannelChat, context),
        Verb::Reset(args) => change::reset(args, context),
        Verb::Status(args) => status::run(args, context),
        Verb::Patch(args) => change::patch(args, context),
        Verb::Archive(args) => change::archive(args, context),
    }
}
