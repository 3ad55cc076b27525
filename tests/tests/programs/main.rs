//! Real agent programs, run as their configuration says, against a stand-in of their model's interface.
#![expect(clippy::expect_used, reason = "what is absent fails the test")]
#![expect(clippy::disallowed_methods, reason = "a test writes the settings of the program")]

mod agent;
mod claude;
mod codex;

use std::path::Path;

use annals_engine::session::content::plain;
use annals_engine::session::event::{Role, Tokens};
use annals_tools::run::dialect::{Dialect, OutputForm};
use annals_tools::run::spec::Input;

use agent::{CONFIGURATIONS, Ran, configured};

/// Each turn by its role, and what it says as text.
fn turns(ran: &Ran) -> Vec<(Role, String)> {
    let turns = ran.outcome.reply.turns.iter();
    turns.map(|turn| (turn.role, plain(&turn.content))).collect()
}

fn tokens(r#in: u64, out: u64, cached: u64) -> Tokens {
    Tokens { r#in, out, cache_read: Some(cached), cache_write: None }
}

/// Goal: the configurations that people are shown are ones. Method: each is read whole, and its program's dialect and
/// prompt are what they should be; those that resume say by which id.
#[test]
fn configurations() {
    for (id, _) in CONFIGURATIONS {
        let spec = configured(id, Path::new("/home/a"));
        let (dialect, form) = match id {
            "claude" => (Dialect::ClaudeStreamJson, OutputForm::Jsonl),
            "codex" => (Dialect::CodexJsonl, OutputForm::Jsonl),
            "gemini" => (Dialect::GeminiStreamJson, OutputForm::Jsonl),
            _ => (Dialect::OpenclawExec, OutputForm::Json),
        };
        assert_eq!((spec.dialect, spec.output, spec.input), (dialect, form, Input::Stdin), "{id}");
        assert!(spec.takes_model(), "{id}");
        let id_named = |args: &Vec<String>| args.iter().any(|arg| arg == "{agentSessionId}");
        assert_eq!(spec.resume_args.as_ref().map(id_named), spec.resumes().then_some(true), "{id}");
    }
}
