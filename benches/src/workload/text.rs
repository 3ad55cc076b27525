//! What is said: prose in several scripts, code, and what a tool prints. It has what JSON must escape.

use fastrand::Rng;

/// The longest text in bytes, before JSON escapes it.
const SIZE_MAX: f64 = 2_900.0;

/// How long a text is to be, in bytes: mostly short, one in eight long.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the text is shorter than SIZE_MAX"
)]
pub(super) fn size(random: &mut Rng) -> usize {
    let mean = if random.u8(..8) == 0 { 1_000.0 } else { 125.0 };
    (12.0 - (1.0 - random.f64()).ln() * mean).min(SIZE_MAX) as usize
}

/// Sentences.
pub(super) fn prose(random: &mut Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        text.push_str(pick(random, &WORDS));
        text.push_str(match random.u8(..32) {
            0 => ". ",
            1 => ", ",
            2 => ".\n",
            3 => " \"quoted\" ",
            _ => " ",
        });
    }
    text
}

/// Lines of code, as a tool shows a file.
pub(super) fn code(random: &mut Rng, size: usize) -> String {
    let mut text = String::with_capacity(size + 64);
    while text.len() < size {
        text.push_str(pick(random, &CODE));
        text.push('\n');
    }
    text
}

/// Sentences with code between them.
pub(super) fn mixed(random: &mut Rng, size: usize) -> String {
    let mut text = prose(random, size.min(160));
    while text.len() < size {
        text.push_str("\n```rust\n");
        text.push_str(&code(random, 120));
        text.push_str("```\n");
        text.push_str(&prose(random, 80));
    }
    text
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from.get(random.usize(..from.len())).copied().unwrap_or_default()
}

const WORDS: [&str; 48] = [
    "the",
    "session",
    "asks",
    "for",
    "a",
    "path",
    "and",
    "then",
    "it",
    "waits",
    "größer",
    "Straße",
    "世界",
    "你好",
    "привет",
    "naïve",
    "café",
    "🎛️",
    "👩‍💻",
    "→",
    "append",
    "event",
    "log",
    "please",
    "look",
    "at",
    "this",
    "again",
    "because",
    "yesterday",
    "nothing",
    "was",
    "written",
    "0.125",
    "https://example.org/a?b=c",
    "C:\\temp\\x",
    "user's",
    "\"yes\"",
    "agent",
    "tool",
    "result",
    "deploy",
    "failed",
    "retry",
    "with",
    "more",
    "memory",
    "today",
];

const CODE: [&str; 12] = [
    "fn main() {",
    "    let path = Path::new(\"/var/log/agent.jsonl\");",
    "\tif err != nil { return fmt.Errorf(\"open %q: %w\", path, err) }",
    "    println!(\"{}\\n\", value);",
    "}",
    "-rw-r--r-- 1 agent agent 41893 Mar 14 09:26 notes.md",
    "const re = /^\\s*\"(\\w+)\":/u;",
    "SELECT key, count(*) FROM turns WHERE role = 'user' GROUP BY key;",
    "error[E0382]: borrow of moved value: `line`",
    "  │ größte Datei: 世界.txt (12 MB)",
    "# TYPE annals_appends_total counter",
    "test result: ok. 214 passed; 0 failed",
];
