//! Keys as pairs of what is typed and what is meant, and their laws over random text.

use super::*;
use crate::error::ErrorKind;

fn current() -> AgentId {
    AgentId::parse("main").unwrap()
}

fn check(typed: &str, expect: &str) {
    let got = match SessionKey::parse(typed, &current()) {
        Ok(key) => format!("{key} {}", key.kind_at_opening()),
        Err(error) => {
            let kinds = [ErrorKind::InvalidInput, ErrorKind::ReservedChannel];
            assert!(kinds.contains(error.kind()), "{error}");
            format!("error: {error}")
        }
    };
    assert!(got.starts_with(expect), "{typed:?}: {got:?}, not {expect:?}");
}

/// Goal: every shape has its canonical form and its kind. Method: one pair for each, in odd case where case folds.
#[test]
fn shapes() {
    check("main", "agent:main:main main");
    check("MAIN", "agent:main:main main");
    check("AGENT:Main:Main", "agent:main:main main");
    check("agent:ops_2:main", "agent:ops_2:main main");
    check("agent:main:Telegram:GROUP:-100:7", "agent:main:telegram:group:-100:7 group");
    check("agent:main:slack:Channel:C01", "agent:main:slack:channel:C01 group");
    check("agent:main:whatsapp:direct:+43", "agent:main:whatsapp:direct:+43 other");
    check("Agent:main:SubAgent:5F3D", "agent:main:subagent:5F3D other");
    check("agent:main:Work", "agent:main:Work other");
    check("agent:main:cron:Job", "agent:main:cron:Job other");
    check("CRON:Nightly", "cron:Nightly cron");
    check("Hook:9F", "hook:9F hook");
    check("Node-7", "node-7 node");
    check("node-a:b", "node-a:b node");
    check("cli:default", "cli:default other");
    check("GLOBAL", "global");
    check("Unknown", "unknown");
}

/// Goal: what a client chooses is opaque: no case folding, no Unicode form, no guess from how it looks. Method: ids as
/// chat services give them, and ids that look like other shapes.
#[test]
fn ids_are_opaque() {
    check("Matrix:!Room:Example.org", "matrix:!Room:Example.org other");
    check("matrix:!room:example.org", "matrix:!room:example.org other");
    check("google_chat:spaces/AAAAE/threads/hr_4", "google_chat:spaces/AAAAE/threads/hr_4 other");
    check("dingtalk:cidNc/9w/E+z8=", "dingtalk:cidNc/9w/E+z8= other");
    check("http:01ARZ3NDEKTSV4RRFFQ69G5FAV", "http:01ARZ3NDEKTSV4RRFFQ69G5FAV other");
    check("x:subagent:y", "x:subagent:y other");
    check("x:run:1", "x:run:1 other");
    check("x:\u{e9}", "x:\u{e9} other");
    check("x:e\u{301}", "x:e\u{301} other");
    check("x:परिवार", "x:परिवार other");
    check("x:../../etc/x", "x:../../etc/x other");
    check("x:%2e%2e/", "x:%2e%2e/ other");
    check("x:a ", "x:a  other");
    check("x: ", "x:  other");
    check("x:A", "x:A other");
    check("x:CON", "x:CON other");
    check("x:a.", "x:a. other");
    check("x:a\u{0}b\u{1}", "x:a\u{0}b\u{1} other");
    check(r"C:\x", r"c:\x other");
}

/// Goal: what is no key is an error that says so, and never somebody's main bucket. Method: one bad text each.
#[test]
fn refused() {
    for typed in ["", "foo", "..", ".", "/abs", "../../etc/x", "%2e%2e/", "0198c0de-0000-7000"] {
        check(typed, &format!("error: {typed:?} is not a session key"));
    }
    for name in
        ["run", "watch", "policy", "log", "import", "subagent", "main", "global", "unknown", "Node"]
    {
        check(&format!("{name}:1"), "error: a channel cannot be called");
        assert!(SessionKey::of_chat(name, "1").is_err());
    }
    for name in ["agent", "cron", "hook", "node-7", "NODE-"] {
        let error = SessionKey::of_chat(name, "1").unwrap_err();
        assert!(*error.kind() == ErrorKind::ReservedChannel, "{error}");
    }
    for typed in ["cli:", "cron:", "node-", "agent:main", "agent:main:", "agent:main:subagent:"] {
        check(typed, &format!("error: the session key {typed:?} ends before its id"));
    }
    check("agent:main:x:group:", "error: the session key");
    for typed in
        [":x", " cli:x", "agent::main", "agent: :main", "agent:émile:main", "-x:1", "tele gram:1"]
    {
        check(typed, "error: \"");
    }
    check(&format!("{}:1", "a".repeat(65)), "error: \"");
    check(&format!("{}:1", "a".repeat(64)), "aaaa");
    check(&format!("x:{}", "é".repeat(511)), "x:é");
    check(
        &format!("x:{}", "é".repeat(512)),
        "error: a session key has at most 1024 bytes, this one has 1026",
    );
    check(&"x:y".repeat(5_000), "error: a session key has at most 1024 bytes");
}

