//! `--type`: names, families, patterns, and the one word `error`. A name that no event can have is refused: an empty
//! answer would be a lie about the log.

use annals_engine::format::control;
use annals_engine::session::event::Event;
use annals_engine::store::NamePattern;

use crate::exit::Failure;
use crate::glob::{self, Glob};
use crate::shown::Shown;

/// All that went wrong: refusals, failures, damage.
const WENT_WRONG: &str = "error";
/// How the types of embedders begin.
const EMBEDDED: &str = "x.";
/// What the log says about itself.
const CONTROL: [&str; 6] = [
    control::OPENED,
    control::SEALED,
    control::RECOVERED,
    control::GAP,
    control::CLOCK,
    control::MARK,
];
/// Of these, what tells nothing to somebody who did not ask for it.
const HOUSEKEEPING: [&str; 3] = [control::OPENED, control::SEALED, control::MARK];

/// The types that are wanted.
pub(super) struct Types {
    /// Any of these; none means all.
    any: Vec<TypeWanted>,
    /// Whether all includes housekeeping.
    housekeeping: bool,
}

enum TypeWanted {
    Name(String),
    Family(String),
    Pattern(Glob),
    WentWrong,
}

impl Types {
    pub(super) fn check(words: &[String], housekeeping: bool) -> Result<Self, Failure> {
        let any = words.iter().map(|word| check_one(word)).collect::<Result<_, _>>()?;
        Ok(Self { any, housekeeping })
    }

    /// What the store can look for; an empty list is everything.
    pub(super) fn narrowed(&self) -> Vec<NamePattern> {
        let narrowed = |wanted: &TypeWanted| match wanted {
            TypeWanted::Name(name) => Some(exact(name)),
            TypeWanted::Family(family) => Some(NamePattern::Prefix(family.clone())),
            TypeWanted::Pattern(glob) => Some(glob.narrowed().clone()),
            TypeWanted::WentWrong => None,
        };
        let named: Option<Vec<_>> = self.any.iter().map(narrowed).collect();
        named.unwrap_or_default()
    }

    /// Whether an event of this type can be wanted.
    pub(super) fn may_keep(&self, name: &str) -> bool {
        if self.any.is_empty() {
            return self.housekeeping || !HOUSEKEEPING.contains(&name);
        }
        self.any.iter().any(|wanted| wanted.may_be(name))
    }

    /// Whether an event of a type that can be wanted is.
    pub(super) fn keep(&self, shown: &Shown) -> bool {
        let name = shown.record.kind.as_str();
        let of_type = |wanted: &TypeWanted| match wanted {
            TypeWanted::WentWrong => shown.went_wrong(),
            other => other.may_be(name),
        };
        self.any.is_empty() || self.any.iter().any(of_type)
    }
}

impl TypeWanted {
    fn may_be(&self, name: &str) -> bool {
        match self {
            Self::Name(wanted) => name == wanted,
            Self::Family(family) => name.starts_with(family.as_str()),
            Self::Pattern(glob) => glob.matches(name),
            Self::WentWrong => true,
        }
    }
}

fn exact(name: &str) -> NamePattern {
    NamePattern::Exact(name.to_owned())
}

fn known() -> impl Iterator<Item = &'static str> {
    Event::TYPES.iter().copied().chain(CONTROL)
}

fn check_one(word: &str) -> Result<TypeWanted, Failure> {
    if word == WENT_WRONG {
        return Ok(TypeWanted::WentWrong);
    }
    if glob::is_glob(word) {
        let glob = Glob::new(word).filter(|glob| {
            word.starts_with(EMBEDDED) || word.starts_with('*') || known().any(|n| glob.matches(n))
        });
        return glob.map(TypeWanted::Pattern).ok_or_else(|| unknown(word));
    }
    if known().any(|name| name == word) || word.starts_with(EMBEDDED) {
        return Ok(TypeWanted::Name(word.to_owned()));
    }
    let family = format!("{word}.");
    if known().any(|name| name.starts_with(&family)) {
        return Ok(TypeWanted::Family(family));
    }
    Err(unknown(word))
}

fn unknown(word: &str) -> Failure {
    let mut families: Vec<&str> =
        known().map(|name| name.split('.').next().unwrap_or_default()).collect();
    families.sort_unstable();
    families.dedup();
    Failure::usage(format!("--type: no event has the type {word:?}")).hint(format!(
        "families are {}; a family's types are shown by `annals stats`; {WENT_WRONG} stands for \
         all that went wrong",
        families.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expect: Option<&str>) {
        let got = Types::check(&[word.to_owned()], false).ok().map(|types| {
            types
                .narrowed()
                .iter()
                .map(|pattern| match pattern {
                    NamePattern::Exact(name) => format!("={name}"),
                    NamePattern::Prefix(prefix) => format!("^{prefix}"),
                })
                .collect::<String>()
        });
        assert_eq!(got.as_deref(), expect, "{word}");
    }

    /// Names, families, patterns and the word for failures are told apart; what no event can be is refused.
    #[test]
    fn words() {
        check("turn", Some("=turn"));
        check("run.finished", Some("=run.finished"));
        check("log.gap", Some("=log.gap"));
        check("spawn", Some("^spawn."));
        check("announce.*", Some("^announce."));
        check("*.refused", Some("^"));
        check("x.acme.tick", Some("=x.acme.tick"));
        check("x.acme.*", Some("^x.acme."));
        check("error", Some(""));
        check("spwan", None);
        check("run.finish", None);
        check("zz*", None);
        check("", None);
    }
}
