//! Sessions of Hermes from before they moved to SQLite.

use super::*;

/// Goal: a session is told in its order, with its calls and results joined. Method: one of every kind of message.
#[test]
fn one_session() {
    let text = r#"{
  "session_id": "h1",
  "model": "m",
  "platform": "telegram",
  "session_start": "2026-03-01T09:00:00",
  "message_count": 5,
  "system_prompt": "You are Hermes.",
  "messages": [
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": "I look.", "reasoning": "r", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"pwd\"}"}}]},
    {"role": "tool", "content": "/w", "tool_call_id": "c1", "finish_reason": "error"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "session_meta"}
  ]
}
"#;
    let tree = MemoryTree::new([("h/session_h1.json", text)]);
    let world = World::new();
    let report = world.import(&tree, "h");
    let at = text.find("{\"role\": \"assistant\", \"content\": null").unwrap();
    let bytes = text[at..].find("},\n").unwrap() + 1;
    assert_eq!(damages(&report), [format!("unanswered_call session_h1.json {at}+{bytes}/1")]);
    assert_eq!(
        world.stream("hermes:h1"),
        [
            "opened h1",
            r#"user external "Where?""#,
            r#"assistant internal [{"text":"I look.","type":"text"},{"arguments":"{\"command\":\"pwd\"}","id":"c1","name":"shell","type":"toolCall"}]"#,
            r#"toolResult internal "/w""#,
            r#"assistant internal [{"arguments":"{}","id":"c2","name":"ls","type":"toolCall"}]"#,
            "x.hermes.session_meta",
        ]
    );
    let records = world.records();
    let data = |word: &str| -> Value {
        let record = records.iter().find(|r| r.data.as_str().contains(word)).unwrap();
        serde_json::from_str(record.data.as_str()).unwrap()
    };
    let result = data("\"callId\":\"c1\"");
    assert_eq!((&result["toolName"], &result["isError"]), (&"shell".into(), &true.into()));
    assert_eq!(data("You are Hermes.")["at"], "2026-03-01T09:00:00.000000Z");
    assert_eq!(data("You are Hermes.")["source"]["rest"]["system_prompt"], "You are Hermes.");
    assert_eq!(world.import(&tree, "h").totals().new, 0);
}

/// Goal: a file that was written anew with more in it brings what is new. Method: a session of one message, then of
/// three, two of which say the same.
#[test]
fn written_anew() {
    let file = |messages: &[&str]| {
        let messages: Vec<String> = messages
            .iter()
            .map(|text| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"))
            .collect();
        let text = format!(
            "{{\"session_id\":\"h1\",\"platform\":\"cli\",\"message_count\":{},\"messages\":[{}]}}",
            messages.len(),
            messages.join(", ")
        );
        MemoryTree::new([("h/session_h1.json", text)])
    };
    let world = World::new();
    world.import(&file(&["yes"]), "h");
    let report = world.import(&file(&["yes", "no", "yes"]), "h");
    assert_eq!(report.totals().new, 2);
    let said = |text: &str| format!("user external \"{text}\"");
    assert_eq!(world.stream("hermes:h1")[1..], ["yes", "no", "yes"].map(said));
}
