//! `session resume`: where a conversation stands; with `--part` an earlier part is current again.

use annals_engine::session::change::Change;
use annals_engine::session::history::Span;
use annals_tools::history::sessions_history;
use annals_tools::wire::HistoryArgs;

use super::chat::Chat;
use crate::commands::{Context, sessions};
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::store::{self, Looked};

/// Print the last turns of a session, or make an earlier part current again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --part nothing is changed. With it the part is current from here on, which is recorded.

Examples:
  annals session resume cli default
  annals session resume telegram 42 --part 019a")]
pub(crate) struct Args {
    #[command(flatten)]
    chat: Chat,
    /// Make this part current again: its id, or the beginning of it
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other)]
    part: Option<String>,
    /// How many messages at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 12)]
    limit: usize,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("session resume", &[Format::Table, Format::Json])?;
    let key = args.chat.key()?;
    let mut looked = Looked::at(store::open_read_only(&context.global)?, context.out.now)?;
    let found = args.chat.find(&looked.view(), args.part.as_deref())?;
    if let Some(part) = found.part.clone() {
        let engine = store::open(&context.global)?;
        let changed = engine.change(&found, &Change::Resume { part })?;
        if context.out.format != Format::Json {
            super::change::show(&changed, "resumed", context)?;
        }
        looked = Looked::at(engine, context.out.now)?;
    }
    let wanted = HistoryArgs {
        session_key: key.as_str().to_owned(),
        limit: Some(if args.limit == 0 { usize::MAX } else { args.limit }),
        ..HistoryArgs::default()
    };
    let reply = sessions_history(&store::operator()?, &looked.view(), &wanted, Span::Part)?;
    sessions::history::print(reply, &mut context.out)?;
    Ok(Exit::Ok)
}
