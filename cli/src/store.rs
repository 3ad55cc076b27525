//! Which store, and how it is opened. A verb that reads creates nothing and changes no byte.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals_engine::clock::Timestamp;
use annals_engine::config::{Config, Origin};
use annals_engine::engine::{self, Accepted, Engine, Notice, Options, Report};
use annals_engine::format::STORE_FILE;
use annals_engine::id::StreamName;
use annals_engine::import::{DiskTree, Node, SourceTree};
use annals_engine::projection::Folded;
use annals_engine::session::index::{Lens, Sessions, TimeRules};
use annals_engine::session::reset::{Rule, SessionType, Standing};
use annals_engine::{Error, ErrorKind};
use annals_tools::{Caller, Desk, View};
use etcetera::BaseStrategy;

use crate::args::Global;
use crate::exit::Failure;
use crate::output::progress::Progress;
use crate::output::text::{count, many_lines};
use crate::output::{Output, say};
use crate::settings;

/// The variable that names the store.
const OURS: &str = "ANNALS_HOME";

/// The store's folder: the flag, then the environment, then the configuration, then the XDG data folder.
///
/// # Errors
/// Usage, when there is no home folder, when the folder is another program's, and for settings that cannot be.
pub(crate) fn folder(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(folder) = &global.store {
        return Ok(folder.clone());
    }
    let config = settings::get()?;
    if let Some(held) = config.get("store") {
        let folder = PathBuf::from(held.value.as_str().unwrap_or_default());
        return match &held.origin {
            Origin::File => Ok(config.folder().map_or(folder.clone(), |base| base.join(folder))),
            Origin::Environment(name) if name != OURS => {
                refuse_foreign(name, &folder)?;
                Ok(folder)
            }
            _ => Ok(folder),
        };
    }
    let xdg = etcetera::choose_base_strategy().map_err(|_| {
        Failure::usage("there is no home folder to keep the store in")
            .hint(format!("name the store with --store DIR or {OURS}"))
    })?;
    Ok(xdg.data_dir().join("annals"))
}

/// A store that ends with the process: to take a view of many sessions apart one by one would only cost time.
pub(crate) type Opened = ManuallyDrop<Engine>;

/// Opens the store for reading.
///
/// # Errors
/// Not found when there is none; whatever opening meets.
pub(crate) fn open_read_only(global: &Global) -> Result<Opened, Failure> {
    let folder = folder(global)?;
    let opened = Engine::open_read_only(&folder, options());
    opened.map(Opened::new).map_err(|error| explain(error, &folder))
}

