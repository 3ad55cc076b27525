//! Rollouts of Codex.

use super::*;
use crate::session::usage::Usage;

const HEAD: &str = r#"{"timestamp":"2026-03-01T09:00:00.000Z","type":"session_meta","payload":{"id":"t1","timestamp":"2026-03-01T09:00:00.000Z","cwd":"/w","cli_version":"0.149.0"}}"#;

/// A record with this type and payload, written so many seconds after nine.
fn row(second: u32, kind: &str, payload: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-03-01T09:00:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}"
    )
}

fn message(second: u32, role: &str, text: &str) -> String {
    let block = if role == "assistant" { "output_text" } else { "input_text" };
    let content = format!("[{{\"type\":\"{block}\",\"text\":\"{text}\"}}]");
    let payload = format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":{content}}}");
    row(second, "response_item", &payload)
}

fn count(second: u32, input: u64, cached: u64, out: u64) -> String {
    let usage = format!(
        "{{\"input_tokens\":{input},\"cached_input_tokens\":{cached},\"output_tokens\":{out}}}"
    );
    let info = format!("{{\"total_token_usage\":{usage},\"last_token_usage\":{usage}}}");
    row(second, "event_msg", &format!("{{\"type\":\"token_count\",\"info\":{info}}}"))
}

fn rollout(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn usage(world: &World) -> Usage {
    Folded::<Usage>::of(&world.store, View::Durable).unwrap().state().clone()
}

/// Goal: a session is told once, whatever its program tells twice; what one answer consists of is one message; usage
/// is the last sum. Method: a session with every kind of item, imported twice.
#[test]
fn one_session() {
    let call = r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}"#;
    let answer = r#"{"type":"function_call_output","call_id":"c1","output":"a.txt"}"#;
    let thought = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Look."}],"encrypted_content":"x"}"#;
    let lines = [
        HEAD.to_owned(),
        message(1, "developer", "Rules."),
        message(1, "user", "<environment_context>\\n</environment_context>"),
        message(2, "user", "List the files"),
        row(2, "event_msg", r#"{"type":"user_message","message":"List the files"}"#),
        row(2, "turn_context", r#"{"cwd":"/w","model":"gpt-5.2","effort":"high"}"#),
        row(3, "response_item", thought),
        row(3, "event_msg", r#"{"type":"agent_reasoning","text":"Look."}"#),
        row(3, "response_item", call),
        count(4, 100, 40, 10),
        row(5, "response_item", answer),
        message(6, "assistant", "One file."),
        row(6, "event_msg", r#"{"type":"agent_message","message":"One file."}"#),
        count(7, 250, 140, 15),
        count(7, 250, 140, 15),
        row(8, "event_msg", r#"{"type":"thread_name_updated","thread_name":"Files"}"#),
        row(9, "world_state", r#"{"full":true}"#),
        row(9, "compacted", r#"{"message":"They looked."}"#),
    ];
    let tree = MemoryTree::new([("s/rollout-1.jsonl", rollout(&lines))]);
    let world = World::new();
    let report = world.import(&tree, "s");
    assert_eq!(damages(&report), [""; 0]);
    let totals = report.totals();
    assert_eq!((totals.records, totals.passed, totals.sessions), (18, 3, 1));
    assert_eq!(
        world.stream("codex:t1"),
        [
            "opened t1",
            r#"system internal [{"type":"input_text","text":"Rules."}]"#,
            r#"user internal [{"type":"input_text","text":"<environment_context>\n</environment_context>"}]"#,
            r#"user external [{"type":"input_text","text":"List the files"}]"#,
            r#"patched {"model":"gpt-5.2","thinkingLevel":"high"}"#,
            &format!("assistant internal [{}]", sorted(thought)),
            &format!("assistant internal [{}]", sorted(call)),
            "assistant internal []",
            r#"toolResult internal "a.txt""#,
            r#"assistant internal [{"text":"One file.","type":"output_text"}]"#,
            "assistant internal []",
            "x.codex.event_msg.token_count",
            r#"patched {"displayName":"Files"}"#,
            "x.codex.world_state",
            r#"system internal "They looked.""#,
        ]
        .map(normal)
    );
    let sum = usage(&world).total();
    assert_eq!((sum.tokens_in(), sum.cache_read(), sum.tokens_out()), (110, 140, 15));
    let sessions = world.sessions();
    let row = sessions.row(&crate::id::StreamName::new("codex:t1").unwrap()).unwrap();
    assert_eq!((row.turns, row.model.as_deref()), (4, Some("gpt-5.2")), "{row:?}");
    let data: Vec<Value> =
        world.records().iter().map(|r| serde_json::from_str(r.data.as_str()).unwrap()).collect();
    assert_eq!(data.iter().find(|d| d["callId"] == "c1").unwrap()["toolName"], "shell");
    let again = world.import(&tree, "s").totals();
    assert_eq!((again.new, again.records), (0, 18));
}

/// JSON with its members sorted, as the tests print it.
fn sorted(json: &str) -> String {
    serde_json::from_str::<Value>(json).unwrap().to_string()
}

/// A told turn with its content sorted.
fn normal(told: &str) -> String {
    let at = told.find(['[', '{']);
    let json = at.and_then(|at| Some((at, serde_json::from_str::<Value>(told.get(at..)?).ok()?)));
    json.map_or_else(|| told.to_owned(), |(at, json)| format!("{}{json}", &told[..at]))
}

/// Goal: an agent's message that no item repeats is not lost, and not doubled by one that follows. Method: the message
/// before its item, and one without.
#[test]
fn told_before_or_alone() {
    let lines = [
        HEAD.to_owned(),
        row(1, "event_msg", r#"{"type":"agent_message","message":"One."}"#),
        message(2, "assistant", "One."),
        row(3, "event_msg", r#"{"type":"agent_message","message":"Two."}"#),
    ];
    let world = World::new();
    world.import(&MemoryTree::new([("s/rollout-1.jsonl", rollout(&lines))]), "s");
    let kept = "x.codex.event_msg.agent_message";
    let said = normal(r#"assistant internal [{"type":"output_text","text":"One."}]"#);
    assert_eq!(world.stream("codex:t1"), ["opened t1", kept, &said, kept]);
}

/// Goal: sub-agents are children with a run that ends as they ended; a fork has the turns of the session it was forked
/// from and not its usage; archived sessions are archived. Method: a family of four rollouts, the child's file before
/// its parent's.
#[test]
fn families() {
    let head = |more: &str| {
        row(1, "session_meta", &format!("{{{more},\"timestamp\":\"2026-03-01T09:00:01.000Z\"}}"))
    };
    let child = head(
        r#""id":"t2","source":{"subagent":{"thread_spawn":{"parent_thread_id":"t1","depth":1,"agent_nickname":"Ada","agent_role":"worker"}}}"#,
    );
    let parent = [
        HEAD.to_owned(),
        message(1, "user", "Delegate"),
        row(
            2,
            "event_msg",
            r#"{"type":"collab_agent_spawn_end","call_id":"c","sender_thread_id":"t1","new_thread_id":"t2","prompt":"Dig"}"#,
        ),
        message(3, "assistant", "Done."),
        count(4, 100, 0, 10),
    ];
    let mut fork = vec![head(r#""id":"t3","forked_from_id":"t1""#)];
    fork.extend(parent.iter().map(|line| line.replacen("09:00:", "10:00:", 1)));
    fork.push(message(9, "user", "And then?").replacen("09:00:", "10:00:", 1));
    fork.push(count(10, 150, 0, 15).replacen("09:00:", "10:00:", 1));
    let tree = MemoryTree::new([
        (
            "c/sessions/2026/03/01/rollout-a.jsonl",
            rollout(&[
                child,
                message(1, "user", "<environment_context></environment_context>"),
                message(2, "user", "Dig"),
                message(3, "assistant", "Dug."),
                row(
                    4,
                    "event_msg",
                    r#"{"type":"task_complete","turn_id":"x","last_agent_message":"Dug."}"#,
                ),
            ]),
        ),
        ("c/sessions/2026/03/01/rollout-b.jsonl", rollout(&parent)),
        ("c/sessions/2026/03/01/rollout-c.jsonl", rollout(&fork)),
        (
            "c/archived_sessions/rollout-d.jsonl",
            rollout(&[head(r#""id":"t4""#), message(2, "user", "Old")]),
        ),
    ]);
    let world = World::new();
    let report = world.import(&tree, "c");
    let key = "agent:codex:subagent:t2";
    assert_eq!(
        (report.totals().sessions, report.totals().runs, report.totals().unresolved),
        (4, 1, 0)
    );
    assert!(world.stream("codex:t1").contains(&format!("spawn.accepted {key}")));
    assert_eq!(
        world.stream("run:t2"),
        [format!("requested {key} of codex:t1"), "finished ok -".to_owned()]
    );
    let told = world.stream(key);
    assert_eq!(told[2], normal(r#"user inter_session [{"type":"input_text","text":"Dig"}]"#));
    let sessions = world.sessions();
    let row = |key: &str| sessions.row(&crate::id::StreamName::new(key).unwrap()).unwrap();
    assert_eq!(row(key).parent_key.as_deref(), Some("codex:t1"));
    assert_eq!(row("codex:t3").parent_key.as_deref(), Some("codex:t1"));
    assert_eq!((row("codex:t1").total_tokens, row("codex:t3").total_tokens), (110, 55));
    assert_eq!(row("codex:t3").turns, 3);
    assert_eq!(damages(&report), ["replayed_fork sessions/2026/03/01/rollout-c.jsonl 146+926/5"]);
    assert_eq!(world.stream("codex:t4")[2], "archived t4 manual");
    assert_eq!(world.import(&tree, "c").totals().new, 0);
}

/// Goal: rollouts of the first versions, whose records are payloads alone, are read. Method: one of them.
#[test]
fn first_versions() {
    let text = concat!(
        "{\"id\":\"old\",\"timestamp\":\"2025-06-01T09:00:00Z\",\"instructions\":null,\"git\":{}}\n",
        "{\"record_type\":\"state\"}\n",
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Hi\"}]}\n",
        "{\"type\":\"function_call\",\"id\":\"f\",\"name\":\"shell\",\"arguments\":\"{}\",\"call_id\":\"c\"}\n",
        "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"{}\"}\n",
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Ho\"}]}\n",
    );
    let world = World::new();
    let report = world.import(&MemoryTree::new([("s/rollout-2025-old.jsonl", text)]), "s");
    assert_eq!(damages(&report), [""; 0]);
    let told = world.stream("codex:old");
    assert_eq!(told.len(), 6);
    assert_eq!(told[1], "x.codex.record");
    assert_eq!(told[4], r#"toolResult internal "{}""#);
}
