//! Outputs as programs print them, and what a reader tells of each.

use std::fmt::Write as _;

use super::*;

/// What an output tells, each line of it and then the whole, one fact a line.
fn told(dialect: Dialect, form: OutputForm, output: &[u8]) -> String {
    let mut reader = Reader::new(dialect, form);
    let mut out = String::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        match reader.line(line) {
            Some(Told::Text(text)) => writeln!(out, "+ {text:?}").unwrap(),
            Some(Told::Progress(text)) => writeln!(out, "~ {text:?}").unwrap(),
            Some(Told::AgentSession(id)) => writeln!(out, "@ {id}").unwrap(),
            None => {}
        }
    }
    let reply = reader.finish();
    for turn in &reply.turns {
        write!(out, "{}", turn.role).unwrap();
        let told = [("id", &turn.message_id), ("call", &turn.call_id), ("tool", &turn.tool_name)];
        for (name, value) in told.into_iter().chain([("model", &turn.model)]) {
            value.iter().for_each(|value| write!(out, " {name}={value}").unwrap());
        }
        turn.calls.iter().for_each(|call| write!(out, " opens={call}").unwrap());
        turn.is_error.iter().for_each(|error| write!(out, " error={error}").unwrap());
        turn.tokens.iter().for_each(|tokens| write!(out, " {}", counts(tokens)).unwrap());
        writeln!(out, " {}", turn.content.as_str()).unwrap();
    }
    reply.text.iter().for_each(|text| writeln!(out, "text {text:?}").unwrap());
    reply.tokens.iter().for_each(|tokens| writeln!(out, "tokens {}", counts(tokens)).unwrap());
    reply.cost_micros.iter().for_each(|cost| writeln!(out, "cost {cost}").unwrap());
    reply.model.iter().for_each(|model| writeln!(out, "model {model}").unwrap());
    reply.agent_session_id.iter().for_each(|id| writeln!(out, "session {id}").unwrap());
    reply.error.iter().for_each(|error| writeln!(out, "error {error:?}").unwrap());
    out
}

