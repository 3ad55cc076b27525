//! Real agent programs, run as their configuration says, against a stand-in of their model's interface.
#![expect(clippy::expect_used, reason = "what is absent fails the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start the programs and write their settings"
)]

mod agent;
mod claude;
mod codex;

use annals_engine::session::event::{Role, Tokens};

use agent::Ran;

/// Each turn by its role, and what it says as text.
fn turns(ran: &Ran) -> Vec<(Role, String)> {
    let turns = ran.reply.turns.iter();
    turns.map(|turn| (turn.role, annals_engine::session::content::plain(&turn.content))).collect()
}

fn tokens(r#in: u64, out: u64, cached: u64) -> Tokens {
    Tokens { r#in, out, cache_read: Some(cached), cache_write: None }
}
