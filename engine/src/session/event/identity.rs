//! Ids and streams that follow from what an event is about: the same thing gives the same id on any machine, and each
//! kind of event has its place. Every derived id of the domain is made here.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::id::{EventId, StreamName};

/// Which record of another program's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedRecord<'a> {
    /// The one with this id of its own.
    Id(&'a str),
    /// The one at this place in the file's order, counted from 0, with these bytes.
    Ordinal {
        /// Its place.
        ordinal: u64,
        /// SHA-256 of its bytes, in lower-case hexadecimal.
        sha256: &'a str,
    },
}

/// The id of an event that was made from a record of another program. `part` tells events of one record apart; it is
/// empty for the record's main event.
#[must_use]
pub fn import_id(
    program: &str,
    session_id: &str,
    record: ImportedRecord<'_>,
    part: &str,
) -> EventId {
    let key = match record {
        ImportedRecord::Id(id) => joined(&["id", id, part]),
        ImportedRecord::Ordinal { ordinal, sha256 } => {
            joined(&["ordinal", &ordinal.to_string(), sha256, part])
        }
    };
    EventId::derived("import", &joined(&[program, session_id]), &key)
}

/// The id of the main event of a call with an idempotency key. `caller` is the key of the session that calls, or the
/// name of the door.
///
/// # Errors
/// `InvalidInput` for an empty key: who gives one has lost it on the way, and would find another call's answer.
pub fn idempotency_id(verb: &str, caller: &str, key: &str) -> Result<EventId> {
    if key.is_empty() {
        return Err(Error::invalid("the idempotency key is empty")
            .field("idempotencyKey")
            .hint("give each call a key of its own, or none"));
    }
    Ok(EventId::derived("key", &joined(&[verb, caller]), key))
}

/// The id of a firing of a watch rule: other than that of the firing before, also when the content is as it once was.
#[must_use]
pub fn firing_id(rule: &str, path: &str, sha256: &str, previous: Option<EventId>) -> EventId {
    let previous = previous.map(|id| id.to_string()).unwrap_or_default();
    EventId::derived("watch", &joined(&[rule, path]), &joined(&[sha256, &previous]))
}

/// The stream of a run.
///
/// # Errors
/// `InvalidInput` when the id is too long for a stream's name.
pub fn run_stream(run_id: &str) -> Result<StreamName> {
    StreamName::new(format!("run:{run_id}"))
}

/// The stream of a watch rule.
///
/// # Errors
/// `InvalidInput` when the name is too long for a stream's name.
pub fn watch_stream(rule: &str) -> Result<StreamName> {
    StreamName::new(format!("watch:{rule}"))
}

/// The stream of policy changes.
pub const POLICY_STREAM: &str = "policy";

/// The stream of imports.
pub const IMPORT_STREAM: &str = "import";

/// Parts as one text that no other parts give: each with its length before it, as a netstring.
fn joined(parts: &[&str]) -> String {
    let bytes: usize = parts.iter().map(|part| part.len() + LENGTH_DIGITS).sum();
    parts.iter().fold(String::with_capacity(bytes), |mut joined, part| {
        // Text takes whatever is written to it.
        let _ = write!(joined, "{}:{part},", part.len());
        joined
    })
}

/// Room for what stands around a part: most lengths have a digit or two.
const LENGTH_DIGITS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ids are equal exactly when everything they are derived from is equal. Method: all pairs of a list of
    /// inputs that a careless concatenation would confuse.
    #[test]
    fn ids_differ_when_any_part_differs() {
        let id = ImportedRecord::Id;
        let ordinal = |ordinal, sha256| ImportedRecord::Ordinal { ordinal, sha256 };
        let first = firing_id("r", "p", "aa", None);
        let ids = [
            import_id("pi", "s", id("1"), ""),
            import_id("pi", "s1", id(""), ""),
            import_id("pis", "", id("1"), ""),
            import_id("pi", "s", id("1"), "1"),
            import_id("pi", "s", id("11"), ""),
            import_id("pi", "s", ordinal(1, ""), ""),
            import_id("pi", "s", ordinal(1, "1"), ""),
            import_id("pi", "s", ordinal(11, ""), ""),
            idempotency_id("send", "agent:main:main", "k").unwrap(),
            idempotency_id("spawn", "agent:main:main", "k").unwrap(),
            idempotency_id("send", "agent:main:mai", "nk").unwrap(),
            first,
            firing_id("r", "p", "bb", Some(first)),
            firing_id("r", "p", "aa", Some(first)),
            firing_id("rp", "", "aa", None),
        ];
        for (i, a) in ids.iter().enumerate() {
            for (j, b) in ids.iter().enumerate() {
                assert_eq!(a == b, i == j, "{i} and {j}");
            }
        }
        assert_eq!(first, firing_id("r", "p", "aa", None));
        assert!(idempotency_id("send", "agent:main:main", "").is_err());
    }

    /// Goal: derived ids never change between releases. Method: three values computed apart from this code, with
    /// SHA-256 over the length-prefixed parts.
    #[test]
    fn ids_are_these() {
        let got = [
            import_id("pi", "s", ImportedRecord::Id("1"), ""),
            idempotency_id("send", "agent:main:main", "k").unwrap(),
            firing_id("r", "p", "aa", None),
        ];
        assert_eq!(got.map(|id| id.to_string()), IDS);
    }

    const IDS: [&str; 3] = [
        "e06c883d-13ff-84ca-a195-2fe1ab11b802",
        "efe4f2cc-49e4-83ea-ae97-0891cc162a3a",
        "2685d1c8-318c-8598-be30-7c0cc02eaba0",
    ];
}