/// Opens the store for reading when there is one.
///
/// # Errors
/// Whatever opening meets, but not that there is none.
pub(crate) fn open_read_only_if_there(global: &Global) -> Result<Option<Opened>, Failure> {
    match Engine::open_read_only(folder(global)?, options()) {
        Ok(engine) => Ok(Some(Opened::new(engine))),
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the store for appending, and makes it when there is none.
///
/// # Errors
/// Whatever opening meets.
pub(crate) fn open(global: &Global) -> Result<Opened, Failure> {
    let engine = Engine::open(&folder(global)?, options())?;
    engine.govern(settings::get()?.policy_file());
    Ok(Opened::new(engine))
}

/// Opens a store that is there for appending, and makes none.
///
/// # Errors
/// Not found when there is none; whatever opening meets.
pub(crate) fn open_there(global: &Global) -> Result<Opened, Failure> {
    drop(ManuallyDrop::into_inner(open_read_only(global)?));
    open(global)
}

/// Opens a store that is there: for appending, where it takes appends.
///
/// # Errors
/// Not found when there is none; whatever opening meets.
pub(crate) fn open_if_it_may(global: &Global) -> Result<Opened, Failure> {
    let read_only = open_read_only(global)?;
    open(global).or(Ok(read_only))
}

/// An error of opening as a failure: one that says how to get a store when there is none.
pub(crate) fn explain(error: Error, folder: &Path) -> Failure {
    if *error.kind() != ErrorKind::NotFound {
        return error.into();
    }
    Failure::not_found(format!("there is no store in {}", folder.display())).hint(
        "`annals quickstart` makes one, `annals import PATH` fills it; --store DIR names another",
    )
}

fn options() -> Options {
    Options {
        program: concat!("annals ", env!("CARGO_PKG_VERSION")).to_owned(),
        notices: Some(Arc::new(|notice| say(&sentence(notice)))),
        ..Options::default()
    }
}

/// What the engine wants a person to know.
fn sentence(notice: &Notice) -> String {
    match notice {
        Notice::TornTail { bytes, kept, .. } => {
            let (were, are) = if *bytes == 1 { ("was", "it is") } else { ("were", "they are") };
            let left = count(*bytes, "byte");
            format!(
                "note: the last writer left {left} that {were} never acknowledged (torn); {are} kept in {kept}"
            )
        }
        Notice::LockWait(wait) => {
            let holder = wait.holder.as_deref().unwrap_or("somebody");
            let seconds = wait.waited.as_secs();
            format!("note: waiting for {} since {seconds} s; {holder} holds it", wait.name)
        }
        Notice::Polling(why) => format!("note: looking for new events from time to time: {why}"),
        other => format!("note: {other:?}"),
    }
}

/// A folder of JSON files that is no store belongs to the program that the variable was made for: its sessions are to
/// be imported, not mixed with ours.
fn refuse_foreign(name: &str, folder: &Path) -> Result<(), Failure> {
    let Ok(files) = DiskTree.list(folder) else { return Ok(()) };
    let is_json = |file: &Node| file.path.extension().is_some_and(|ext| ext == "json");
    if files.iter().any(|file| file.name() == STORE_FILE) || !files.iter().any(is_json) {
        return Ok(());
    }
    let shown = folder.display();
    Err(Failure::usage(format!("{name} names {shown}, which holds another program's sessions"))
        .hint(format!("annals import '{shown}' --store DIR; then set {OURS} to that DIR")))
}

/// Verifies a store, with a bar on a terminal.
///
/// # Errors
/// Not found when there is none; damage is no error but in the report.
pub(crate) fn verify(folder: &Path) -> Result<Report, Failure> {
    let bar = Progress::bytes("verifying");
    engine::verify(folder, &mut |at| bar.at(at.done, at.total)).map_err(|e| explain(e, folder))
}

/// Accepts the damage of a store.
///
/// # Errors
/// Not found when there is none; whatever opening and appending say.
pub(crate) fn repair(folder: &Path, reason: &str) -> Result<Accepted, Failure> {
    let bar = Progress::bytes("verifying");
    let progress = &mut |at: engine::Progress| bar.at(at.done, at.total);
    engine::repair(folder, options(), reason, progress).map_err(|e| explain(e, folder))
}

/// Records what time and the limits have archived, behind an answer that stands whatever becomes of this: a failure is a
/// note, and the next that appends tries again.
///
/// # Errors
/// Those of writing the answer.
pub(crate) fn keep_up(engine: &Engine, out: &mut Output) -> Result<(), Failure> {
    out.flush()?;
    let config = settings::get()?;
    let kept = engine.keep_up(&config.time_rules(), config.limits());
    if let Err(Failure::Told(told)) = kept.map_err(Failure::from) {
        let why = many_lines(&told.message);
        say(&format!("note: what time and the limits archive is not recorded yet: {why}"));
    }
    Ok(())
}

/// The operator, for whom `main` is the bucket of the agent that sessions belong to when nobody says otherwise.
///
/// # Errors
/// Usage, for settings that cannot be.
pub(crate) fn operator() -> Result<Caller, Failure> {
    Ok(Caller::operator_of(settings::get()?)?)
}

/// A store as of a moment, under the rules in force.
pub(crate) struct Looked {
    engine: Opened,
    sessions: Arc<Folded<Sessions>>,
    rules: TimeRules,
    config: &'static Config,
    now: Timestamp,
}

impl Looked {
    /// Looks at a store.
    ///
    /// # Errors
    /// Whatever reading meets; usage, for settings that cannot be.
    pub(crate) fn at(engine: Opened, now: Timestamp) -> Result<Self, Failure> {
        let sessions = engine.sessions()?;
        Self::over(engine, sessions, now)
    }

    /// Looks at these sessions of a store.
    ///
    /// # Errors
    /// Usage, for settings that cannot be.
    pub(crate) fn over(
        engine: Opened,
        sessions: Arc<Folded<Sessions>>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let config = settings::get()?;
        Ok(Self { engine, sessions, rules: config.time_rules(), config, now })
    }

    /// The store.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What tools look at.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            store: self.engine.store(),
            sessions: &self.sessions,
            lens: Lens { rules: &self.rules, now: self.now },
            config: self.config,
            desk: None,
        }
    }

    /// What tools look at that make agents work.
    pub(crate) fn view_with<'a>(&'a self, desk: &'a Desk<'a>) -> View<'a> {
        View { desk: Some(desk), ..self.view() }
    }

    /// The same store with all its sessions.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn whole(self) -> Result<Self, Failure> {
        let sessions = self.engine.sessions()?;
        Ok(Self { sessions, ..self })
    }

    /// How a session's current part stands.
    pub(crate) fn standing(&self, key: &StreamName) -> Standing<'_> {
        self.sessions.state().standing(key, &self.view().lens)
    }

    /// The reset rule of a direct chat on a channel for which nothing else is said.
    pub(crate) fn channel_rule(&self) -> Rule {
        self.rules.resets.of(SessionType::Direct, None, true)
    }
}
