//! OpenClaw: the one object that `openclaw agent exec --json` prints when it ends, and those of `openclaw agent --json`
//! with and without its gateway. Read by its documentation.
//!
//! - `agent exec`: `{ok, status, final, payloads, usage, costUsd, model, provider, sessionId, error}`.
//! - `agent --local`: `{payloads, meta: {agentMeta: {sessionId, provider, model, usage}}}`; through the gateway the same
//!   under `result`, beside `status` and `runId`.
//! - Diagnostics may stand before and behind the object.

use annals_engine::session::event::{Json, Members, Tokens};

use super::Reply;
use super::fields::{Lenient, Line};

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Openclaw(Reply);

impl Openclaw {
    pub(super) fn line(&mut self, line: &Line) {
        let envelope = line.fields();
        let inside = match envelope.get("result") {
            Some(result) => result.read().unwrap_or_default(),
            None => Members::default(),
        };
        let meta = [envelope, &inside].map(|fields| fields.object("meta").object("agentMeta"));
        let [outer_meta, inner_meta] = &meta;
        let places = [envelope, &inside, inner_meta, outer_meta];
        let first = |name: &str| places.iter().find_map(|fields| fields.text(name));
        let text = first("final").or_else(|| places.iter().find_map(|fields| payloads(fields)));
        let status = envelope.text("status").filter(|status| status != "ok");
        let failed = envelope.take("ok") == Some(false)
            || status.as_deref().is_some_and(|status| ["error", "timeout"].contains(&status));
        let error = envelope.object("error").text("message").or_else(|| envelope.text("error"));
        let model = first("model");
        self.0 = Reply {
            text: text.filter(|_| !failed),
            tokens: places.iter().find_map(|fields| tokens(&fields.object("usage"))),
            cost_micros: envelope.micros("costUsd"),
            model: match (first("provider"), model) {
                (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
                (_, model) => model,
            },
            agent_session_id: first("sessionId"),
            error: failed.then(|| error.or(status)).flatten(),
            ..Reply::default()
        };
    }

    pub(super) fn finish(self) -> Reply {
        self.0
    }
}

fn payloads(fields: &Members) -> Option<String> {
    let payloads: Vec<Json> = fields.take("payloads")?;
    let text = |payload: &Json| payload.read::<Members>()?.text("text");
    let texts: Vec<String> = payloads.iter().filter_map(text).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

fn tokens(usage: &Members) -> Option<Tokens> {
    Some(Tokens {
        r#in: usage.count("input")?,
        out: usage.count("output")?,
        cache_read: usage.count("cacheRead"),
        cache_write: usage.count("cacheWrite"),
    })
}
