//! Waits for the end of a process, and brings it about where a limit or a wish says so.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use annals_engine::session::event::RunStatus;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::Stop;
use super::group::Group;
use super::listen::Sign;
use crate::run::spec::Timeouts;

/// So often it is looked whether a group is gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So long the system may take to end a process that it was ordered to end.
const ORDER_TAKES_MAX: Duration = Duration::from_secs(10);

/// The limits of a run's time.
pub(super) struct Ending {
    /// When it has to be done.
    pub(super) deadline: Option<Instant>,
    /// The agent's limits.
    pub(super) timeouts: Timeouts,
}

/// How a process ended: facts.
#[derive(Debug)]
pub(super) struct Ended {
    cause: Cause,
    gone: Gone,
}

#[derive(Debug)]
enum Cause {
    Itself,
    Stop(Stop),
    Deadline,
    Silence,
    TooMuch,
}

#[derive(Debug)]
enum Gone {
    NotStarted,
    With(ExitStatus),
    Unseen,
}

impl Ending {
    /// Waits until the process has ended, by itself or because it had to. Of one that ended by itself the rest of the group
    /// lives on.
    pub(super) async fn wait(
        &self,
        child: &mut Child,
        group: &mut Group,
        stop: &mut watch::Receiver<Option<Stop>>,
        signs: &mut watch::Receiver<Sign>,
    ) -> Ended {
        let cause = tokio::select! {
            biased;
            status = child.wait() => {
                group.let_go();
                return Ended { cause: Cause::Itself, gone: status.map_or(Gone::Unseen, Gone::With) };
            }
            stop = wish(stop) => Cause::Stop(stop),
            () = until(self.deadline) => Cause::Deadline,
            cause = self.limit_of_output(signs) => cause,
        };
        let gone = self.end(child, group).await;
        group.let_go();
        Ended { cause, gone }
    }

    /// Asks the whole group to end, and ends what is left of it after the grace.
    async fn end(&self, child: &mut Child, group: &Group) -> Gone {
        group.ask();
        let over = Instant::now() + self.timeouts.kill_grace;
        let status = timeout_at(over, child.wait()).await;
        while status.is_ok() && Instant::now() < over && group.runs() {
            sleep(LOOK_EVERY).await;
        }
        group.end();
        let status = match status {
            Ok(status) => Ok(status),
            Err(_) => timeout(ORDER_TAKES_MAX, child.wait()).await,
        };
        status.ok().and_then(Result::ok).map_or(Gone::Unseen, Gone::With)
    }

    /// Waits until there is too much output, or none for too long. What could not be taken from us is no silence of the
    /// agent.
    async fn limit_of_output(&self, signs: &mut watch::Receiver<Sign>) -> Cause {
        let mut comes = true;
        loop {
            let now = Instant::now();
            let since = match *signs.borrow_and_update() {
                Sign::TooMuch => return Cause::TooMuch,
                Sign::Heard(at) => at,
                Sign::Waits => now,
            };
            let over = self.timeouts.no_output.map(|limit| since + limit);
            if over.is_some_and(|over| over <= now) {
                return Cause::Silence;
            }
            tokio::select! {
                () = until(over) => {}
                changed = signs.changed(), if comes => comes = changed.is_ok(),
            }
        }
    }
}

/// Waits for a wish to stop; for ever when nobody can have one any more.
pub(super) async fn wish(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    let wished = stop.wait_for(Option::is_some).await.ok().and_then(|stop| *stop);
    match wished {
        Some(stop) => stop,
        None => std::future::pending().await,
    }
}

/// Waits for an instant; for ever without one.
async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl Ended {
    /// Of a run that was to end before it began.
    pub(super) const fn before(stop: Stop) -> Self {
        Self { cause: Cause::Stop(stop), gone: Gone::NotStarted }
    }

    /// Of a run that could not begin.
    pub(super) const fn never() -> Self {
        Self { cause: Cause::Itself, gone: Gone::NotStarted }
    }

    /// Whether nothing but the process itself ended it.
    pub(super) const fn by_itself(&self) -> bool {
        matches!(self.cause, Cause::Itself)
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Option<i32> {
        self.status().and_then(|status| status.code())
    }

    /// The signal that ended the process.
    pub(super) fn signal(&self) -> Option<i32> {
        self.status().and_then(|status| status.signal())
    }

    fn status(&self) -> Option<ExitStatus> {
        match self.gone {
            Gone::With(status) => Some(status),
            Gone::NotStarted | Gone::Unseen => None,
        }
    }

    /// Status, reason and sentences. `error` is what the agent says of itself.
    pub(super) fn verdict(
        &self,
        too_much: bool,
        error: Option<String>,
    ) -> (RunStatus, Option<&'static str>, Vec<String>) {
        let (status, reason, said) = match self.cause {
            Cause::TooMuch => output_limit(),
            Cause::Itself if too_much => output_limit(),
            Cause::Itself => self.of_its_own(error.is_some()),
            Cause::Stop(Stop::Kill) => (RunStatus::Killed, Some("kill"), None),
            Cause::Stop(Stop::Shutdown) => (RunStatus::Interrupted, Some("shutdown"), None),
            Cause::Deadline => {
                let said = "it was not done within its time limit";
                (RunStatus::Timeout, Some("deadline"), Some(said.to_owned()))
            }
            Cause::Silence => {
                let said = "nothing came from it for as long as timeouts.noOutput allows";
                (RunStatus::Timeout, Some("no_output"), Some(said.to_owned()))
            }
        };
        let stuck = matches!(self.gone, Gone::Unseen).then(|| {
            "the system did not say that the process ended: it may still be there".to_owned()
        });
        (status, reason, [said, error, stuck].into_iter().flatten().collect())
    }

    fn of_its_own(&self, failed: bool) -> (RunStatus, Option<&'static str>, Option<String>) {
        match (self.exit(), self.signal()) {
            (Some(0), _) if failed => (RunStatus::Error, Some("agent_error"), None),
            (Some(0), _) => (RunStatus::Ok, None, None),
            (Some(code), _) => (
                RunStatus::Error,
                Some("exit"),
                Some(format!("the command ended with exit code {code}")),
            ),
            (_, Some(signal)) => (
                RunStatus::Error,
                Some("signal"),
                Some(format!("the command was ended by signal {signal}")),
            ),
            (None, None) => (RunStatus::Error, Some("unknown_end"), None),
        }
    }
}

fn output_limit() -> (RunStatus, Option<&'static str>, Option<String>) {
    let said = "it printed more than limits.stdoutBytes allows";
    (RunStatus::Error, Some("output_limit"), Some(said.to_owned()))
}
