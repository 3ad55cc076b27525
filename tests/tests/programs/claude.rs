//! Claude Code.

use annals_engine::session::event::{Role, Tokens};
use annals_tests::model_api::{ModelApi, Reply, Usage};
use annals_tools::run::dialect::Told;
use serde_json::json;

use super::agent::Agent;
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
    assert_eq!((first.reply.text.as_deref(), first.exit), (Some("Blue."), Some(0)), "{first:?}");
    assert_eq!(turns(&first), [(Role::Assistant, "Blue.".to_owned())]);
    assert_eq!(first.reply.tokens, Some(counts(90, 20, 10)));
    assert!(first.reply.cost_micros > Some(0));
    assert!(first.reply.model.as_ref().unwrap().starts_with("claude-"));
    let id = first.reply.agent_session_id.clone().unwrap();
    let expect = [Told::AgentSession(id.clone()), Told::Text("Blue.".to_owned())];
    assert_eq!(first.told, expect);

    let second = claude.resume(&id, "What did you say?");
    assert_eq!(second.reply.text.as_deref(), Some("I said blue."), "{second:?}");
    assert_eq!(second.reply.agent_session_id, Some(id));
    assert_eq!(second.reply.tokens, first.reply.tokens);
    assert_eq!(second.reply.cost_micros, first.reply.cost_micros);
    let asked = api.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].holds("Which colour?") && asked[1].holds("Blue."));
    assert!(asked[1].holds("What did you say?"));
}

/// Goal: calls of tools and what they answer are turns that belong to each other. Method: two calls in one message, of
/// which one fails; the shell really runs, and the model is shown its output.
#[test]
fn tools_are_called() {
    let script = [
        Reply::text("Looking.")
            .and_call("Bash", json!({"command": "echo $((20 + 3))", "description": "count"}))
            .and_call("Bash", json!({"command": "exit 7", "description": "fail"})),
        Reply::text("It is 23.").using(Usage { input: 5, output: 6, cached: 7 }),
    ];
    let api = ModelApi::start(script).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let ran = claude.with(&["--allowedTools=Bash"]).ask("How much is it?");
    assert_eq!(ran.reply.text.as_deref(), Some("It is 23."), "{ran:?}");
    assert_eq!(ran.reply.tokens, Some(counts(95, 26, 17)));
    let turns = &ran.reply.turns;
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
        assert_eq!(answer.content.plain_text().contains("23"), counted);
    }
    assert!(ran.told.contains(&Told::Progress("Bash".to_owned())));
    assert!(api.asked()[1].holds("23"));
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
    assert_eq!((ran.reply.text.as_deref(), ran.exit), (Some("Here again."), Some(0)), "{ran:?}");
    let retried = |told: &Told| matches!(told, Told::Progress(text) if text.contains("529"));
    assert!(ran.told.iter().any(retried), "{ran:?}");
    assert_eq!(ran.reply.error, None);

    let ran = claude.ask("Hello?");
    assert_eq!((ran.reply.text.as_deref(), ran.exit), (None, Some(1)), "{ran:?}");
    assert!(ran.reply.error.as_ref().unwrap().contains("no such thing"), "{ran:?}");
    assert_eq!(turns(&ran), []);
}

/// Goal: a session that does not exist is not taken for the agent's. Method: an id that nobody gave.
#[test]
fn no_such_session() {
    let api = ModelApi::start([]).unwrap();
    let Some(claude) = Agent::claude(&api) else { return };
    let ran = claude.resume("00000000-0000-4000-8000-000000000000", "Hello?");
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert_eq!((ran.reply.text, ran.reply.agent_session_id), (None, None));
    assert!(ran.reply.error.unwrap().contains("No conversation found"));
    assert_eq!(api.asked().len(), 0);
}
