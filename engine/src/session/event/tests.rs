//! The schema against fixtures written by hand.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::*;
use crate::clock::Timestamp;

/// For each type two lines: every field there is, and only those that must be.
const FIXTURES: &str = include_str!("../../../fixtures/events/schema-1.ndjson");

#[derive(Deserialize)]
struct Fixture<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

fn fixtures() -> Vec<(EventType, Payload)> {
    FIXTURES
        .lines()
        .map(|line| {
            let fixture: Fixture<'_> = serde_json::from_str(line).unwrap();
            let payload = Payload::from_json(fixture.data.get()).unwrap();
            assert_eq!(payload.as_str(), fixture.data.get(), "the fixture is not minified");
            (EventType::new(fixture.kind).unwrap(), payload)
        })
        .collect()
}

/// Goal: what is stored is exactly the schema, field for field and in its order. Method: each fixture is read and
/// written again, and the bytes must be the same; a field that the code does not know would be missing.
#[test]
fn payloads_round_trip_byte_for_byte() {
    for (kind, payload) in fixtures() {
        let event = Event::parse(&kind, &payload).unwrap();
        assert_eq!(event.type_name(), kind.as_str());
        assert!(!matches!(event, Event::Other(..)), "{kind} is not known");
        assert_eq!(event.payload().unwrap(), payload, "{kind}");
    }
}

/// Goal: no type and no field goes without a fixture. Method: the fixtures come in pairs in the order of the code's
/// types; the first of a pair leaves nothing out and the second leaves out everything that it may (a turn keeps its
/// content, which only a payload file may take from it).
#[test]
fn every_type_and_every_field_has_a_fixture() {
    let fixtures = fixtures();
    let (pairs, rest) = fixtures.as_chunks::<2>();
    assert!(rest.is_empty());
    let mut seen: Vec<&str> = Vec::new();
    for [full, minimal] in pairs {
        assert_eq!(full.0, minimal.0);
        seen.push(full.0.as_str());
        let full = format!("{:?}", Event::parse(&full.0, &full.1).unwrap());
        assert!(!full.contains("None") && !full.contains("[]"), "{full}");
        let minimal = format!("{:?}", Event::parse(&minimal.0, &minimal.1).unwrap());
        let optional = minimal.replace("content: Some(", "content: (");
        assert!(!optional.contains("Some("), "{minimal}");
    }
    let mut types = Event::TYPES.to_vec();
    types.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, types);
}

