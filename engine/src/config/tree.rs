//! A file's tree of values against the table of settings.

use serde_json::Value;

use crate::error::{Error, Result};

use super::Warning;
use super::kind::Kind;
use super::strict::{self, Wrong};
use super::table::{SETTINGS, Setting};

/// A setting's value, and the concrete path at which it stood.
pub(super) type Leaf = (String, &'static Setting, Value);

/// The settings of a file, checked, and what in it is none.
pub(super) fn leaves(text: &str) -> Result<(Vec<Leaf>, Vec<Warning>)> {
    let root = parse(text)?;
    let mut found = Walk { leaves: Vec::new(), warnings: Vec::new() };
    found.below("", &SETTINGS.iter().map(|s| (s, s.path)).collect::<Vec<_>>(), &root)?;
    Ok((found.leaves, found.warnings))
}

/// The tree of values that a file is.
///
/// # Errors
/// `InvalidInput` when it is not JSON5, with line and column; when it is nested too deep or no object.
pub(super) fn parse(text: &str) -> Result<Value> {
    check_depth(text)?;
    let root: Value = strict::value(text).map_err(unreadable)?;
    if !root.is_object() {
        return Err(Error::invalid("the configuration is not an object")
            .hint("it looks like { session: { reset: { mode: \"daily\", atHour: 4 } } }"));
    }
    Ok(root)
}

/// A step of a path into a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A member of an object.
    Name(&'a str),
    /// A place in a list.
    Index(usize),
}

/// The steps of a path such as `agents.list[0].id`, and the setting at its end.
///
/// # Errors
/// `InvalidInput` for a path at which no setting stands.
pub(super) fn setting_at(path: &str) -> Result<(Vec<Step<'_>>, &'static Setting)> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, mut places) = part.split_at(part.find('[').unwrap_or(part.len()));
        steps.push(Step::Name(name));
        while !places.is_empty() {
            let inside = places.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let place = inside.and_then(|(index, rest)| Some((index.parse().ok()?, rest)));
            let (index, rest) = place.ok_or_else(|| {
                Error::invalid(format!("{part:?} is no place in a list"))
                    .field(path)
                    .hint("a place in a list looks like agents.list[0].id, counted from 0")
            })?;
            steps.push(Step::Index(index));
            places = rest;
        }
    }
    let mut candidates: Vec<_> = SETTINGS.iter().map(|s| (s, s.path)).collect();
    for step in &steps {
        let name = match step {
            Step::Name(name) => name,
            Step::Index(_) => "[]",
        };
        let inner = narrowed(&candidates, name);
        if inner.is_empty() {
            return Err(no_setting(path, name, &candidates));
        }
        candidates = inner;
    }
    let found = candidates.iter().find(|(_, rest)| rest.is_empty());
    let (setting, _) = found.ok_or_else(|| no_setting(path, "", &candidates))?;
    Ok((steps, setting))
}

fn no_setting(path: &str, name: &str, candidates: &Candidates) -> Error {
    let error = Error::invalid(format!("{path} is not a setting")).field(path);
    if let Some((whole, _)) = candidates.iter().find(|(_, rest)| rest.is_empty()) {
        return error.hint(format!("{} is one setting: {}", whole.path, whole.legal()));
    }
    let names = names(candidates);
    match nearest(name, &names) {
        Some(known) => error.hint(format!("did you mean {known}?")),
        None if names.is_empty() => error.hint("`annals config show --all` lists the settings"),
        None => error.hint(format!("there are {}", names.join(", "))),
    }
}

/// The known name that is most like one.
fn nearest(name: &str, names: &[&str]) -> Option<String> {
    names
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, name), *known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3))
        .map(|(_, known)| known.to_owned())
}

/// How deep a configuration is nested at the most.
const DEPTH_MAX: usize = 64;

