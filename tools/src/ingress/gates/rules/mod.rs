//! The rules: each a list of patterns over readings of a text, an id that stays, and what to say when it hits.
//!
//! Patterns are written over plain small letters. In them `<start>` is where a clause begins that may be an order: at
//! the beginning of a text, a line or a sentence, or behind a word such as *please*. A pattern without it would hit what
//! only speaks of the matter. Commands are written without their surroundings: they count where a text says to run them,
//! shown as code or not, and where they stand alone on a line that is no code.

mod exfiltration;
mod injection;
mod shell;

use std::sync::LazyLock;

use regex::RegexSet;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::Gate;
use super::reading::Readings;

/// A rule.
pub(super) struct Rule {
    pub(super) gate: Gate,
    pub(super) id: &'static str,
    pub(super) reason: &'static str,
    pub(super) hint: &'static str,
    /// Over [`Readings::prose`].
    prose: &'static [&'static str],
    /// Over [`Readings::joined`].
    joined: &'static [&'static str],
    /// Commands, over [`Readings::whole`] where they are to be run and over [`Readings::commands`] where they stand alone.
    commands: &'static [&'static str],
}

/// All rules, in the order in which they are asked.
static RULES: [&[Rule]; 3] = [injection::RULES, exfiltration::RULES, shell::RULES];

impl Rule {
    /// The first rule that hits a text, of the gates that are shut.
    pub(super) fn first_hit(
        readings: &Readings,
        is_shut: &dyn Fn(Gate) -> bool,
    ) -> Option<&'static Self> {
        SETS.iter().filter(|set| is_shut(set.gate)).find_map(|set| set.first_hit(readings))
    }

    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        RULES.into_iter().flatten()
    }
}

/// The compiled rules of one gate.
struct Set {
    gate: Gate,
    rules: &'static [Rule],
    prose: Compiled,
    joined: Compiled,
    to_run: Compiled,
    alone: Compiled,
}

/// Patterns, and of which rule each is.
struct Compiled {
    set: RegexSet,
    rules: Vec<usize>,
}

static SETS: LazyLock<Vec<Set>> = LazyLock::new(|| {
    let compiled = RULES.into_iter().filter_map(|rules| Some((rules.first()?.gate, rules)));
    compiled
        .map(|(gate, rules)| Set {
            gate,
            rules,
            prose: Compiled::of(rules, |rule| rule.prose, |pattern| pattern.to_owned()),
            joined: Compiled::of(rules, |rule| rule.joined, |pattern| pattern.to_owned()),
            to_run: Compiled::of(rules, |rule| rule.commands, to_run),
            alone: Compiled::of(rules, |rule| rule.commands, alone),
        })
        .collect()
});

impl Set {
    fn first_hit(&self, readings: &Readings) -> Option<&'static Rule> {
        let places = [
            self.prose.first_hit(&readings.prose),
            self.joined.first_hit(&readings.joined),
            self.to_run.first_hit(&readings.whole),
            self.alone.first_hit(&readings.commands),
        ];
        self.rules.get(places.into_iter().flatten().min()?)
    }
}

impl Compiled {
    fn of(
        rules: &[Rule],
        patterns: fn(&Rule) -> &'static [&'static str],
        place: fn(&str) -> String,
    ) -> Self {
        let mut of_rules = Vec::new();
        let mut all = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            for pattern in patterns(rule) {
                of_rules.push(number);
                all.push(spelled_out(&place(pattern)));
            }
        }
        // That all compile is held by a test.
        Self { set: RegexSet::new(all).unwrap_or_else(|_| RegexSet::empty()), rules: of_rules }
    }

    /// The first rule that has a pattern which hits.
    fn first_hit(&self, text: &str) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        self.set.matches(text).iter().next().and_then(|hit| self.rules.get(hit).copied())
    }
}

/// Where an order may begin.
const START: &str = concat!(
    r#"(?:\A\s*["'“«„]*|[\n.!?;:>()\[\]{},|#—–•。!?:,、;]|-\s|"#,
    r"\b(?:please|now|and|then|also|just|simply|first|next|instead|but|so|immediately|kindly|hey|okay|ok",
    r"|you (?:must|should|will|need to|have to|are to|may)(?: now)?|(?:can|could|would|will) you",
    r"|(?:i|we) (?:now |really )?(?:want|need|order|command|instruct|require|ask|tell|expect) you to|i'd like you to",
    r"|assistant|chatgpt|claude|gpt|agent|attention|important",
    r"|bitte|jetzt|und|dann|sofort|por favor|ahora|y|luego|s'il (?:te|vous) plait|maintenant|et|agora|e|per favore|ora)\b",
    r"|(?:请|請|现在|現在|你必须|你必須|你要|你应该|你應該|务必|立即|立刻|马上|然后|然後|并且|而且|并|接下来|让我们)",
    r"|(?:пожалуйста|теперь|сейчас|и)\s|(?:من فضلك|رجاء|يرجى|الان|و)\s?|(?:今すぐ|さあ)",
    r")[\s,:.>#\-–—|•]*"
);

