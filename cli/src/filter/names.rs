//! Sessions as they are named in a filter: a pattern, a key, the id of a part, or the beginning of either.

use annals_engine::Engine;
use annals_engine::id::{StreamName, Version};
use annals_engine::session::key::SessionKey;
use annals_engine::store::NamePattern;

use super::pattern;
use crate::exit::Failure;
use crate::glob::{self, Glob};
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
        let glob = pattern("--session", text)?;
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
        *text = sessions.state().find(text, &caller.agent, caller.names)?.key.to_string();
    }
    Ok(())
}

/// A key in its canonical form; any other text as it is.
pub(super) fn canonical(text: &str) -> Result<String, Failure> {
    let key = SessionKey::parse(text, &operator()?.agent);
    Ok(key.map_or_else(|_| text.to_owned(), |key| key.as_str().to_owned()))
}