/// Refuses text that its reader would follow too deep. Brackets in texts and comments count too: nobody has so many.
fn check_depth(text: &str) -> Result<()> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Error::invalid(format!(
                "the configuration is nested deeper than {DEPTH_MAX} levels"
            ))
            .hint("close what is open: brackets in texts and comments count too"));
        }
    }
    Ok(())
}

fn unreadable(wrong: Wrong) -> Error {
    match wrong {
        Wrong::Syntax(error) => {
            let place = error
                .position()
                .map(|at| format!("line {}, column {}: ", at.line + 1, at.column + 1))
                .unwrap_or_default();
            Error::invalid(format!("the configuration is not JSON5: {place}{error}"))
        }
        Wrong::Lost { path, why } => Error::invalid(why)
            .field(path)
            .hint("write each name once, and numbers as digits: one of two values would be lost"),
    }
}

struct Walk {
    leaves: Vec<Leaf>,
    warnings: Vec<Warning>,
}

/// Settings that may still fit, each with what is left of its path.
type Candidates = [(&'static Setting, &'static str)];

impl Walk {
    fn below(&mut self, path: &str, candidates: &Candidates, value: &Value) -> Result<()> {
        let here = candidates.iter().find(|(_, rest)| rest.is_empty());
        if let Some((setting, _)) = here {
            return self.leaf(path, setting, value);
        }
        if candidates.iter().any(|(_, rest)| *rest == "**") {
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.member(path, candidates, name, value)?;
                }
                Ok(())
            }
            Value::Array(items) if candidates.iter().any(|(_, rest)| rest.starts_with("[]")) => {
                let inner = narrowed(candidates, "[]");
                items.iter().enumerate().try_for_each(|(index, item)| {
                    self.below(&format!("{path}[{index}]"), &inner, item)
                })
            }
            _ => Err(Error::invalid(format!("{path} holds settings, not a value"))
                .field(path)
                .hint(format!("below it are {}", names(candidates).join(", ")))),
        }
    }

    fn member(
        &mut self,
        path: &str,
        candidates: &Candidates,
        name: &str,
        value: &Value,
    ) -> Result<()> {
        let inner = narrowed(candidates, name);
        let full = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if !inner.is_empty() {
            return self.below(&full, &inner, value);
        }
        let nearest = nearest(name, &names(candidates));
        self.warnings.push(Warning::Unknown { path: full, nearest });
        Ok(())
    }

    fn leaf(&mut self, path: &str, setting: &'static Setting, value: &Value) -> Result<()> {
        if value.is_null() || setting.kind == Kind::Ignored {
            return Ok(());
        }
        let value = setting.kind.check(value).map_err(|e| {
            let hint = e
                .hint_text()
                .map_or_else(|| format!("{path} is {}", setting.legal()), str::to_owned);
            Error::invalid(e.message()).field(path).hint(hint)
        })?;
        self.leaves.push((path.to_owned(), setting, value));
        Ok(())
    }
}

/// The candidates that go on with a name. A name that is said outright goes before `*`.
fn narrowed(candidates: &Candidates, name: &str) -> Vec<(&'static Setting, &'static str)> {
    let step = |rest: &'static str, word: &str| -> Option<&'static str> {
        let rest = rest.strip_prefix(word)?;
        match rest.as_bytes().first() {
            None => Some(rest),
            Some(b'.') => rest.get(1..),
            Some(b'[') => Some(rest),
            Some(_) => None,
        }
    };
    let by = |word: &str| -> Vec<_> {
        candidates.iter().filter_map(|(s, rest)| step(rest, word).map(|rest| (*s, rest))).collect()
    };
    let outright = by(name);
    if outright.is_empty() && name != "[]" { by("*") } else { outright }
}

/// The names that may come next.
fn names(candidates: &Candidates) -> Vec<&'static str> {
    let mut names: Vec<_> = candidates
        .iter()
        .map(|(_, rest)| rest.split(['.', '[']).next().unwrap_or_default())
        .filter(|name| !name.is_empty() && !name.starts_with('*'))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