/// Goal: values made in code are written as the fixtures say. Method: a turn built field by field, against the text.
#[test]
fn a_turn_is_written_in_order() {
    let turn = Turn {
        at: Timestamp::from_text(b"2026-01-02T03:04:05.000006Z"),
        session_id: "s1".into(),
        role: Role::ToolResult,
        from: Ingress::InterSession,
        run_id: None,
        message_id: None,
        calls: vec![],
        call_id: Some("call_1".into()),
        tool_name: None,
        is_error: Some(true),
        silent: None,
        model: None,
        tokens: Some(Tokens { r#in: 1, out: 2, cache_read: None, cache_write: Some(3) }),
        cost_micros: None,
        provenance: None,
        source: None,
        content: Some(Json::of("a\u{2028}\"b").unwrap()),
    };
    let expect = concat!(
        r#"{"at":"2026-01-02T03:04:05.000006Z","sessionId":"s1","role":"toolResult","from":"inter_session","#,
        r#""callId":"call_1","isError":true,"tokens":{"in":1,"out":2,"cacheWrite":3},"#,
        "\"content\":\"a\u{2028}\\\"b\"}",
    );
    assert_eq!(Event::Turn(turn).payload().unwrap().as_str(), expect);
}

fn check(kind: &str, data: &str) -> Result<Event> {
    Event::parse(&EventType::new(kind).unwrap(), &Payload::from_json(data).unwrap())
}

/// Goal: a later program's log is readable. Method: an unknown type, an unknown version and an embedder's type keep
/// their payload; an unknown field in a known type is passed over.
#[test]
fn what_is_not_known_is_kept() {
    let data = r#"{"v":2,"sessionId":7,"new":[1,2]}"#;
    for kind in ["turn", "session.merged", "x.acme.note", "log.opened"] {
        let event = check(kind, data).unwrap();
        assert!(matches!(event, Event::Other(..)));
        assert_eq!(event.type_name(), kind);
        assert_eq!(event.payload().unwrap().as_str(), data);
    }
    let event =
        check("session.resumed", r#"{"sessionId":"a","previousSessionId":"b","by":{"x":1}}"#);
    assert!(matches!(event.unwrap(), Event::SessionResumed(e) if e.session_id == "a"));
}

/// Goal: a payload of the wrong shape is an error and no panic. Method: missing fields, wrong types, unknown words.
#[test]
fn wrong_shapes_are_errors() {
    for (kind, data) in [
        ("turn", "{}"),
        ("turn", r#"{"sessionId":1,"role":"user","from":"external","content":""}"#),
        ("turn", r#"{"sessionId":"s","role":"developer","from":"external","content":""}"#),
        ("run.finished", r#"{"runId":"r","status":"ok","runtimeMs":-1}"#),
        (
            "session.reset",
            r#"{"sessionId":"a","previousSessionId":"b","reason":"idle","effectiveAt":"yesterday"}"#,
        ),
    ] {
        assert!(check(kind, data).is_err(), "{kind} {data}");
    }
}

/// Goal: the cheap reader sees what the full one sees. Method: both on the turns of the fixtures.
#[test]
fn the_head_of_a_turn_agrees_with_the_turn() {
    for (kind, payload) in fixtures().iter().filter(|(kind, _)| kind.as_str() == "turn") {
        let Event::Turn(turn) = Event::parse(kind, payload).unwrap() else { panic!("not a turn") };
        let head = TurnHead::read(payload.as_str()).unwrap();
        assert_eq!(head.at, turn.at);
        assert_eq!(*head.session_id, *turn.session_id);
        assert_eq!((head.role, head.from), (turn.role, turn.from));
        assert_eq!(head.message_id.as_deref(), turn.message_id.as_deref());
        assert_eq!(head.calls.iter().map(|c| c.to_string()).collect::<Vec<_>>(), turn.calls);
        assert_eq!(head.call_id.as_deref(), turn.call_id.as_deref());
        assert_eq!(head.model.as_deref(), turn.model.as_deref());
        assert_eq!(head.tokens, turn.tokens);
        let source = |p: &Provenance| (p.source_session_key.clone(), p.source_channel.clone());
        let borrowed = head.provenance.as_ref().map(|p| {
            (
                p.source_session_key.as_deref().map(str::to_owned),
                p.source_channel.as_deref().map(str::to_owned),
            )
        });
        assert_eq!(borrowed, turn.provenance.as_ref().map(source));
    }
    assert!(TurnHead::read(r#"{"v":2,"sessionId":"s"}"#).is_none());
}

/// Goal: the reader of bytes and the parser never differ. Method: heads made of every choice of fields, in order and
/// out of it, with values that only the parser can read, cut and spoiled at every byte; where the parser finds a
/// turn, the reader finds the same one, and where it finds none, so does the reader.
#[test]
fn heads_read_by_bytes_are_heads_read_by_parsing() {
    let optional = [
        r#""runId":"r""#,
        r#""messageId":"m\u00e9""#,
        r#""calls":["a","b"]"#,
        r#""callId":"c","toolName":"t""#,
        r#""isError":true,"silent":"NO\nREPLY""#,
        r#""model":"é","tokens":{"in":1,"out":2,"cacheRead":3}"#,
        r#""tokens":{"out":2,"in":1,"later":0},"costMicros":7"#,
        r#""provenance":{"sourceSessionKey":"k","sender":"s","round":2}"#,
        r#""later":{"content":"no"}"#,
    ];
    let check = |text: &str| {
        let Ok(payload) = Payload::from_json(text) else { return false };
        let parsed: Option<TurnHead<'_>> = serde_json::from_str(payload.as_str()).ok();
        assert_eq!(TurnHead::read(payload.as_str()), parsed, "{text}");
        parsed.is_some()
    };
    let mut turns = 0;
    for choice in 0..1_u32 << optional.len() {
        let mut fields = vec![r#""sessionId":"s","role":"user","from":"external""#];
        fields.extend(
            optional.iter().enumerate().filter(|(n, _)| choice >> n & 1 == 1).map(|(_, f)| *f),
        );
        fields.push(r#""content":"x, \"role\":\"assistant\"""#);
        turns += u32::from(check(&format!("{{{}}}", fields.join(","))));
        fields.swap(1, 0);
        fields.reverse();
        turns += u32::from(check(&format!("{{{}}}", fields.join(","))));
    }
    assert!(turns > 700, "{turns}");
    for (_, payload) in fixtures().iter().filter(|(kind, _)| kind.as_str() == "turn") {
        for at in 0..payload.as_str().len() {
            for with in ["", "0", "\"", "\\", ",", "}", "x"] {
                let mut text = payload.as_str().as_bytes().to_vec();
                text.splice(at..=at, with.bytes());
                if let Ok(text) = String::from_utf8(text) {
                    check(&text);
                }
            }
        }
    }
}
