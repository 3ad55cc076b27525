//! `mcp`: the session tools over the Model Context Protocol, on standard input and output.

use annals_tools::mcp;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers, runtime};
use crate::output::Format;
use crate::{seat, signal, store};

/// Serve the session tools to an agent, over MCP on standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Calls come from the session of --as; inside a run, from the session that the run works on, by \
ANNALS_TOKEN; else from the store's owner, who sees everything. No argument of a tool says who calls. \
Standard output carries the protocol and nothing else. The server ends when its input does; runs that \
were asked for go on.

Examples:
  claude mcp add annals -- annals mcp --as agent:main:main
  annals mcp --as telegram:42")]
pub(crate) struct Args {
    /// The session that calls
    #[arg(long = "as", value_name = "KEY", value_hint = clap::ValueHint::Other)]
    session: Option<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("mcp", &[Format::Table])?;
    // What reads needs no more than a store that can be read.
    let engine = store::open_if_it_may(&context.global)?;
    let office = Office::of(&engine, &context.global, Workers::OnCall)?;
    let host = office.host();
    let who = seat::identity(&engine, args.session.as_deref())?;
    signal::end_when_unread()?;
    let runtime = runtime()?;
    let served = runtime.block_on(mcp::serve_stdio(host, who));
    // A call that nobody waits for any more is left alone.
    runtime.shutdown_background();
    served.map(|()| Exit::Ok).map_err(|error| {
        Failure::new(Exit::Failed, "protocol", format!("the protocol did not begin: {error}"))
    })
}
