//! Sessions as they are named in a filter: a pattern, a key, the id of a part, or the beginning of either.

use annals_engine::id::{StreamName, Version};
use annals_engine::session::key::SessionKey;
use annals_engine::store::NamePattern;
use annals_engine::{Engine, ErrorKind};

use super::pattern;
use crate::exit::Failure;
use crate::glob::{self, Glob};
use crate::output::say;
use crate::output::text::one_line;
use crate::store::operator;

/// A session, or several, as named.
pub(super) enum Name {
    /// Whatever fits.
    Pattern(Glob),
    /// One, which is looked for in the store.
    One(String),
}

impl Name {
    pub(super) fn check(text: &str) -> Result<Self, Failure> {
        Self::of("--session", text)
    }

    /// The same for another option.
    pub(super) fn of(option: &str, text: &str) -> Result<Self, Failure> {
        let glob = pattern(option, text)?;
        Ok(if glob::is_glob(text) { Self::Pattern(glob) } else { Self::One(text.to_owned()) })
    }

    /// What the store can look for.
    pub(super) fn narrowed(&self) -> NamePattern {
        match self {
            Self::Pattern(glob) => glob.narrowed().clone(),
            Self::One(key) => NamePattern::Exact(key.clone()),
        }
    }

    pub(super) fn is(&self, key: &str) -> bool {
        match self {
            Self::Pattern(glob) => glob.matches(key),
            Self::One(name) => name == key,
        }
    }
}

/// Puts the whole key in the place of every name that stands for one session.
pub(super) fn resolve(names: &mut [Name], engine: &Engine) -> Result<(), Failure> {
    let caller = operator()?;
    for name in names {
        let Name::One(text) = name else { continue };
        let key = canonical(text)?;
        if engine.head(&StreamName::new(key.as_str())?)? > Version::ZERO {
            *text = key;
            continue;
        }
        let sessions = engine.sessions()?;
        let found = sessions.state().find(text, &caller.agent, caller.names)?.key.to_string();
        told(text, &found);
        *text = found;
    }
    Ok(())
}

/// Puts the whole key in the place of the name of one end of messages. It need not be a session of this store: what fits
/// none stays as it is.
pub(super) fn resolve_end(name: &mut Option<Name>, engine: &Engine) -> Result<(), Failure> {
    let Some(Name::One(text)) = name else { return Ok(()) };
    let key = canonical(text)?;
    if engine.head(&StreamName::new(key.as_str())?)? > Version::ZERO {
        *text = key;
        return Ok(());
    }
    let caller = operator()?;
    match engine.sessions()?.state().find(text, &caller.agent, caller.names) {
        Ok(found) => {
            let found = found.key.to_string();
            told(text, &found);
            *text = found;
            Ok(())
        }
        Err(error) if *error.kind() == ErrorKind::NotFound => {
            *text = key;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Says which session was taken for a name that is not its key.
fn told(typed: &str, found: &str) {
    say(&format!("note: {} stands for {}", one_line(typed), one_line(found)));
}

/// A key in its canonical form; any other text as it is.
pub(super) fn canonical(text: &str) -> Result<String, Failure> {
    let key = SessionKey::parse(text, &operator()?.agent);
    Ok(key.map_or_else(|_| text.to_owned(), |key| key.as_str().to_owned()))
}
