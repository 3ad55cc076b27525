//! Watch rules as the settings say them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::session::event::{Change, watch_stream};
use crate::session::key::AgentId;
use crate::session::watching::Rule;
use crate::watch::Selection;

use super::Config;

impl Config {
    /// The watch rules, in the order of the list.
    ///
    /// # Errors
    /// `InvalidInput`, with the path of the setting, for a rule without a name or paths, for a name that no stream takes or
    /// that another rule has, for a word that is no change, for an agent that has no command, for a placeholder that is none,
    /// and for a pattern that is no glob.
    pub fn watch_rules(&self) -> Result<Vec<Rule>> {
        let folder = self.folder().unwrap_or(Path::new("/"));
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for place in self.watch_places() {
            let fail = |field: &str, error: Error| {
                let hint = error.hint_text().unwrap_or(EXAMPLE).to_owned();
                let error = Error::invalid(error.message()).field(format!("{place}.{field}"));
                let error = error.hint(hint);
                match self.file() {
                    Some(file) => error.path(&file.path),
                    None => error,
                }
            };
            let rule = self.watch_rule(&place, &fail)?;
            if !names.insert(rule.name.clone()) {
                let message = format!("two watch rules are called {:?}", rule.name);
                return Err(fail("name", Error::invalid(message)));
            }
            Selection::new(folder, &rule.paths, &rule.ignore, &rule.outputs)
                .map_err(|e| fail("paths", e))?;
            rules.push(rule);
        }
        Ok(rules)
    }

    fn watch_rule(&self, place: &str, fail: &dyn Fn(&str, Error) -> Error) -> Result<Rule> {
        let at = |field: &str| format!("{place}.{field}");
        let text = |field: &str| self.text(&at(field)).map(str::to_owned);
        let texts =
            |field: &str| self.texts(&at(field)).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let millis = |field: &str| self.number(&at(field)).map(Duration::from_millis);
        let name =
            text("name").ok_or_else(|| fail("name", Error::invalid("a watch rule has no name")))?;
        watch_stream(&name).map_err(|e| fail("name", e))?;
        let paths = texts("paths");
        if paths.is_empty() {
            return Err(fail("paths", Error::invalid(format!("the rule {name:?} has no paths"))));
        }
        let word = |word: &String| {
            Change::from_word(word).ok_or_else(|| {
                let words = Change::ALL.iter().map(|change| change.as_str()).collect::<Vec<_>>();
                let message = format!("{word:?} is none of {}", words.join(", "));
                fail("on", Error::invalid(message))
            })
        };
        let filled = |field: &str| {
            let text = text(field);
            match text.as_deref().and_then(Rule::unknown_placeholder) {
                Some(word) => Err(fail(field, no_placeholder(&name, word))),
                None => Ok(text),
            }
        };
        let on: Vec<Change> = texts("on").iter().map(word).collect::<Result<_>>()?;
        Ok(Rule {
            on: if on.is_empty() { Change::ALL.to_vec() } else { on },
            paths,
            ignore: texts("ignore"),
            outputs: texts("outputs"),
            agent: self
                .text(&at("agent"))
                .map(|id| self.agent_with_command(&name, id).map_err(|e| fail("agent", e)))
                .transpose()?,
            session: filled("session")?,
            prompt: filled("prompt")?.unwrap_or_else(|| Rule::PROMPT.to_owned()),
            debounce: millis("debounceMs").unwrap_or(Rule::DEBOUNCE),
            max_wait: millis("maxWaitMs").unwrap_or(Rule::MAX_WAIT),
            runs_per_minute: self
                .number(&at("maxRunsPerMinute"))
                .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            poll: millis("poll").filter(|every| !every.is_zero()),
            initial: self.is_on(&at("initial")),
            name,
        })
    }

    /// An agent that runs can be asked of.
    fn agent_with_command(&self, rule: &str, id: &str) -> Result<AgentId> {
        let has_command = |place: &str| {
            ["command", "preset"]
                .iter()
                .any(|way| self.text(&format!("{place}.run.{way}")).is_some())
        };
        let able = self.agents().filter(|(place, _)| has_command(place));
        let able: Vec<&str> = able.map(|(_, id)| id).collect();
        match AgentId::parse(id) {
            Ok(agent) if able.contains(&agent.as_str()) => Ok(agent),
            _ => {
                let message = format!("the rule {rule:?}: no agent {id:?} has a command");
                let error = Error::invalid(message);
                Err(match able.is_empty() {
                    true => error.hint("agents.list names agents and, in run, their commands"),
                    false => error.hint(format!("agents with a command: {}", able.join(", "))),
                })
            }
        }
    }