/// An order to run what stands behind it.
const RUN: &str = concat!(
    r"<start>(?:run|execute|launch|paste|type|enter|issue|invoke|perform|fuhren? sie|fuhre|starte|ejecut[ae]|corre|executez?",
    r"|lancez?|rode|esegui|выполните?|запустите?|نفذ|شغل|运行|執行|执行|運行|実行)",
    r"[\s:,]*(?:(?:this|the|these|that|following|command|commands|script|code|line|below|it|as root|now|for me|in|a|an|your",
    r"|my|me|terminal|shell|bash|on|server|machine|host|box|prompt|here|folgenden?|diesen?|das|den|befehl|skript|aus",
    r"|este|esta|el|la|siguiente|comando|le|cette|commande|suivante|o|seguinte|команду|следующую|эту|الامر|التالي|هذا",
    r"|以下|下面|这个|這個|的|命令|指令|脚本|を|してください)[\s:,]*)*",
    r#"(?:[`~]{3,}[a-z]*)?[\s"'`$>#]*(?:sudo\s+(?:-\S+\s+)*)?"#
);

/// What stands behind a command that is to be run, so that it is this command and no longer one.
const RUN_END: &str = r#"(?:$|[\s;&|`)"',.!])"#;

/// Where a command stands alone.
const ALONE: &str = r"(?:\A|\n)[\s>]*(?:[$#%]\s+)?(?:sudo\s+(?:-\S+\s+)*)?";

/// What stands behind a command that stands alone: nothing that is prose.
const ALONE_END: &str = r"\s*(?:$|\n|[;&|#>]|-)";

fn to_run(command: &str) -> String {
    format!("{RUN}(?:{command}){RUN_END}")
}

fn alone(command: &str) -> String {
    format!("{ALONE}(?:{command}){ALONE_END}")
}

/// A pattern with its short forms spelled out, in the letters of the readings. Classes and boundaries are those of ASCII:
/// in a reading there is no other white space, and their automata stay small.
fn spelled_out(pattern: &str) -> String {
    let letters: String = pattern
        .replace("<start>", START)
        .replace("<noun>", exfiltration::SECRET_NOUN)
        .replace("<file>", exfiltration::SECRET_FILE)
        .replace("<shell>", shell::INTERPRETER)
        .nfkd()
        .filter(|c| !is_combining_mark(*c))
        .collect();
    letters
        .replace(r"\s", r"[ \t\n]")
        .replace(r"\S", r"[^ \t\n]")
        .replace(r"\w", "[a-z0-9_]")
        .replace(r"\b", r"(?-u:\b)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every pattern compiles, and every rule has an id of its own, words and a pattern. Method: all of them.
    #[test]
    fn the_rules_are_sound() {
        let mut ids = std::collections::BTreeSet::new();
        for rule in Rule::all() {
            assert!(ids.insert(rule.id), "{} stands twice", rule.id);
            assert!(rule.id.contains('.') && !rule.reason.is_empty() && !rule.hint.is_empty());
            let places = [rule.prose.to_vec(), rule.joined.to_vec()].concat();
            let commands = rule.commands.iter().flat_map(|c| [to_run(c), alone(c)]);
            let all: Vec<String> = places
                .into_iter()
                .map(str::to_owned)
                .chain(commands)
                .map(|p| spelled_out(&p))
                .collect();
            assert!(!all.is_empty(), "{}", rule.id);
            for pattern in &all {
                regex::Regex::new(pattern).unwrap_or_else(|e| panic!("{}: {e}", rule.id));
            }
        }
        for set in SETS.iter() {
            assert_eq!(set.prose.set.len(), set.prose.rules.len(), "{}", set.gate);
            assert_eq!(set.to_run.set.len(), set.to_run.rules.len(), "{}", set.gate);
            assert_eq!(set.alone.set.len(), set.alone.rules.len(), "{}", set.gate);
        }
    }
}