/// Goal: keys and the store's other streams never meet. Method: names of both.
#[test]
fn streams() {
    let of = |name: &str| SessionKey::of_stream(&StreamName::new(name).unwrap());
    for other in ["run:1", "watch:notes", "policy", "log", "import", "main", "AGENT:main:main"] {
        assert_eq!(of(other), None, "{other}");
    }
    assert_eq!(of("agent:main:main"), SessionKey::parse("main", &current()).ok());
}

/// Goal: an agent sees its own main bucket as `main` and nobody else's. Method: both.
#[test]
fn shown() {
    let main = SessionKey::parse("main", &current()).unwrap();
    assert_eq!(main.shown_to(&current()), "main");
    assert_eq!(main.shown_to(&AgentId::parse("ops").unwrap()), "agent:main:main");
}

/// Parts that build a key are not always the parts that its text says.
#[test]
fn parts_that_read_otherwise_are_refused() {
    let own = |name| SessionKey::of(&Parts::Own { agent: current(), name });
    assert!(own("main").is_err());
    assert!(own("x:group:1").is_err());
    assert!(own("").is_err());
    assert!(own("x:grup:1").is_ok());
}

/// A small generator (xorshift, Marsaglia 2003): the same seed gives the same text.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 22] = [
            ":", ":", ":", "agent", "Agent", "main", "MAIN", "subagent", "Group", "direct",
            "channel", "cron", "node-", "run", "cli", "X", "é", "e\u{301}", "\u{0}", "%3A", "🙂",
            " ",
        ];
        let mut text = String::new();
        for _ in 0..self.below(9) {
            match self.below(4) {
                0 => text.extend(char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap())),
                _ => text.push_str(PIECES[usize::try_from(self.below(22)).unwrap()]),
            }
        }
        text
    }
}

/// Goal: for any text, the canonical form is a fixed point, its parts give it back, structural case does not matter
/// and the id is kept to the byte. Method: 200,000 random texts of structural words and arbitrary characters.
#[test]
fn laws_over_random_text() {
    let seed = 0x9e37_79b9_7f4a_7c15;
    let mut random = Random(seed);
    let mut keys = 0;
    for n in 0..200_000 {
        let typed = random.text();
        let Ok(key) = SessionKey::parse(&typed, &current()) else { continue };
        keys += 1;
        let at = format!("seed {seed:#x}, text {n}: {typed:?}");
        assert_eq!(SessionKey::parse(key.as_str(), &current()).unwrap(), key, "{at}");
        assert_eq!(SessionKey::of_stream(key.stream()).as_ref(), Some(&key), "{at}");
        assert_eq!(SessionKey::of(&key.parts()).unwrap(), key, "{at}");
        let id = match key.parts() {
            Parts::Main { .. } | Parts::Global | Parts::Unknown => "",
            Parts::Chat { id, .. }
            | Parts::Subagent { id, .. }
            | Parts::Cron { id }
            | Parts::Hook { id }
            | Parts::Node { id }
            | Parts::Channel { id, .. } => id,
            Parts::Own { name, .. } => name,
        };
        assert!(typed.ends_with(id), "{at}");
        let structure = &typed[..typed.len() - id.len()];
        let loud = format!("{}{id}", structure.to_ascii_uppercase());
        assert_eq!(SessionKey::parse(&loud, &current()).unwrap(), key, "{at}");
    }
    assert!(keys > 10_000, "only {keys} of the texts were keys");
}