    /// The places of the list, such as `watch[0]`, at which something is said.
    fn watch_places(&self) -> Vec<String> {
        let below = self.held.range(LIST.to_owned()..);
        let below = below.map_while(|(path, _)| path.strip_prefix(LIST));
        let mut indexes: Vec<u64> =
            below.filter_map(|rest| rest.split_once(']')?.0.parse().ok()).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| format!("{LIST}{index}]")).collect()
    }
}

fn no_placeholder(rule: &str, word: &str) -> Error {
    let known = Rule::PLACEHOLDERS.join(", ");
    Error::invalid(format!("the rule {rule:?}: {word} is no placeholder"))
        .hint(format!("there are {known}; a word between spaces, as in {{ word }}, is left alone"))
}

const LIST: &str = "watch[";

const EXAMPLE: &str = "a rule looks like { name: \"notes\", paths: [\"notes/**/*.md\"] }";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    fn read(text: &str) -> Result<Vec<Rule>> {
        let file = Some((Path::new("/c/annals.json5"), text));
        let (config, warnings) = load(&Sources { flags: &[], variable: &|_| None, file })?;
        assert_eq!(warnings, []);
        config.watch_rules()
    }

    /// Goal: a rule is read whole, and what is not said has its default. Method: one rule that says everything, and one
    /// that says what it must.
    #[test]
    fn rules() {
        let rules = read(
            "{agents: {list: [{id: 'ops', run: {preset: 'claude'}}]},
             watch: [{name: 'a', paths: ['x/**'], ignore: ['*.log'], outputs: ['out/**'], on: ['create'], agent: 'ops', \
             session: 'hook:{rule}', prompt: 'see {path}', debounceMs: 5, maxWaitMs: 6, maxRunsPerMinute: 7, poll: 8, \
             initial: true}, {name: 'b', paths: ['y'], poll: 0}]}",
        )
        .unwrap();
        let [full, least] = rules.as_slice() else { panic!("{rules:?}") };
        assert_eq!((full.on.as_slice(), full.runs_per_minute), (&[Change::Create][..], Some(7)));
        assert_eq!(full.poll, Some(Duration::from_millis(8)));
        assert!(full.initial && full.agent.is_some());
        assert_eq!((least.poll, least.debounce, least.on.len()), (None, Rule::DEBOUNCE, 3));
        assert_eq!((least.max_wait, least.prompt.as_str()), (Rule::MAX_WAIT, Rule::PROMPT));
    }

    /// Goal: a rule that cannot be is refused where it stands. Method: one of each, and the words of the error.
    #[test]
    fn what_cannot_be() {
        for (text, field, word) in [
            ("{watch: [{paths: ['x']}]}", "watch[0].name", "no name"),
            ("{watch: [{name: 'a'}]}", "watch[0].paths", "no paths"),
            ("{watch: [{name: 'a', paths: []}]}", "watch[0].paths", "no paths"),
            ("{watch: [{name: 'a', paths: ['x[']}]}", "watch[0].paths", "x["),
            ("{watch: [{name: 'a', paths: ['x'], on: ['touch']}]}", "watch[0].on", "touch"),
            (
                "{watch: [{name: 'a', paths: ['x']}, {name: 'a', paths: ['y']}]}",
                "watch[1].name",
                "two",
            ),
            ("{watch: [{name: 'a', paths: ['x'], agent: 'nobody'}]}", "watch[0].agent", "\"a\""),
            (
                "{agents: {list: [{id: 'b'}]}, watch: [{name: 'a', paths: ['x'], agent: 'b'}]}",
                "watch[0].agent",
                "command",
            ),
            (
                "{watch: [{name: 'a', paths: ['x'], prompt: 'see {pth}'}]}",
                "watch[0].prompt",
                "{pth}",
            ),
            (
                "{watch: [{name: 'a', paths: ['x'], session: 'hook:{file}'}]}",
                "watch[0].session",
                "\"a\": {file}",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.place().field.as_deref(), Some(field), "{text}: {error}");
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }
}