fn counts(tokens: &Tokens) -> String {
    let Tokens { r#in, out, cache_read, cache_write } = tokens;
    let cached = [("read", cache_read), ("write", cache_write)];
    let cached = cached.into_iter().filter_map(|(name, count)| Some((name, (*count)?)));
    let cached = cached.map(|(name, count)| format!(" {name} {count}"));
    cached.fold(format!("in {in} out {out}"), |all, one| all + &one)
}

fn check(dialect: Dialect, form: OutputForm, output: &str, expect: &str) {
    let expect: Vec<&str> = expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let told = told(dialect, form, output.as_bytes());
    assert_eq!(told.lines().collect::<Vec<_>>(), expect, "{output}");
}

fn native(output: &str, expect: &str) {
    check(Dialect::Native, OutputForm::Text, output, expect);
}

/// Every word is the dialect's own, and nothing else is a dialect.
#[test]
fn words() {
    for (word, dialect) in Dialect::WORDS {
        assert_eq!(Dialect::from_word(word), Some(dialect));
        assert_eq!(dialect.as_str(), word);
    }
    assert_eq!(Dialect::from_word("Native"), None);
    assert_eq!(OutputForm::from_word("json"), Some(OutputForm::Json));
    assert_eq!(OutputForm::from_word("stream"), None);
}

/// Text is the reply but for one line feed at its end; saying nothing is no reply.
#[test]
fn plain_text() {
    let text = |output, expect| check(Dialect::None, OutputForm::Text, output, expect);
    text("", "");
    text("\n", r#"+ "\n""#);
    text("a\nb\n", "+ \"a\\n\"\n+ \"b\\n\"\nassistant \"a\\nb\"\ntext \"a\\nb\"");
    text("a\n\n", "+ \"a\\n\"\n+ \"\\n\"\nassistant \"a\\n\"\ntext \"a\\n\"");
    text(
        "{\"type\":\"result\"}",
        r#"
        + "{\"type\":\"result\"}\n"
        assistant "{\"type\":\"result\"}"
        text "{\"type\":\"result\"}""#,
    );
    let told = told(Dialect::None, OutputForm::Text, b"a\xffb\n");
    assert!(told.ends_with("text \"a\u{fffd}b\"\n"), "{told}");
}

/// Of one JSON value the text is found, and of lines the last one that has text; what has none stands as it is.
#[test]
fn plain_json() {
    let json = |output, text: &str| {
        let told = told(Dialect::None, OutputForm::Json, output);
        assert!(told.ends_with(&format!("text {text}\n")), "{told}");
    };
    json(b"{\n \"reply\": \"yes\",\n \"n\": 1e999\n}\n", "\"yes\"");
    json(b"\"half \\ud83d a pair\"\n", "\"half \u{fffd} a pair\"");
    json(b"[1,2]\n", "\"[1,2]\"");
    json(b"{\"torn\": ", "\"{\\\"torn\\\": \"");
    let lines = |output, text: &str| {
        let told = told(Dialect::None, OutputForm::Jsonl, output);
        assert!(told.ends_with(&format!("text {text}\n")), "{told}");
    };
    lines(b"{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"n\":3}\n{\"te", "\"two\"");
    lines(b"1\n2\n\n", "\"2\"");
}

/// Every type of the native dialect, and the last result wins, wherever its `type` stands.
#[test]
fn native_lines() {
    native(
        r#"{"type":"progress","text":"looking"}
        {"type":"tool","callId":"c1","name":"grep","input":{"q":"x"}}
        {"type":"tool","callId":"c1","output":"3 lines","isError":false}
        {"type":"message","text":"Found it.","model":"m1"}
        {"type":"usage","in":10,"out":2,"costMicros":7}
        {"text":"first","type":"result","status":"ok"}
        {"text":"Found it.","status":"ok","sessionId":"s1","usage":{"in":12,"out":4,"cacheRead":3,"model":"m2"},"type":"result"}"#,
        r#"
        ~ "looking"
        ~ "grep"
        + "Found it.\n"
        @ s1
        assistant opens=c1 [{"type":"tool_use","callId":"c1","name":"grep","input":{"q":"x"}}]
        toolResult call=c1 tool=grep error=false "3 lines"
        assistant model=m1 "Found it."
        text "Found it."
        tokens in 12 out 4 read 3
        cost 7
        model m2
        session s1"#,
    );
    native(r#"{"type":"result","status":"error","error":"no key"}"#, r#"error "no key""#);
    native(
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
        r#"
        + "a\nb\n"
        assistant [{"type":"text","text":"a"},{"type":"text","text":"b"}]
        text "a\nb""#,
    );
}

/// Lines that are not of the dialect are the reply when no result has one, and the only reply when none is.
#[test]
fn native_among_others() {
    native(
        "hello\n{\"type\":\"usage\",\"in\":1}\nworld\n{\"type\":\"brand_new\"}\n{\"type\":3}\n",
        r#"
        ~ "hello"
        ~ "world"
        ~ "{\"type\":3}"
        assistant "hello\nworld\n{\"type\":3}"
        text "hello\nworld\n{\"type\":3}"
        tokens in 1 out 0"#,
    );
    native(
        "just text\n{\"type\":\"resu",
        r#"
        ~ "just text"
        ~ "{\"type\":\"resu"
        assistant "just text\n{\"type\":\"resu"
        text "just text\n{\"type\":\"resu""#,
    );
}

/// Numbers beyond any type, keys that stand twice, nesting and half pairs: the log takes every turn that is told.
#[test]
fn odd_values_can_be_stored() {
    let deep = "[".repeat(400) + &"]".repeat(400);
    let output = format!(
        r#"{{"type":"message","content":[{{"type":"text","text":"x","n":1e999,"text":"y"}}]}}
        {{"type":"tool","callId":"c","name":"t","input":{deep}}}
        {{"type":"message","text":"half \ud83d and \ud83d\ude00"}}
        {{"type":"usage","in":123456789012345678901234567890,"out":-1}}"#
    );
    let mut reader = Reader::new(Dialect::Native, OutputForm::Jsonl);
    output.lines().for_each(|line| drop(reader.line(line.as_bytes())));
    let reply = reader.finish();
    assert_eq!(reply.turns.len(), 3);
    for turn in &reply.turns {
        let data = format!("{{\"content\":{}}}", turn.content.as_str());
        annals_engine::format::Payload::from_json(&data).unwrap();
    }
    assert_eq!(reply.text.as_deref(), Some("half \u{fffd} and 😀"));
    assert_eq!(reply.tokens.unwrap().r#in, u64::MAX);
}

mod recorded;
