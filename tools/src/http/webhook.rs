//! The webhook over HTTP: who may call it, and what is answered.

use std::time::Duration;

use annals_engine::clock::Timestamp;
use annals_engine::config::Config;
use annals_engine::session::event::{RunFinished, RunStatus};
use annals_engine::session::push::Pushed;
use annals_engine::session::run::announce;
use annals_engine::session::silent::{Lane, Silence};
use annals_engine::{Error, ErrorKind, Result};
use axum::Json;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::answer::{Answer, told};
use super::door::bearer;
use super::tokens::check;
use crate::caller::TokenHash;
use crate::calls::{Calls, Lasts};
use crate::desk::Desk;
use crate::host::Host;
use crate::ingress::gates::Mark;
use crate::ingress::signature::{Secret, Signed};
use crate::ingress::webhook::{Call, Received, receive};
use crate::waiting::ends;

/// The header in which senders bring the token that have no say over `Authorization`.
const TOKEN: &str = "x-webhook-token";

/// Who may call the webhook, if it is on.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    token: Option<TokenHash>,
    secret: Option<Secret>,
    wait: Duration,
    /// The most bytes of a body.
    pub(super) body_max: usize,
}

/// What a body holds beside the text, at the most.
const BESIDE_THE_TEXT: usize = 64 << 10;

/// The shortest secret, in bytes, that Standard Webhooks allow.
const SECRET_MIN: usize = 24;

impl Hook {
    /// What a configuration says; `None` where the webhook is off.
    ///
    /// # Errors
    /// `InvalidInput` for a webhook that anybody could call, and for a secret of another form.
    pub(super) fn of(config: &Config) -> Result<Option<Self>> {
        if !config.is_on("webhook.enabled") {
            return Ok(None);
        }
        let token = config.text("webhook.token");
        let token = token.map(|token| check("webhook.token", token).map(|()| TokenHash::of(token)));
        let token = token.transpose()?;
        let unfit = || {
            Error::invalid("the secret is none")
                .field("webhook.secret")
                .hint("it is whsec_ and 24 bytes or more in Base64: `echo whsec_$(openssl rand -base64 32)`")
        };
        let secret = config.text("webhook.secret");
        let secret = secret
            .map(|text| Secret::parse(text).filter(|s| s.len() >= SECRET_MIN).ok_or_else(unfit))
            .transpose()?;
        if token.is_none() && secret.is_none() {
            return Err(Error::invalid("the webhook is on, and anybody could call it")
                .field("webhook.token")
                .hint("set WEBHOOK_TOKEN, or WEBHOOK_SECRET for signed calls"));
        }
        let wait = config.number("webhook.waitSeconds").unwrap_or(60);
        // A text may be spelled in escapes of six bytes each.
        let text_max = config.number("security.maxInboundBytes").unwrap_or(1 << 20);
        let text_max = usize::try_from(text_max).unwrap_or(usize::MAX);
        let body_max = text_max.saturating_mul(6).saturating_add(BESIDE_THE_TEXT);
        Ok(Some(Self { token, secret, wait: Duration::from_secs(wait), body_max }))
    }

    /// How a call may be let in, by what its head says; `None` when it cannot be, whatever its body is.
    pub(super) fn may_be_admitted(&self, headers: &HeaderMap) -> Option<Admission> {
        let brought = bearer(headers).or_else(|| named(headers, TOKEN));
        if let (Some(token), Some(brought)) = (&self.token, brought) {
            return (*token == TokenHash::of(brought)).then_some(Admission::ByToken);
        }
        let signed = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let by_signature =
            self.secret.is_some() && signed.iter().all(|name| headers.contains_key(*name));
        by_signature.then_some(Admission::BySignature)
    }

    /// Whether a call that may be let in is.
    fn admits(&self, how: Admission, headers: &HeaderMap, body: &[u8], now: Timestamp) -> bool {
        if how == Admission::ByToken {
            return true;
        }
        let (Some(secret), Some(id), Some(timestamp), Some(signatures)) = (
            &self.secret,
            named(headers, "webhook-id"),
            named(headers, "webhook-timestamp"),
            named(headers, "webhook-signature"),
        ) else {
            return false;
        };
        secret.has_signed(&Signed { id, timestamp, signatures, body }, now)
    }
}

/// How a call is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It brings the token.
    ByToken,
    /// It is signed, if its body fits.
    BySignature,
}

fn named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What is said where the webhook is off.
pub(super) fn off() -> Error {
    Error::new(ErrorKind::NotFound, "the webhook is off")
        .hint("WEBHOOK_ENABLED=1 and WEBHOOK_TOKEN turn it on")
}

