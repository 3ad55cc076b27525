//! Outputs of real programs, recorded against a stand-in of their model's interface and trimmed, and outputs written by
//! the documentation of the programs that are not tried here.

use annals_engine::session::event::Tokens;

use super::super::{Counted, Dialect, OutputForm, Reader, Told};
use super::told;

macro_rules! recorded {
    ($($file:literal)*) => {
        [$((
            $file,
            include_str!(concat!("../recorded/", $file)),
            include_str!(concat!("../recorded/", $file, ".told")),
        ),)*]
    };
}

const RECORDED: [(&str, &str, &str); 15] = recorded! {
    "claude-tools.jsonl" "claude-retry.jsonl" "claude-refused.jsonl" "claude-two-prompts.jsonl"
    "claude-subagent.jsonl" "claude-no-session.jsonl"
    "codex-resumed.jsonl" "codex-retry.jsonl" "codex-failed.jsonl"
    "gemini-tools.jsonl" "gemini-failed.jsonl" "gemini.json"
    "openclaw-exec.json" "openclaw-exec-failed.json" "openclaw-gateway.json"
};

fn dialect(file: &str) -> (Dialect, OutputForm) {
    let dialect = match file.split(['-', '.']).next().unwrap() {
        "claude" => Dialect::ClaudeStreamJson,
        "codex" => Dialect::CodexJsonl,
        "gemini" => Dialect::GeminiStreamJson,
        _ => Dialect::OpenclawExec,
    };
    (dialect, if file.ends_with(".json") { OutputForm::Json } else { OutputForm::Jsonl })
}

fn output(file: &str) -> &'static str {
    RECORDED.iter().find(|(name, ..)| *name == file).unwrap().1
}

fn read(file: &str, output: &str) -> Reader {
    let (dialect, form) = dialect(file);
    let mut reader = Reader::new(dialect, form);
    output.lines().for_each(|line| drop(reader.line(line.as_bytes())));
    reader
}

/// Goal: each recorded output tells what stands beside it. Method: the facts of both, one a line.
#[test]
fn outputs() {
    for (file, output, expect) in RECORDED {
        let (dialect, form) = dialect(file);
        let told = told(dialect, form, output.as_bytes());
        assert!(told == expect, "{file} tells\n{told}");
    }
}

/// Goal: a program that is stopped, or whose output is damaged, loses no more than the damage. Method: every output is
/// cut at every byte, where the id that was told stays and no turn is lost that was there before; and once more with
/// other lines between its own, where the reply is the same.
#[test]
fn torn_and_mixed_outputs() {
    for (file, output, _) in RECORDED.iter().filter(|(file, ..)| file.ends_with(".jsonl")) {
        let (dialect, form) = dialect(file);
        let mut turns = 0;
        for end in 0..output.len() {
            let mut reader = Reader::new(dialect, form);
            let lines = output.as_bytes()[..end].split_inclusive(|byte| *byte == b'\n');
            let told: Vec<_> = lines.filter_map(|line| reader.line(line)).collect();
            let reply = reader.finish();
            let named = told.iter().any(|told| matches!(told, Told::AgentSession(_)));
            assert_eq!(reply.agent_session_id.is_some(), named, "{file} at {end}");
            if named {
                assert!(reply.turns.len() >= turns, "{file} at {end}");
                turns = reply.turns.len();
            }
        }
        let junk = "\0\n[warn] x\n\n{\"type\":\"brand_new\",\"n\":1e999}\n[1]\n{\"type\":\n";
        let mixed = output.replace('\n', &format!("\n{junk}"));
        assert_eq!(read(file, &mixed).finish(), read(file, output).finish(), "{file}");
    }
}

/// Goal: a message that was said but not summed up by a result is the reply. Method: Claude's output without its last
/// row.
#[test]
fn stopped_before_the_result() {
    let file = "claude-tools.jsonl";
    let (before, _) = output(file).trim_end().rsplit_once('\n').unwrap();
    let reply = read(file, before).finish();
    assert_eq!(reply.text.as_deref(), Some("Done looking."));
    assert_eq!((reply.tokens, reply.error), (None, None));
}

/// Goal: a run counts what it used itself, though Codex counts the thread. Method: what was used before is taken off,
/// once; of a program that counts runs nothing is.
#[test]
fn what_a_resumed_run_used() {
    let earlier = Tokens { r#in: 180, out: 40, cache_read: Some(20), cache_write: None };
    let counts = |file| {
        let mut reply = read(file, output(file)).finish();
        reply.beyond(&earlier);
        reply.beyond(&earlier);
        assert_eq!(reply.counted, Counted::Run);
        let tokens = reply.tokens.unwrap();
        (tokens.r#in, tokens.out, tokens.cache_read)
    };
    assert_eq!(counts("codex-resumed.jsonl"), (180, 40, Some(20)));
    assert_eq!(counts("claude-tools.jsonl"), (200, 40, Some(20)));
}

/// Goal: items of two runs of one thread are not the same call. Method: one output read in two runs.
#[test]
fn ids_of_a_run() {
    let calls = |run| {
        let mut reader = Reader::new(Dialect::CodexJsonl, OutputForm::Jsonl).in_run(run);
        let lines = output("codex-resumed.jsonl").lines();
        lines.for_each(|line| drop(reader.line(line.as_bytes())));
        let turns = reader.finish().turns;
        assert_eq!(turns[1].calls, [turns[2].call_id.clone().unwrap()]);
        turns[1].calls.clone()
    };
    assert_eq!(calls("r1"), ["r1:item_2"]);
    assert_eq!(calls("r2"), ["r2:item_2"]);
}

/// Goal: a program that says in plain words why it does not start is heard. Method: no line is of the dialect.
#[test]
fn plain_words_instead() {
    for dialect in [Dialect::ClaudeStreamJson, Dialect::CodexJsonl, Dialect::OpenclawExec] {
        let told = told(dialect, OutputForm::Jsonl, b"Invalid API key\nPlease run /login\n");
        assert!(told.ends_with("text \"Invalid API key\\nPlease run /login\"\n"), "{told}");
    }
}

/// Goal: text is told once, whether it comes in pieces or whole. Method: Claude's rows with pieces before them.
#[test]
fn pieces_of_messages() {
    let pieces = r#"
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}}
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Hello"}]}}
"#;
    let told = told(Dialect::ClaudeStreamJson, OutputForm::Jsonl, pieces.as_bytes());
    let expect = [
        r#"+ "Hel""#,
        r#"+ "lo""#,
        r#"+ "\n""#,
        r#"assistant id=m [{"type":"text","text":"Hello"}]"#,
        r#"text "Hello""#,
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expect);
}
