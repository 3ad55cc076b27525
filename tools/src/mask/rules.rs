//! What a secret looks like. Most text holds none and is passed over by one pattern for each of two groups of rules; only
//! where it finds something are the rules of the group asked. These patterns, and those of the rules, begin with fixed
//! text, which is looked for many bytes at a time: where a word may begin with a capital, its second letter comes first.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use regex::{Captures, Regex};

/// Rules that are asked together.
struct Group {
    /// What there is in every text in which a rule of the group finds something, and in JSON that spells such a text.
    candidate: &'static str,
    /// Rules by name. In each pattern the group `s`, `q` or `u` is the secret.
    rules: &'static [(&'static str, &'static str)],
}

const GROUPS: [Group; 2] = [
    Group {
        candidate: concat!(
            r"PRIVATE KEY|eyJ[A-Za-z0-9_-]{8}|sk-[A-Za-z0-9_-]{16}|gh[pousr]_[A-Za-z0-9]{20}|github_pat_",
            r"|xox[a-z]-|xapp-|AKIA[A-Z0-9]{16}|ASIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|whsec_",
            r#"|://[^\s/:@?#"]*:[^\s/@"]+@|:\\/\\/"#,
            r"|(?:earer|EARER|asic|ASIC)[ \t]+[A-Za-z0-9._~+/=-]{8}|\\u00[2-7]",
        ),
        rules: &[
            (
                "private-key",
                r"(?s)(?<s>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z))",
            ),
            ("jwt", r"(?-u:\b)(?<s>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)"),
            ("openai-key", r"(?-u:\b)(?<s>sk-[A-Za-z0-9_-]{16,})"),
            (
                "github-token",
                r"(?-u:\b)(?<s>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
            ),
            ("slack-token", r"(?-u:\b)(?<s>(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,})"),
            ("aws-key", r"(?-u:\b)(?<s>(?:AKIA|ASIA)[A-Z0-9]{16})(?-u:\b)"),
            ("google-key", r"(?-u:\b)(?<s>AIza[A-Za-z0-9_-]{35})"),
            ("webhook-secret", r"(?-u:\b)(?<s>whsec_[A-Za-z0-9+/=_-]{16,})"),
            ("url-password", r"://[^\s/:@?#]*:(?<s>[^\s/@]+)@"),
            (
                "authorization",
                r"(?<scheme>earer|EARER|asic|ASIC)[ \t]+(?<s>[A-Za-z0-9._~+/=-]{8,})",
            ),
        ],
    },
    Group {
        candidate: r#"(?:<names>)\\?["'`]?[ \t]{0,8}[:=]|\\u00[2-7]"#,
        rules: &[(
            ASSIGNMENT,
            concat!(
                r#"(?<name><names>)\\?["'`]?(?<sep>[ \t]{0,8}(?::=|=>|=|:)[ \t]{0,8})"#,
                r#"(?:\\?["'`](?<q>[^"'`\\\n]{4,})|(?<u>[^\s"'`,;&|<>(){}\\]{4,}))(?<end>\(?)"#,
            ),
        )],
    },
];

/// How names of secrets end.
const NAMES: &str = concat!(
    "assw(?:or)?d|ASSW(?:OR)?D|assphrase|ASSPHRASE|pwd|PWD|ecret|ECRET|oken|OKEN|pi_key|pi-key|pikey|piKey|PI_KEY|PI-KEY",
    "|ss_key|ssKey|SS_KEY|te_key|teKey|TE_KEY|et_key|etKey|ET_KEY"
);

/// The rule of what stands behind a telling name.
pub(super) const ASSIGNMENT: &str = "assignment";

struct Compiled {
    candidate: Regex,
    rules: Vec<(&'static str, Regex)>,
}

static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
    // That all compile is held by a test.
    let compiled = |pattern: &str| Regex::new(&pattern.replace("<names>", NAMES)).ok();
    let group = |group: &Group| {
        let rules = group.rules.iter().filter_map(|(name, p)| Some((*name, compiled(p)?)));
        Some(Compiled { candidate: compiled(group.candidate)?, rules: rules.collect() })
    };
    GROUPS.iter().filter_map(group).collect()
});

/// Whether a rule may find something in a text, or in what a JSON text spells.
pub(super) fn may_hold(text: &str) -> bool {
    COMPILED.iter().any(|group| group.candidate.is_match(text))
}