/// What is said to whom nobody knows.
pub(super) fn unknown() -> Response {
    let error =
        Error::new(ErrorKind::Refused, "the call brings no token and no signature that is right");
    let error = error.field("Authorization").hint(
        "send `Authorization: Bearer TOKEN` or X-Webhook-Token, or sign as Standard Webhooks do, by a clock that is right to five minutes",
    );
    told(StatusCode::UNAUTHORIZED, &error)
}

/// What is answered to a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    ok: bool,
    /// How the run ended; `timeout` when it goes on, `accepted` when nobody waits for it.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    session_key: String,
    #[serde(rename = "chat_id", skip_serializing_if = "Option::is_none")]
    chat_id: Option<String>,
    output: String,
    silent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether an earlier call with the same idempotency key had asked for it.
    repeated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<Mark>,
}

/// Answers a call.
///
/// # Errors
/// What [`Call::read`] and [`receive`] say; whatever reading meets.
pub(super) async fn answer(
    host: Host,
    calls: &Calls,
    (hook, how): (Hook, Admission),
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Response> {
    if !hook.admits(how, &headers, &body, host.engine().clock().now()) {
        return Ok(unknown());
    }
    let (status, told) = calls
        .call(Lasts::Long, move |gone| {
            let key = idempotency_key(how, &headers)?;
            let now = host.engine().clock().now();
            let call = Call::read(&body, key.as_deref(), host.config(), now)?;
            let (chat, waits) = (call.chat.clone(), call.waits);
            host.look(Some(gone), |view| {
                let Some(desk) = view.desk else {
                    return Err(Error::new(ErrorKind::ReadOnly, "the store takes no turns"));
                };
                let received = receive(desk.engine, desk.setup, call)?;
                let within = if waits { hook.wait } else { Duration::ZERO };
                follow(desk, received, chat, (waits, within))
            })
        })
        .await?;
    Ok((status, Json(told)).into_response())
}

/// Sees to it that somebody answers, and waits for it.
fn follow(
    desk: &Desk<'_>,
    received: Received,
    chat: Option<String>,
    (waits, within): (bool, Duration),
) -> Result<(StatusCode, Told)> {
    let Received { pushed, marks } = received;
    let Pushed { key, run_id, repeated, .. } = pushed;
    let mut told = Told {
        ok: true,
        status: "ok",
        run_id: run_id.clone(),
        session_key: key.as_str().to_owned(),
        chat_id: chat,
        output: String::new(),
        silent: false,
        reason: None,
        repeated,
        marks,
    };
    // What was a command is obeyed, and nobody answers it.
    let Some(run_id) = run_id else { return Ok((StatusCode::OK, told)) };
    // That nobody could be called takes nothing back: the run waits for a worker.
    told.reason = desk.called(&run_id);
    let end = ends(desk, &[&run_id], within)?.remove(&run_id);
    let Some(end) = end else {
        told.status = if waits { "timeout" } else { "accepted" };
        return Ok((StatusCode::ACCEPTED, told));
    };
    told.ended(desk, &end)?;
    Ok((StatusCode::OK, told))
}

impl Told {
    fn ended(&mut self, desk: &Desk<'_>, end: &RunFinished) -> Result<()> {
        self.ok = end.status == RunStatus::Ok;
        self.status = end.status.as_str();
        self.reason.clone_from(&end.reason);
        if self.ok {
            let text = announce::text_at(desk.engine.store(), &self.session_key, end.reply_seq)?;
            let silence = Silence::of(&text, &desk.setup.rules.silent, Lane::Foreground);
            self.silent = silence.token().is_some();
            if !self.silent {
                silence.outbound().clone_into(&mut self.output);
            }
        }
        Ok(())
    }
}

/// The key under which repeats are one call: `Idempotency-Key`, or the id of a Standard Webhook. Of a call that is let in
/// for its signature the id alone: it is signed, and whoever recorded the call could put another key beside it.
fn idempotency_key(how: Admission, headers: &HeaderMap) -> Result<Option<String>> {
    let names = match how {
        Admission::ByToken => &["idempotency-key", "webhook-id"][..],
        Admission::BySignature => &["webhook-id"],
    };
    let Some((name, value)) = names.iter().find_map(|name| Some((*name, headers.get(*name)?)))
    else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if !key.is_empty() => Ok(Some(key.to_owned())),
        _ => Err(Error::invalid("the key is empty, or no text").field(name)),
    }
}
