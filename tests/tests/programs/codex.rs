//! Codex.

use annals_engine::session::event::{OutputStream, Role};
use annals_tests::model_api::{ModelApi, Reply};
use annals_tools::run::Job;
use annals_tools::run::dialect::Counted;
use serde_json::json;

use super::agent::{Agent, gone};
use super::{tokens, turns};

/// Goal: a turn and the next one of the same thread; what both count is the thread. Method: the second run goes on with
/// the id that the first one told, and the model is shown what it said before.
#[test]
fn a_thread_goes_on() {
    let api = ModelApi::start([Reply::text("Blue."), Reply::text("I said blue.")]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let first = codex.ask("Which colour?");
    assert_eq!(first.told(), r#"ok - 0 "Blue.""#, "{first:?}");
    assert_eq!(turns(&first), [(Role::Assistant, "Blue.".to_owned())]);
    assert_eq!(first.heard_on(OutputStream::Stdout), "Blue.\n");
    let reply = first.outcome.reply;
    assert_eq!(reply.tokens, Some(tokens(90, 20, 10)));

    let second = codex.resume(reply.agent_session_id.as_ref().unwrap(), "What did you say?");
    assert_eq!(second.told(), r#"ok - 0 "I said blue.""#, "{second:?}");
    let mut again = second.outcome.reply;
    assert_eq!(again.agent_session_id, reply.agent_session_id);
    assert_eq!((again.counted, &again.tokens), (Counted::AgentSession, &Some(tokens(180, 40, 20))));
    again.beyond(&reply.tokens.unwrap());
    assert_eq!((again.counted, &again.tokens), (Counted::Run, &Some(tokens(90, 20, 10))));
    let asked = api.asked();
    assert_eq!(asked.len(), 2);
    for said in ["Which colour?", "Blue.", "What did you say?"] {
        assert!(asked[1].holds(said), "{said}");
    }
}

/// Goal: a model and a thinking level that are asked for are what the program works with. Method: what the interface is
/// asked for.
#[test]
fn a_model_is_asked_for() {
    let api = ModelApi::start([Reply::text("Yes.")]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let ran = codex.run(Job {
        prompt: "Is it you?".to_owned(),
        model: Some("another".to_owned()),
        thinking: Some("low".to_owned()),
        ..codex.job()
    });
    assert_eq!(ran.told(), r#"ok - 0 "Yes.""#, "{ran:?}");
    let asked = &api.asked()[0].body;
    assert_eq!(asked["model"], "another");
}

/// Goal: commands and what they print are turns that belong to each other. Method: one that succeeds and one that
/// fails; the shell really runs, and the model is shown its output.
#[test]
fn tools_are_called() {
    let script = [
        Reply::text("Looking.").and_call("exec_command", json!({"cmd": "echo $((20 + 3))"})),
        Reply::call("exec_command", json!({"cmd": "exit 7"})),
        Reply::text("It is 23."),
    ];
    let api = ModelApi::start(script).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let ran = codex.ask("How much is it?");
    assert_eq!(ran.told(), r#"ok - 0 "It is 23.""#, "{ran:?}");
    let turns = &ran.outcome.reply.turns;
    let roles: Vec<_> = turns.iter().map(|turn| turn.role).collect();
    let (said, answered) = (Role::Assistant, Role::ToolResult);
    assert_eq!(roles, [said, said, answered, said, answered, said]);
    for at in [1, 3] {
        let call = turns[at + 1].call_id.clone().unwrap();
        assert!(call.starts_with("run-1:"), "{call}");
        assert_eq!(turns[at].calls, [call]);
    }
    assert_eq!((turns[2].is_error, turns[4].is_error), (Some(false), Some(true)));
    assert_eq!(turns[2].content.plain_text(), "23\n");
    assert!(api.asked()[1].holds("23"));
}

/// Goal: an error on the way is progress, and giving up is an error, not a reply. Method: an interface that fails until
/// the program says that it tries again, then a refusal.
#[test]
fn the_interface_fails() {
    let script = [
        Reply::error(500, "server_error", "on fire"),
        Reply::error(500, "server_error", "on fire"),
        Reply::text("Here again."),
        Reply::error(400, "invalid_request_error", "no such thing"),
    ];
    let api = ModelApi::start(script).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let ran = codex.ask("Hello?");
    assert_eq!(ran.told(), r#"ok - 0 "Here again.""#, "{ran:?}");
    assert!(ran.heard_on(OutputStream::Progress).contains("Reconnecting... 1/1"), "{ran:?}");

    let ran = codex.ask("Hello?");
    assert_eq!(ran.told(), "error exit 1 -", "{ran:?}");
    assert!(ran.detail().contains("no such thing"), "{ran:?}");
}

/// Goal: a thread that does not exist is not taken for the agent's. Method: an id that nobody gave.
#[test]
fn no_such_thread() {
    let api = ModelApi::start([]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let ran = codex.resume("00000000-0000-7000-8000-000000000000", "Hello?");
    assert_eq!(ran.told(), "error exit 1 -", "{ran:?}");
    assert_eq!(ran.outcome.reply.agent_session_id, None);
    let stderr = ran.outcome.stderr_tail.as_deref().unwrap_or_default();
    assert!(stderr.contains("no rollout found"), "{ran:?}");
    assert_eq!(api.asked().len(), 0);
}

/// Goal: a program that is stopped at work ends, and so does what it started. Method: a command that says its pid and
/// would run for an hour.
#[test]
fn stopped_at_work() {
    let command = json!({"cmd": "echo $$ > pid; exec sleep 3600", "yield_time_ms": 30_000});
    let api = ModelApi::start([Reply::text("Waiting.").and_call("exec_command", command)]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let (ran, pid) = codex.stopped_when_written("Wait.", "pid");
    assert!(ran.told().starts_with("killed kill "), "{ran:?}");
    assert!(gone(&pid), "{pid}");
    assert_eq!(turns(&ran)[0], (Role::Assistant, "Waiting.".to_owned()));
    assert!(ran.outcome.reply.agent_session_id.is_some());
}
