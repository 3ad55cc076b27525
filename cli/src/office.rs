//! Where work is asked for and done: the settings that runs go by, whoever sees to it that a worker is there, and a
//! runtime for the verbs that make runs themselves.

use std::sync::Arc;
use std::time::Duration;

use annals_engine::Result as Stored;
use annals_engine::engine::Engine;
use annals_engine::session::event::{Origin, SessionOpened};
use annals_engine::session::key::SessionKey;
use annals_engine::session::work::Waybill;
use annals_tools::desk::{OperatorSession, Presence, Staff};
use annals_tools::fault::with_causes;
use annals_tools::run::{OnCall, Setup, Sinks, Until, Worker};
use annals_tools::{Desk, Host};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::args::Global;
use crate::exit::Failure;
use crate::output::say;
use crate::output::text::one_line;
use crate::settings;
use crate::store;

/// Where work is asked for and done.
pub(crate) struct Office {
    engine: Engine,
    setup: Arc<Setup>,
    staff: Arc<OnCall>,
    operator: OperatorSession,
    child_timeout: Duration,
    before_task: Option<String>,
}

/// Whether a verb that asks for work may start a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    /// Where nobody is home.
    OnCall,
    /// Never.
    Never,
}

impl Office {
    /// The office of an open store.
    ///
    /// # Errors
    /// Usage, for settings that cannot be.
    pub(crate) fn of(engine: &Engine, global: &Global, workers: Workers) -> Result<Self, Failure> {
        let config = settings::get()?;
        let folder = store::folder(global)?;
        // What cannot be sent through is told before anything is asked for.
        Sinks::of(config)?;
        let program = Some(this_program()?);
        let setup = Arc::new(Setup { program, ..Setup::of(config, folder)? });
        let command = match workers {
            Workers::OnCall => Some(worker_command(global)?),
            Workers::Never => None,
        };
        let staff = Arc::new(OnCall::new(engine.clone(), command));
        let operator = operator()?;
        let (child_timeout, before_task) = (Duration::ZERO, None);
        Ok(Self { engine: engine.clone(), setup, staff, operator, child_timeout, before_task })
    }

    /// The same, where the operator asks in the name of another session, and what was said there goes before a task.
    pub(crate) fn for_session(mut self, session: OperatorSession, before: Option<String>) -> Self {
        self.operator = session;
        self.before_task = before;
        self
    }

    /// The same, with the time limit of children for which none is set.
    pub(crate) fn with_child_timeout(mut self, timeout: Duration) -> Self {
        self.child_timeout = timeout;
        self
    }

    /// The same, where agents reach the Model Context Protocol at this address.
    pub(crate) fn reached_at(mut self, mcp_url: String) -> Self {
        Arc::make_mut(&mut self.setup).mcp_url = Some(mcp_url);
        self
    }

    /// What tools work with.
    pub(crate) fn desk(&self) -> Desk<'_> {
        self.desk_with(&*self.staff)
    }

    /// The same where this process does the work itself.
    pub(crate) fn desk_here(&self) -> Desk<'_> {
        self.desk_with(&AtHome)
    }

    fn desk_with<'a>(&'a self, staff: &'a dyn Staff) -> Desk<'a> {
        Desk {
            engine: &self.engine,
            setup: &self.setup,
            staff,
            operator: &self.operator,
            child_timeout: self.child_timeout,
            before_task: self.before_task.as_deref(),
            gone: None,
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Leaves what this process did not do to a worker: what is still to go out, and runs that were asked for meanwhile by
    /// somebody who took this process for one.
    ///
    /// # Errors
    /// What the store says, and what starting a worker says.
    pub(crate) fn leave(&self, run_id: &str) -> Result<(), Failure> {
        let work = self.engine.work()?;
        let work = work.state();
        let goes_out = |waybill: &Waybill| waybill.run_id() == Some(run_id);
        let left = work.runs().iter().any(|run| !run.is_claimed())
            || work.outgoing().iter().any(|(waybill, _)| goes_out(waybill));
        if left {
            note(&self.staff.called(run_id)?);
        }
        Ok(())
    }

    /// What serves tools call after call.
    pub(crate) fn host(&self) -> Host {
        self.host_with(Arc::<OnCall>::clone(&self.staff))
    }

    /// The same where this process does the work itself.
    pub(crate) fn host_here(&self) -> Host {
        self.host_with(Arc::new(AtHome))
    }

    fn host_with(&self, staff: Arc<dyn Staff + Send>) -> Host {
        let (engine, setup) = (self.engine.clone(), Arc::clone(&self.setup));
        Host::new(engine, setup, staff, self.operator.clone(), self.child_timeout)
    }

    /// Sees to it that a run is made that was asked for.
    ///
    /// # Errors
    /// What starting a worker says.
    pub(crate) fn call(&self, run_id: &str) -> annals_engine::Result<()> {
        self.staff.called(run_id).map(drop)
    }

    /// Works in this process.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) fn work(&self, until: Until, stop: watch::Receiver<bool>) -> Result<(), Failure> {
        let bench = self.bench()?;
        let worked = bench.runtime.block_on(bench.worker.work(until, stop));
        bench.leave();
        Ok(worked?)
    }

    /// A worker in this process that has not begun.
    ///
    /// # Errors
    /// Usage, for settings that cannot be; what the system says.
    pub(crate) fn bench(&self) -> Result<Bench, Failure> {
        let carrier = Arc::new(Sinks::of(settings::get()?)?);
        let worker = Worker::new(self.engine.clone(), Arc::clone(&self.setup), carrier)?;
        let worker = worker.telling(|error| {
            say(&format!("note: the store is waited for: {}", one_line(&with_causes(error))));
        });
        Ok(Bench { worker, runtime: runtime()? })
    }
}

