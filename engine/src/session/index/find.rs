//! From what somebody typed to the session that is meant: a key, the id of a part, or the beginning of either.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::id::StreamName;
use crate::session::key::{AgentId, SessionKey};

use super::Sessions;

/// Which ways of naming a session are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// A whole key or a whole id.
    #[default]
    Whole,
    /// Also the beginning of one, of at least [`Names::PREFIX_MIN`] characters, that fits nothing else.
    Prefix,
}

impl Names {
    /// The shortest beginning that is looked up, in characters.
    pub const PREFIX_MIN: usize = 4;
}

/// The session that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub key: StreamName,
    /// The part, when it was named by its id; else its current one is meant.
    pub part: Option<String>,
}

/// How many of several matches an error names.
const NAMED_MAX: usize = 10;

/// Names of sessions in order.
#[derive(Debug)]
pub(super) struct Directory {
    keys: Vec<StreamName>,
    /// The id of every part with its key.
    ids: Vec<(String, StreamName)>,
}

impl Directory {
    fn of(sessions: &Sessions) -> Self {
        let mut keys: Vec<_> = sessions.entries.keys().cloned().collect();
        keys.sort_unstable();
        let parts = |key: &StreamName| sessions.parts(key).into_iter().map(str::to_owned);
        let mut ids: Vec<_> =
            keys.iter().flat_map(|key| parts(key).map(|id| (id, key.clone()))).collect();
        ids.sort_unstable();
        Self { keys, ids }
    }

    /// The keys that begin so.
    fn keys_from<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a StreamName> {
        let from = self.keys.partition_point(|key| key.as_str() < prefix);
        self.keys.iter().skip(from).take_while(move |key| key.as_str().starts_with(prefix))
    }

    /// The ids of parts that begin so, each with every key that has it.
    fn ids_from<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a StreamName)> {
        let from = self.ids.partition_point(|(id, _)| id.as_str() < prefix);
        let behind = self.ids.iter().skip(from);
        behind.take_while(move |(id, _)| id.starts_with(prefix)).map(|(id, key)| (id.as_str(), key))
    }
}

impl Sessions {
    fn directory(&self) -> &Directory {
        self.directory.get_or_init(|| Arc::new(Directory::of(self)))
    }

    /// Finds a session. `current` is the agent that `main` stands for.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` when all that is known of it is that it was lost; `Ambiguous` when several fit, with a
    /// message that names them.
    pub fn find(&self, name: &str, current: &AgentId, names: Names) -> Result<Found> {
        self.find_among(name, current, names, &|_| true)
    }

    /// Finds a session among those that somebody sees. What he does not see is not there: the answer is the same.
    ///
    /// # Errors
    /// As [`Sessions::find`].
    pub fn find_among(
        &self,
        name: &str,
        current: &AgentId,
        names: Names,
        sees: &dyn Fn(&StreamName) -> bool,
    ) -> Result<Found> {
        let key = SessionKey::parse(name, current).ok();
        let stream = key.map(|key| key.stream().clone()).or_else(|| StreamName::new(name).ok());
        if let Some(key) =
            stream.as_ref().filter(|key| self.entries.contains_key(*key) && sees(key))
        {
            return Ok(Found { key: key.clone(), part: None });
        }
        let exact = self.directory().ids_from(name).take_while(|(id, _)| *id == name);
        let matches: Vec<Found> =
            exact.filter(|(_, key)| sees(key)).map(|(id, key)| Found::part(key, id)).collect();
        if !matches.is_empty() {
            return one(name, matches);
        }
        if let Some(lost) = stream.filter(|key| self.is_damaged(key.as_str()) && sees(key)) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("every event of the session {lost} lies in a damaged range"),
            )
            .hint("annals verify tells which bytes"));
        }
        if names == Names::Prefix && name.chars().count() >= Names::PREFIX_MIN {
            let seen = self.beginning(name).into_iter().filter(|found| sees(&found.key));
            return one(name, seen.collect());
        }
        one(name, Vec::new())
    }

    /// One of a session's parts: the one with this id, else the only one whose id begins so.
    ///
    /// # Errors
    /// `NotFound` when none does; `Ambiguous`, with the ids, when several do. A beginning has at least
    /// [`Names::PREFIX_MIN`] characters.
    pub fn find_part(&self, key: &StreamName, name: &str, names: Names) -> Result<Found> {
        let parts = self.parts(key);
        if parts.contains(&name) {
            return Ok(Found::part(key, name));
        }
        let taken = names == Names::Prefix && name.chars().count() >= Names::PREFIX_MIN;
        let fits = parts.iter().filter(|id| taken && id.starts_with(name));
        let matches: Vec<Found> = fits.map(|id| Found::part(key, id)).collect();
        if matches.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, format!("{key} has no part {name:?}"))
                .hint(format!("its parts are {}", parts.join(", "))));
        }
        one(name, matches)
    }

    /// Everything that begins so; a part of a session that fits by its key is not named again.
    fn beginning(&self, name: &str) -> Vec<Found> {
        let directory = self.directory();
        let keys: Vec<&StreamName> = directory.keys_from(name).collect();
        let parts = directory.ids_from(name).filter(|(_, key)| !keys.contains(key));
        let parts = parts.map(|(id, key)| Found::part(key, id));
        let whole = keys.iter().map(|key| Found { key: (*key).clone(), part: None });
        whole.chain(parts).collect()
    }
}

impl Found {
    fn part(key: &StreamName, id: &str) -> Self {
        Self { key: key.clone(), part: Some(id.to_owned()) }
    }
}

fn one(name: &str, mut matches: Vec<Found>) -> Result<Found> {
    match matches.len() {
        0 => Err(Error::new(ErrorKind::NotFound, format!("there is no session {name:?}"))
            .field("sessionKey")
            .hint("a session is named by its key, the id of one of its parts, or the beginning of either")),
        1 => Ok(matches.remove(0)),
        count => {
            let mut named: Vec<String> = matches
                .iter()
                .take(NAMED_MAX)
                .map(|found| match &found.part {
                    Some(part) => format!("{part} ({})", found.key),
                    None => found.key.to_string(),
                })
                .collect();
            if count > NAMED_MAX {
                named.push(format!("and {} more", count - NAMED_MAX));
            }
            Err(Error::new(
                ErrorKind::Ambiguous,
                format!("{name:?} is ambiguous: it fits {}", named.join(", ")),
            )
            .field("sessionKey")
            .hint("give more of the name"))
        }
    }
}
