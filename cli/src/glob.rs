//! Patterns of names: `*` stands for any text, `?` for one character, everything else for itself.

use annals_engine::store::NamePattern;
use regex::Regex;

/// A pattern of names.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    regex: Regex,
    narrowed: NamePattern,
}

impl Glob {
    /// Reads a pattern; `None` when it is too long to be one.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let mut regex = String::from("^(?s:");
        for c in pattern.chars() {
            match c {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                c => regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        regex.push_str(")$");
        let narrowed = match pattern.split_once(['*', '?']) {
            None => NamePattern::Exact(pattern.to_owned()),
            Some((prefix, _)) => NamePattern::Prefix(prefix.to_owned()),
        };
        Some(Self { regex: Regex::new(&regex).ok()?, narrowed })
    }

    /// Whether a name fits.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// What the store can look for: everything that fits the pattern fits this too.
    pub(crate) fn narrowed(&self) -> &NamePattern {
        &self.narrowed
    }
}

/// Whether a text has a wildcard.
pub(crate) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expect: bool) {
        let glob = Glob::new(pattern).unwrap();
        assert_eq!(glob.matches(name), expect, "{pattern} {name}");
        if expect {
            assert!(glob.narrowed().matches(name), "{pattern} narrows too far for {name}");
        }
    }

    /// Wildcards reach over colons and line feeds; nothing else is special.
    #[test]
    fn patterns() {
        check("agent:*:subagent:*", "agent:main:subagent:01", true);
        check("agent:*:subagent:*", "agent:main:main", false);
        check("agent:main:main", "agent:main:main", true);
        check("agent:main:main", "agent:main:main2", false);
        check("telegram:?", "telegram:7", true);
        check("telegram:?", "telegram:77", false);
        check("*", "", true);
        check("a.c*", "abc", false);
        check("x:(1)[*", "x:(1)[\n2", true);
        check("matrix:!Room", "matrix:!room", false);
        check("日?語*", "日本語です", true);
    }
}
