//! `serve`: everything that stays: the server, a worker, the watch rules.

use annals_tools::http::{HttpSettings, Server};
use serde::Serialize;
use tokio::sync::watch;

use crate::commands::Context;
use crate::commands::watch::Watching;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers, runtime};
use crate::output::text::count;
use crate::output::{Format, say};
use crate::{settings, signal, store};

/// Serve the session tools over HTTP and MCP, work on runs, and run the watch rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Callers bring a token, which says who they are: http.token in the configuration (or ANNALS_HTTP_TOKEN) \
is the owner's, http.tokens.NAME { token, session } a session's, and every run has its own in \
ANNALS_TOKEN, with the address in ANNALS_MCP_URL. /livez and /readyz need none. A request must address \
localhost, the address that is listened on, or a name of http.allowedHosts. There is no TLS: beyond \
this machine put a proxy in front.

WEBHOOK_ENABLED=1 with WEBHOOK_TOKEN, or with WEBHOOK_SECRET for signed calls, opens POST /v1/webhook for \
messages of chats: {\"text\": …, \"channel\": …, \"chat_id\": …}. Callers with the same Idempotency-Key ask \
once; the answer is in the response, or 202 when it takes longer than webhook.waitSeconds.

The first SIGTERM or SIGINT answers what waits, ends the runs as interrupted and leaves; the second \
ends it at once.

Examples:
  ANNALS_HTTP_TOKEN=$(openssl rand -hex 32) annals serve
  claude mcp add --transport http annals http://127.0.0.1:8767/mcp \\
    --header \"Authorization: Bearer $ANNALS_HTTP_TOKEN\"
  curl -H \"Authorization: Bearer $ANNALS_HTTP_TOKEN\" \\
    http://127.0.0.1:8767/v1/sessions")]
pub(crate) struct Args {
    /// Listen here instead of http.address
    #[arg(long, value_name = "HOST:PORT", value_hint = clap::ValueHint::Other)]
    listen: Option<String>,
    /// Work on no runs: leave them to `annals worker`
    #[arg(long)]
    no_worker: bool,
    /// Do not run the watch rules
    #[arg(long)]
    no_watch: bool,
}

/// Where it is served, as an object.
#[derive(Serialize)]
struct Serving<'a> {
    ok: bool,
    url: &'a str,
    mcp: &'a str,
    /// Whether it works on runs.
    worker: bool,
    /// How many watch rules it runs.
    rules: usize,
    webhook: bool,
}

impl Serving<'_> {
    /// What is at work, in words.
    fn at_work(&self) -> String {
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        let rules = count(self.rules as u64, "watch rule");
        format!("worker {}, {rules}, webhook {}", on(self.worker), on(self.webhook))
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("serve", &[Format::Table, Format::Json])?;
    let mut http = HttpSettings::of(settings::get()?)?;
    if let Some(address) = &args.listen {
        http.address.clone_from(address);
    }
    let lets_somebody_in = http.lets_somebody_in();
    let engine = store::open(&context.global)?;
    let runtime = runtime()?;
    let server = runtime.block_on(Server::bind(http))?;
    let mcp = server.mcp_url();
    let workers = if args.no_worker { Workers::OnCall } else { Workers::Never };
    let office = Office::of(&engine, &context.global, workers)?.reached_at(mcp.clone());
    let host = if args.no_worker { office.host() } else { office.host_here() };
    let bench = if args.no_worker { None } else { Some(office.bench()?) };
    let (stop, stopped) = watch::channel(false);
    let wish = stop.clone();
    signal::instead(move || {
        wish.send_replace(true);
    });
    let watchers = match args.no_watch {
        true => None,
        false => Some(Watching::start(&engine, &context.global)?),
    };
    let url = mcp.trim_end_matches("/mcp");
    let serving = Serving {
        ok: true,
        url,
        mcp: &mcp,
        worker: !args.no_worker,
        rules: watchers.as_ref().map_or(0, |watching| watching.rules),
        webhook: settings::get()?.is_on("webhook.enabled"),
    };
    if context.out.is_json() {
        context.out.object(&serving)?;
    } else {
        context.out.line(&format!("serving {url} (MCP at {mcp})"))?;
        context.out.line(&serving.at_work())?;
    }
    context.out.flush()?;
    if !lets_somebody_in {
        say("note: nobody but runs has a token: set http.token, or ANNALS_HTTP_TOKEN");
    }
    if server.is_open() {
        say("note: other machines reach this address, and there is no TLS");
    }
    let stays = bench.map(|bench| || bench.stay(stopped.clone()));
    let worked = together(|| runtime.block_on(server.serve(host, stopped.clone())), stays, &stop);
    // A call that nobody waits for any more is left alone.
    runtime.shutdown_background();
    drop(watchers);
    worked?;
    Ok(signal::came().map_or(Exit::Ok, Exit::Signal))
}

/// Serves, and works meanwhile. Whichever ends first, be it in a panic, ends the other.
///
/// # Errors
/// That the worker panicked: a server whose runs nobody makes is none.
fn together(
    serves: impl FnOnce(),
    works: Option<impl FnOnce() + Send>,
    stop: &watch::Sender<bool>,
) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let worker = works.map(|works| {
            scope.spawn(move || {
                let _stops = Stops(stop);
                works();
            })
        });
        serves();
        stop.send_replace(true);
        worker.map_or(Ok(()), |worker| worker.join().map_err(|_| broken()))
    })
}

/// Asks for the end of all when it is dropped.
struct Stops<'a>(&'a watch::Sender<bool>);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

fn broken() -> Failure {
    Failure::new(Exit::Failed, "unavailable", "the worker broke off, and nobody works on runs")
        .hint("what it had claimed is looked after by the next `annals serve` or `annals worker`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a worker that panics ends the server, with an error; one that is told to stop does not. Method: a server that
    /// stays until it is stopped, and workers.
    #[test]
    fn a_worker_that_panics() {
        let served = |works: fn(&watch::Receiver<bool>)| {
            let (stop, stopped) = watch::channel(false);
            let until_stopped = || {
                while !*stopped.borrow() {
                    std::thread::yield_now();
                }
            };
            together(until_stopped, Some(|| works(&stopped)), &stop)
        };
        assert!(served(|_| panic!("as it is meant to")).is_err());
        assert!(served(|_| ()).is_ok());
    }
}
