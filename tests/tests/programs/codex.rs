//! Codex.

use annals_engine::session::event::Role;
use annals_tests::model_api::{ModelApi, Reply};
use annals_tools::run::dialect::{Counted, Told};
use serde_json::json;

use super::agent::Agent;
use super::{tokens, turns};

/// Goal: a turn and the next one of the same thread; what both count is the thread. Method: the second run goes on with
/// the id that the first one told, and the model is shown what it said before.
#[test]
fn a_thread_goes_on() {
    let api = ModelApi::start([Reply::text("Blue."), Reply::text("I said blue.")]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let first = codex.ask("Which colour?");
    assert_eq!((first.reply.text.as_deref(), first.exit), (Some("Blue."), Some(0)), "{first:?}");
    assert_eq!(turns(&first), [(Role::Assistant, "Blue.".to_owned())]);
    assert_eq!(first.reply.tokens, Some(tokens(90, 20, 10)));
    let id = first.reply.agent_session_id.clone().unwrap();
    assert!(first.told.contains(&Told::AgentSession(id.clone())));

    let mut second = codex.resume(&id, "What did you say?");
    assert_eq!(second.reply.text.as_deref(), Some("I said blue."), "{second:?}");
    assert_eq!(second.reply.agent_session_id, Some(id));
    assert_eq!(second.reply.counted, Counted::AgentSession);
    assert_eq!(second.reply.tokens, Some(tokens(180, 40, 20)));
    second.reply.beyond(&first.reply.tokens.unwrap());
    assert_eq!(second.reply.tokens, Some(tokens(90, 20, 10)));
    let asked = api.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].holds("Which colour?") && asked[1].holds("Blue."));
    assert!(asked[1].holds("What did you say?"));
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
    assert_eq!(ran.reply.text.as_deref(), Some("It is 23."), "{ran:?}");
    let roles: Vec<_> = ran.reply.turns.iter().map(|turn| turn.role).collect();
    let (said, answered) = (Role::Assistant, Role::ToolResult);
    assert_eq!(roles, [said, said, answered, said, answered, said]);
    let turns = &ran.reply.turns;
    assert_eq!(turns[1].calls, [turns[2].call_id.clone().unwrap()]);
    assert_eq!(turns[3].calls, [turns[4].call_id.clone().unwrap()]);
    assert_eq!((turns[2].is_error, turns[4].is_error), (Some(false), Some(true)));
    assert_eq!(turns[2].content.plain_text(), "23\n");
    assert!(api.asked()[1].holds("23"));
}

/// Goal: an error on the way is progress, and giving up is an error, not a reply. Method: an interface that fails once,
/// then a refusal.
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
    assert_eq!((ran.reply.text.as_deref(), ran.exit), (Some("Here again."), Some(0)), "{ran:?}");
    let tried = |told: &Told| matches!(told, Told::Progress(text) if text.starts_with("Reconnect"));
    assert!(ran.told.iter().any(tried), "{ran:?}");
    assert_eq!(ran.reply.error, None);

    let ran = codex.ask("Hello?");
    assert_eq!((ran.reply.text.as_deref(), ran.exit), (None, Some(1)), "{ran:?}");
    assert!(ran.reply.error.as_ref().unwrap().contains("no such thing"), "{ran:?}");
}

/// Goal: a thread that does not exist is not taken for the agent's. Method: an id that nobody gave.
#[test]
fn no_such_thread() {
    let api = ModelApi::start([]).unwrap();
    let Some(codex) = Agent::codex(&api) else { return };
    let ran = codex.resume("00000000-0000-7000-8000-000000000000", "Hello?");
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert_eq!((ran.reply.text, ran.reply.agent_session_id), (None, None));
    assert!(ran.stderr.contains("no rollout found"), "{}", ran.stderr);
    assert_eq!(api.asked().len(), 0);
}
