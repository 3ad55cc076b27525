//! A run from its request to its end: made here, or by whoever was first; its reply shown as it comes.

use std::time::Duration;

use annals_engine::id::{Seq, Version};
use annals_engine::session::event::{Event, RunFinished, RunStatus, Tokens, run_stream};
use annals_engine::session::run::announce;
use annals_engine::session::silent::{Lane, Silence};
use annals_engine::store::{EventStore, Filter, Followed, Item, NamePattern, Read, Record, View};
use annals_tools::run::Until;
use annals_tools::runs::end_run;
use serde::Serialize;
use tokio::sync::watch;

use crate::exit::{Exit, Failure};
use crate::office::Office;
use crate::output::text::many_lines;
use crate::output::{FailedError, Output};
use crate::screen::Screen;
use crate::signal;

/// So soon a signal is noticed, and that nobody works any more.
const NOTICES: Duration = Duration::from_millis(100);

/// How a run ended.
pub(crate) struct Attended {
    end: RunFinished,
    /// What it answered, without tokens.
    pub(crate) output: String,
    /// Whether the answer was a wish for silence.
    pub(crate) silent: bool,
}

/// The end of a run as a part of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End<'a> {
    output: &'a str,
    silent: bool,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    runtime_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'a Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailedError<'a>>,
}

/// Sees a run through, and shows its reply. The first signal ends the run as killed. Where this process has to leave
/// something to others when the run has ended, it sees to it that there are some.
///
/// # Errors
/// What the store says, and what writing says; how the run ended is none.
pub(crate) fn attend(
    office: &Office,
    (run_id, session): (&str, &str),
    out: &mut Output,
) -> Result<Attended, Failure> {
    signal::instead(|| ());
    let (stop, stopped) = watch::channel(false);
    let screen = Screen::without(out, &office.setup().rules.silent);
    let (attended, shown) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| office.work(Until::Ended(run_id.to_owned()), stopped));
        let attended = look_on(office, (run_id, session), screen, &|| !worker.is_finished());
        if attended.is_err() {
            stop.send_replace(true);
        }
        // What the store says of the work comes before that the work did not come to its end.
        worker.join().unwrap_or_else(|_| Err(broken()))?;
        attended
    })?;
    office.leave(run_id)?;
    shown?;
    Ok(attended)
}

/// The end of a run, and whether its reply could be shown.
type Seen = (Attended, Result<(), Failure>);

fn look_on(
    office: &Office,
    (run_id, session): (&str, &str),
    mut screen: Screen<'_>,
    works: &dyn Fn() -> bool,
) -> Result<Seen, Failure> {
    let end = follow(office, run_id, &mut screen, works)?.ok_or_else(broken)?;
    let said = announce::text_at(office.engine().store(), session, end.reply_seq)?;
    let silence = Silence::of(&said, &office.setup().rules.silent, Lane::Foreground);
    let (output, silent) = (silence.outbound().to_owned(), silence.token().is_some());
    let shown = screen.close(&output);
    Ok((Attended { end, output, silent }, shown))
}

fn broken() -> Failure {
    Failure::new(Exit::Failed, "unavailable", "the work broke off before the run had ended")
        .hint("`annals runs list --open` says where it stands; `annals worker` goes on with it")
}

/// Shows what a run says until it has ended; `None` when nobody works any more and it has not.
fn follow(
    office: &Office,
    run_id: &str,
    screen: &mut Screen<'_>,
    works: &dyn Fn() -> bool,
) -> Result<Option<RunFinished>, Failure> {
    let store = office.engine().store();
    let stream = run_stream(run_id)?;
    // Where to follow from is taken before looking, so that nothing comes between the two.
    let after = store.end(View::Durable)?;
    let mut seen = Seq::ZERO;
    for item in store.read_stream(&stream, Version::ZERO)? {
        let Item::Record(record) = item? else { continue };
        seen = record.seq;
        if let Some(end) = hear(store, &record, screen)? {
            return Ok(Some(end));
        }
    }
    let streams = vec![NamePattern::Exact(stream.to_string())];
    let filter = Filter { streams, ..Filter::default() };
    let mut follower = store.follow(Read::after(after).filter(filter))?;
    let mut asked = false;
    loop {
        if signal::came().is_some() && !asked {
            asked = true;
            end_run(&office.desk_here(), run_id, ("operator", "interrupted"))?;
        }
        // Before the look: what the work has left is there by then.
        let worked = works();
        match follower.next(Some(NOTICES))? {
            Followed::Item(Item::Record(record)) if record.seq > seen => {
                if let Some(end) = hear(store, &record, screen)? {
                    return Ok(Some(end));
                }
            }
            Followed::Quiet if !worked => return Ok(None),
            _ => {}
        }
    }
}

/// Takes an event of a run; its end is given back.
fn hear(
    store: &dyn EventStore,
    record: &Record,
    screen: &mut Screen<'_>,
) -> Result<Option<RunFinished>, Failure> {
    match Event::parse(&record.kind, &store.payload(record)?) {
        Ok(Event::RunOutput(said)) => screen.hear(said.stream, &said.text)?,
        Ok(Event::RunFinished(end)) => return Ok(Some(end)),
        _ => {}
    }
    Ok(None)
}

impl Attended {
    /// The exit code that says how it ended.
    pub(crate) fn exit(&self) -> Exit {
        match (self.end.status, signal::came()) {
            (RunStatus::Ok, _) => Exit::Ok,
            (RunStatus::Timeout, _) => Exit::Timeout,
            (RunStatus::Killed, Some(signal)) => Exit::Signal(signal),
            _ => Exit::Failed,
        }
    }

    fn code(&self) -> &str {
        self.end.reason.as_deref().unwrap_or(self.end.status.as_str())
    }

    /// The same where nothing is told as an object: a run that did not end well is a failure.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn verdict(&self, run_id: &str) -> Result<Exit, Failure> {
        if self.end.status == RunStatus::Ok {
            return Ok(Exit::Ok);
        }
        let detail = self.end.detail.as_deref().map(many_lines);
        let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
        let (status, code) = (self.end.status, self.code().to_owned());
        let message = format!("the run {run_id} ended with {status} ({code}){detail}");
        Err(Failure::new(self.exit(), code, message))
    }

    /// As a part of an object.
    pub(crate) fn told(&self) -> End<'_> {
        let RunFinished { status, exit, signal, runtime_ms, tokens, cost_micros, .. } = &self.end;
        let failed = *status != RunStatus::Ok;
        let message = self.end.detail.as_deref().unwrap_or(self.code());
        End {
            output: &self.output,
            silent: self.silent,
            status: *status,
            reason: self.end.reason.as_deref(),
            exit: *exit,
            signal: *signal,
            runtime_ms: *runtime_ms,
            tokens: tokens.as_ref(),
            cost_micros: *cost_micros,
            error: failed.then(|| FailedError { code: self.code(), message, hint: None }),
        }
    }
}
