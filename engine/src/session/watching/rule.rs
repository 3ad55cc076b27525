//! A watch rule: what is said of it, and the words that its runs get.

use std::time::Duration;

use crate::session::event::Change;
use crate::session::key::AgentId;

/// A watch rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which no other rule has.
    pub name: String,
    /// Globs of its files.
    pub paths: Vec<String>,
    /// Globs of files that it does not see.
    pub ignore: Vec<String>,
    /// Globs of files that its runs write and that never fire.
    pub outputs: Vec<String>,
    /// The changes that fire; others are only noted.
    pub on: Vec<Change>,
    /// The agent of its runs; the session's own when it is not said.
    pub agent: Option<AgentId>,
    /// The session of its runs, with placeholders; one of the rule's own when it is not said.
    pub session: Option<String>,
    /// What its runs are told, with placeholders.
    pub prompt: String,
    /// A file is settled when it was left alone for so long.
    pub debounce: Duration,
    /// A file that does not rest is waited for so long.
    pub max_wait: Duration,
    /// The most runs that it starts in a minute.
    pub runs_per_minute: Option<usize>,
    /// How often it looks, without notifications; `None` with them.
    pub poll: Option<Duration>,
    /// Whether what is there at the first look fires.
    pub initial: bool,
}

impl Rule {
    /// What stands for the file, the change and the rule in a prompt and in the name of a session.
    pub const PLACEHOLDERS: [&'static str; 3] = ["{path}", "{change}", "{rule}"];
    /// What runs are told where nothing is said.
    pub const PROMPT: &'static str = "{path}: {change}";
    /// The time to settle where nothing is said.
    pub const DEBOUNCE: Duration = Duration::from_millis(200);
    /// The longest wait where nothing is said.
    pub const MAX_WAIT: Duration = Duration::from_millis(1_000);

    /// A rule with nothing but what must be said.
    #[must_use]
    pub fn new(name: &str, paths: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            ignore: Vec::new(),
            outputs: Vec::new(),
            on: Change::ALL.to_vec(),
            agent: None,
            session: None,
            prompt: Self::PROMPT.to_owned(),
            debounce: Self::DEBOUNCE,
            max_wait: Self::MAX_WAIT,
            runs_per_minute: None,
            poll: None,
            initial: false,
        }
    }

    /// What the run of a change is told.
    #[must_use]
    pub fn prompt_for(&self, path: &str, change: Change) -> String {
        self.filled(&self.prompt, path, change)
    }

    /// The session of the run of a change.
    #[must_use]
    pub fn session_for(&self, path: &str, change: Change) -> String {
        match &self.session {
            Some(session) => self.filled(session, path, change),
            None => format!("hook:watch:{}", self.name),
        }
    }

    /// What in a text is spelled like a placeholder and is none: braces around one word, which other text hardly has.
    #[must_use]
    pub fn unknown_placeholder(text: &str) -> Option<&str> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        };
        let opened = text.match_indices('{').filter_map(|(at, _)| text.get(at..));
        let mut braced = opened.filter_map(|from| {
            let (inner, _) = from.strip_prefix('{')?.split_once('}')?;
            is_word(inner).then(|| from.get(..inner.len().saturating_add(2)))?
        });
        braced.find(|word| !Self::PLACEHOLDERS.contains(word))
    }

    /// A text with its placeholders filled in. What is filled in is not looked at again.
    fn filled(&self, text: &str, path: &str, change: Change) -> String {
        let values = [path, change.as_str(), self.name.as_str()];
        let known: Vec<(&str, &str)> = Self::PLACEHOLDERS.into_iter().zip(values).collect();
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let found = known.iter().find(|(word, _)| from.starts_with(word));
            let (word, value) = found.copied().unwrap_or(("{", "{"));
            filled.push_str(value);
            rest = from.get(word.len()..).unwrap_or_default();
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: placeholders are filled in once, and braces of others stay. Method: a path that looks like a placeholder.
    #[test]
    fn placeholders() {
        let mut rule = Rule::new("r", &["*"]);
        rule.prompt = "{rule}: {path} {change} {date} {".to_owned();
        assert_eq!(rule.prompt_for("/{rule}", Change::Remove), "r: /{rule} remove {date} {");
        assert_eq!(rule.session_for("/x", Change::Create), "hook:watch:r");
    }

    /// Goal: a misspelt placeholder is found, and other text in braces is none. Method: texts of both sorts.
    #[test]
    fn unknown_placeholders() {
        for (text, found) in [
            ("see {pth}", Some("{pth}")),
            ("{path} {change} {rule}{Path}", Some("{Path}")),
            ("{path}: {change} by {rule}", None),
            ("{\"a\": {\"b\": 1}} {} { path } ${x y} {", None),
            ("{{file}}", Some("{file}")),
        ] {
            assert_eq!(Rule::unknown_placeholder(text), found, "{text}");
        }
    }
}
