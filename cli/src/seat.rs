//! Who sits at the command line: the operator, or inside a run of an agent the session that the run works on. The run's
//! token says it, and no argument can say otherwise.

use annals_engine::ErrorKind;
use annals_engine::engine::Engine;
use annals_tools::caller::TokenHash;
use annals_tools::{Caller, Identity, View};

use crate::args::{Global, Verb};
use crate::commands::{agents, config, runs};
use crate::exit::{Exit, Failure};
use crate::settings;
use crate::store::{self, Opened};

/// The variable that a run's token comes in.
const VARIABLE: &str = "ANNALS_TOKEN";

const HINT: &str = "`unset ANNALS_TOKEN` to act as the operator";

/// The token of the run that this is inside of.
fn token() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|token| !token.is_empty())
}

/// Whether the operator sits here.
pub(crate) fn is_operators() -> bool {
    token().is_none()
}

/// Refuses a verb inside a run before which the guard of the tools does not stand.
///
/// # Errors
/// Denied.
pub(crate) fn admit(verb: &Verb) -> Result<(), Failure> {
    let guarded = match verb {
        Verb::Sessions(_) | Verb::Tools(_) | Verb::Subagent(_) | Verb::Mcp(_) => true,
        Verb::Completions(_) => true,
        Verb::Runs(verb) => !matches!(verb, runs::Verb::Show(_)),
        Verb::Agents(verb) => matches!(verb, agents::Verb::List(_)),
        Verb::Config(verb) => config::only_shows(verb),
        _ => false,
    };
    if guarded || token().is_none() {
        return Ok(());
    }
    let message = "this verb is the operator's, and this is inside a run: ANNALS_TOKEN says so";
    Err(Failure::new(Exit::Denied, "inside_a_run", message).hint(HINT))
}

/// Refuses what only the operator may say.
///
/// # Errors
/// Denied, inside a run.
pub(crate) fn operators(what: &str) -> Result<(), Failure> {
    if token().is_none() {
        return Ok(());
    }
    let message = format!("{what} is the operator's to say: inside a run its session asks");
    Err(Failure::new(Exit::Denied, "inside_a_run", message).hint(HINT))
}

/// Opens the store for a verb that reads: a session that is refused something leaves that in its stream, where the store
/// takes appends.
///
/// # Errors
/// Not found when there is none; whatever opening meets.
pub(crate) fn open(global: &Global) -> Result<Opened, Failure> {
    match token() {
        None => store::open_read_only(global),
        Some(_) => store::open_if_it_may(global),
    }
}

/// Who calls: the operator, or the run.
///
/// # Errors
/// Denied, for a token whose run is not at work.
pub(crate) fn caller(engine: &Engine) -> Result<Caller, Failure> {
    let Some(token) = token() else { return store::operator() };
    Caller::of_token(engine, settings::get()?, &token).map_err(|error| {
        if *error.kind() != ErrorKind::Refused {
            return error.into();
        }
        let message = "ANNALS_TOKEN belongs to no run that is at work: the run has ended, or is another store's";
        Failure::new(Exit::Denied, "token_ended", message).hint(HINT)
    })
}

/// Who calls, where the operator may name a session that does.
///
/// # Errors
/// Denied, for a session named inside a run; not found for one that is not there.
pub(crate) fn caller_as(
    engine: &Engine,
    view: &View<'_>,
    session: Option<&str>,
) -> Result<Caller, Failure> {
    let Some(name) = session else { return caller(engine) };
    operators("--as")?;
    let sessions = view.sessions.state();
    let found = store::operator()?.find(sessions, name)?;
    Ok(Caller::in_session(sessions, settings::get()?, found.key)?)
}

/// Who calls, for what serves many calls: it is looked up with each of them what the caller may do then.
///
/// # Errors
/// As [`caller`] and [`caller_as`].
pub(crate) fn identity(engine: &Engine, session: Option<&str>) -> Result<Identity, Failure> {
    match (session, token()) {
        (None, None) => Ok(Identity::Operator),
        (None, Some(token)) => caller(engine).map(|_| Identity::Run(TokenHash::of(&token))),
        (Some(name), _) => {
            operators("--as")?;
            let sessions = engine.sessions()?;
            Ok(Identity::Session(store::operator()?.find(sessions.state(), name)?.key))
        }
    }
}