/// A worker, and the threads that it works on.
pub(crate) struct Bench {
    worker: Worker,
    runtime: Runtime,
}

impl Bench {
    /// Works until it is stopped, whatever the store says meanwhile.
    pub(crate) fn stay(self, stop: watch::Receiver<bool>) {
        self.runtime.block_on(self.worker.stay(stop, |error| {
            say(&format!("note: the worker broke off: {}", one_line(&with_causes(error))));
        }));
        self.leave();
    }

    /// Late output of agents is not waited for.
    fn leave(self) {
        self.runtime.shutdown_timeout(Duration::from_millis(200));
    }
}

/// Whoever asks here does the work.
struct AtHome;

impl Staff for AtHome {
    fn called(&self, _: &str) -> Stored<Presence> {
        Ok(Presence::Home)
    }
}

/// Says that nobody works, if nobody does.
fn note(presence: &Presence) {
    if let Presence::Nobody(how) = presence {
        say(&format!("note: no worker: {how}"));
    }
}

/// A runtime for what serves or works.
///
/// # Errors
/// What the system says.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(2).enable_all().build();
    Ok(built.map_err(|e| annals_engine::Error::io("cannot start threads", e))?)
}

/// The session in whose name the operator asks: the chat of the command line.
///
/// # Errors
/// Usage, for a chat that cannot be.
fn operator() -> Result<OperatorSession, Failure> {
    let (channel, chat) = own_chat()?;
    operator_of(&channel, &chat)
}

/// The chat of the command line: channel and chat.
///
/// # Errors
/// Usage, for settings that cannot be.
pub(crate) fn own_chat() -> Result<(String, String), Failure> {
    let config = settings::get()?;
    let channel = config.text("session.channel").unwrap_or("cli");
    let chat = config.text("session.chatId").unwrap_or("default");
    Ok((channel.to_owned(), chat.to_owned()))
}

/// The session of a chat as one in whose name the operator asks.
///
/// # Errors
/// Usage, for a chat that cannot be.
pub(crate) fn operator_of(channel: &str, chat: &str) -> Result<OperatorSession, Failure> {
    let key = SessionKey::of_chat(channel, chat)?;
    let agent = store::operator()?.agent;
    let part = annals_engine::id::EventId::new(annals_engine::clock::Clock::now(
        &annals_engine::clock::SystemClock,
    ));
    let origin = Origin {
        channel: Some(channel.to_owned()),
        to: Some(chat.to_owned()),
        ..Origin::default()
    };
    let opening = SessionOpened {
        channel: Some(channel.to_owned()),
        chat_id: Some(chat.to_owned()),
        origin: Some(origin),
        ..SessionOpened::new(part.to_string(), key.kind_at_opening(), agent.as_str())
    };
    Ok(OperatorSession { key: key.stream().clone(), opening })
}

/// How a worker of this store is started that goes when nothing is left to do.
fn worker_command(global: &Global) -> Result<(std::path::PathBuf, Vec<String>), Failure> {
    let program = this_program()?;
    let folder = std::path::absolute(store::folder(global)?)
        .map_err(|e| annals_engine::Error::io("cannot tell where the store is", e))?;
    let mut arguments = vec!["worker".to_owned(), "--until-idle".to_owned()];
    arguments.extend(["--store".to_owned(), folder.display().to_string()]);
    if let (Some(file), true) = settings::place() {
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    Ok((program, arguments))
}

/// The file that this program is in.
fn this_program() -> Stored<std::path::PathBuf> {
    std::env::current_exe()
        .map_err(|e| annals_engine::Error::io("cannot tell which program this is", e))
}