/// What stands in the place of a secret.
pub(super) fn label(rule: &str) -> String {
    format!("[masked:{rule}]")
}

/// A text with what the rules find masked; `None` when they find nothing.
pub(super) fn masked(text: &str) -> Option<String> {
    let groups = COMPILED.iter().filter(|group| group.candidate.is_match(text));
    groups.flat_map(|group| &group.rules).fold(None, |masked: Option<String>, (name, pattern)| {
        let found = replaced(name, pattern, masked.as_deref().unwrap_or(text));
        found.or(masked)
    })
}

/// A text with what one rule finds masked.
fn replaced(name: &str, pattern: &Regex, text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for found in pattern.captures_iter(text).filter(|found| is_secret(name, found)) {
        let named = |group| found.name(group);
        let Some(secret) = named("s").or_else(|| named("q")).or_else(|| named("u")) else {
            continue;
        };
        out.push_str(text.get(copied..secret.start()).unwrap_or_default());
        out.push_str(&label(name));
        copied = secret.end();
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// Whether what a pattern found is a secret and no word of prose or of a program.
fn is_secret(rule: &str, found: &Captures<'_>) -> bool {
    let group = |name| found.name(name).map_or("", |group| group.as_str());
    match rule {
        "authorization" if group("scheme").eq_ignore_ascii_case("asic") => STANDARD_NO_PAD
            .decode(group("s").trim_end_matches('='))
            .is_ok_and(|user| user.contains(&b':')),
        "authorization" => looks_random(group("s")),
        "url-password" => !is_placeholder(group("s")),
        "assignment" => {
            let (quoted, bare) = (group("q"), group("u"));
            if is_placeholder(if quoted.is_empty() { bare } else { quoted }) {
                return false;
            }
            let name = group("name").to_ascii_lowercase();
            let for_people =
                ["password", "passwd", "passphrase", "pwd"].iter().any(|end| name.ends_with(end));
            match group("sep") {
                _ if !quoted.is_empty() => true,
                _ if !group("end").is_empty() || is_expression(bare) => false,
                // As in a file of settings or an address.
                "=" => true,
                _ => for_people || looks_random(bare),
            }
        }
        _ => true,
    }
}

/// Whether the member of an object is a secret by its name.
pub(super) fn names_secret(name: &str) -> bool {
    static ENDINGS: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "privatekey",
        "secretkey",
    ];
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    let plain: String = letters.collect::<String>().to_ascii_lowercase();
    ENDINGS.iter().any(|end| plain.ends_with(end))
}

/// Whether a value only says where a secret would stand.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.trim();
    let words = ["null", "none", "true", "false", "undefined", "string", "required", "optional"];
    value.starts_with(['$', '<', '{', '%', '*', '['])
        || value.chars().all(|c| matches!(c, '.' | '*' | 'x' | 'X' | '-' | '_' | '…'))
        || words.iter().any(|word| value.trim_end_matches(['.', ',']).eq_ignore_ascii_case(word))
}

/// Whether a value is a name in a program, such as `config.token` or `args[1]`.
fn is_expression(value: &str) -> bool {
    let is_name = |part: &str| part.chars().all(|c| c.is_alphabetic() || c == '_');
    let value = value.trim_end_matches(['.', '?', '!']);
    let Some((first, rest)) = value.split_once(['.', ':', '[']) else { return false };
    !first.is_empty()
        && is_name(first)
        && (value.contains('[') || rest.split(['.', ':']).all(is_name))
}

/// Whether a value is no word: it has digits, signs, or capitals that do not begin it.
fn looks_random(value: &str) -> bool {
    let word = value.trim_end_matches(['.', ',', ':', '-', '=']);
    let mut rest = word.chars();
    rest.next();
    word.chars().any(|c| c.is_ascii_digit() || matches!(c, '+' | '=' | '~'))
        || rest.clone().any(char::is_uppercase) && rest.any(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every pattern compiles. Method: all of them.
    #[test]
    fn the_rules_are_sound() {
        assert_eq!(COMPILED.len(), GROUPS.len());
        for (compiled, group) in COMPILED.iter().zip(&GROUPS) {
            assert_eq!(compiled.rules.len(), group.rules.len());
        }
    }
}
