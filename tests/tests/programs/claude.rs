//! Claude Code.

use annals_engine::session::event::{OutputStream, Role, Tokens};
use annals_tests::model_api::{ModelApi, Reply, Usage};
use annals_tools::run::Job;
use serde_json::json;

use super::agent::{Agent, gone};
use super::{tokens, turns};

fn counts(r#in: u64, out: u64, cached: u64) -> Tokens {
    Tokens { cache_write: Some(0), ..tokens(r#in, out, cached) }
}

/// Goal: a turn and the next one of the same session; each tells its own tokens and its own cost. Method: the second
/// run goes on with the id that the first one told, and the model is shown what it said before.
#[test]
fn a_session_goes_on() {
    let api = ModelApi::start([Reply::text("Blue."), Reply::text("I said blue.")]).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let first = claude.ask("Which colour?");
    assert_eq!(first.told(), r#"ok - 0 "Blue.""#, "{first:?}");
    assert_eq!(turns(&first), [(Role::Assistant, "Blue.".to_owned())]);
    assert_eq!(first.heard_on(OutputStream::Stdout), "Blue.\n");
    let reply = &first.outcome.reply;
    assert_eq!(reply.tokens, Some(counts(90, 20, 10)));
    assert!(reply.cost_micros > Some(0));
    assert!(reply.model.as_ref().unwrap().starts_with("claude-"));

    let second = claude.resume(reply.agent_session_id.as_ref().unwrap(), "What did you say?");
    assert_eq!(second.told(), r#"ok - 0 "I said blue.""#, "{second:?}");
    let again = &second.outcome.reply;
    assert_eq!(again.agent_session_id, reply.agent_session_id);
    assert_eq!((&again.tokens, again.cost_micros), (&reply.tokens, reply.cost_micros));
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
    let Some(claude) = Agent::claude(&api) else { return };
    let ran = claude.run(Job {
        prompt: "Is it you?".to_owned(),
        model: Some("claude-sonnet-4-5".to_owned()),
        thinking: Some("low".to_owned()),
        ..claude.job()
    });
    assert_eq!(ran.told(), r#"ok - 0 "Yes.""#, "{ran:?}");
    assert_eq!(api.asked()[0].body["model"], "claude-sonnet-4-5");
    assert_eq!(ran.outcome.reply.model.as_deref(), Some("claude-sonnet-4-5"));
}

/// Goal: calls of tools and what they answer are turns that belong to each other. Method: two calls in one message, of
/// which one fails; the shell really runs, in the agent's folder, and the model is shown its output.
#[test]
fn tools_are_called() {
    let script = [
        Reply::text("Looking.")
            .and_call("Bash", json!({"command": "ls; echo $((20 + 3))", "description": "count"}))
            .and_call("Bash", json!({"command": "exit 7", "description": "fail"})),
        Reply::text("It is 23.").using(Usage { input: 5, output: 6, cached: 7 }),
    ];
    let api = ModelApi::start(script).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    std::fs::write(claude.work().join("a-file.txt"), "").unwrap();
    let ran = claude.with("--allowedTools=Bash").ask("How much is it?");
    assert_eq!(ran.told(), r#"ok - 0 "It is 23.""#, "{ran:?}");
    assert_eq!(ran.outcome.reply.tokens, Some(counts(95, 26, 17)));
    let turns = &ran.outcome.reply.turns;
    assert_eq!(turns.len(), 4, "{turns:?}");
    let [opened, answers @ .., last] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((opened.role, last.role), (Role::Assistant, Role::Assistant));
    let mut calls: Vec<_> = answers.iter().map(|turn| turn.call_id.clone().unwrap()).collect();
    calls.sort();
    assert_eq!(calls, opened.calls);
    for answer in answers {
        let counted = answer.call_id.as_ref() == opened.calls.first();
        assert_eq!(answer.role, Role::ToolResult);
        assert_eq!(answer.tool_name.as_deref(), Some("Bash"));
        assert_eq!(answer.is_error, Some(!counted));
        assert_eq!(answer.content.plain_text() == "a-file.txt\n23", counted, "{answer:?}");
    }
    assert!(ran.heard_on(OutputStream::Progress).contains("Bash\n"));
    assert!(api.asked()[1].holds("a-file.txt"));
}

/// Goal: a retry is progress, and giving up is an error in the program's words, not a reply. Method: an overloaded
/// interface once, then a refusal.
#[test]
fn the_interface_fails() {
    let script = [
        Reply::error(529, "overloaded_error", "Overloaded"),
        Reply::text("Here again."),
        Reply::error(400, "invalid_request_error", "no such thing"),
    ];
    let api = ModelApi::start(script).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let ran = claude.ask("Hello?");
    assert_eq!(ran.told(), r#"ok - 0 "Here again.""#, "{ran:?}");
    assert!(ran.heard_on(OutputStream::Progress).contains("retry 1: overloaded 529\n"), "{ran:?}");

    let ran = claude.ask("Hello?");
    assert_eq!(ran.told(), "error exit 1 -", "{ran:?}");
    assert!(ran.detail().contains("no such thing"), "{ran:?}");
    assert_eq!(turns(&ran), []);
}

/// Goal: a session that does not exist is not taken for the agent's. Method: an id that nobody gave.
#[test]
fn no_such_session() {
    let api = ModelApi::start([]).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let ran = claude.resume("00000000-0000-4000-8000-000000000000", "Hello?");
    assert_eq!(ran.told(), "error exit 1 -", "{ran:?}");
    assert_eq!(ran.outcome.reply.agent_session_id, None);
    assert!(ran.detail().contains("No conversation found"), "{ran:?}");
    assert_eq!(api.asked().len(), 0);
}

/// Goal: a program that is stopped at work ends, and so does what it started. Method: a command that says its pid and
/// would run for an hour.
#[test]
fn stopped_at_work() {
    let command = json!({"command": "echo $$ > pid; exec sleep 3600", "description": "wait"});
    let api = ModelApi::start([Reply::text("Waiting.").and_call("Bash", command)]).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let claude = claude.with("--allowedTools=Bash");
    let (ran, pid) = claude.stopped_when_written("Wait.", "pid");
    assert!(ran.told().starts_with("killed kill "), "{ran:?}");
    assert!(gone(&pid), "{pid}");
    assert_eq!(turns(&ran)[0], (Role::Assistant, "Waiting.\n[tool_use Bash]".to_owned()));
    assert!(ran.outcome.reply.agent_session_id.is_some());
}
