//! Settings of the doors: what may come in, what is masked on the way out, and the sinks that things are delivered to.

use crate::config::kind::Kind;

use super::{Setting, setting};

/// What is said of doors.
pub(super) const SETTINGS: &[Setting] = &[
    setting(
        "http.address",
        Kind::Text,
        "\"127.0.0.1:8767\"",
        &["ANNALS_HTTP_ADDRESS"],
        "where `annals serve` listens",
    ),
    setting(
        "http.allowedHosts",
        Kind::Texts,
        "[]",
        &[],
        "names by which callers may address it, beside those of this machine",
    ),
    setting(
        "http.maxBodyBytes",
        Kind::Whole(1_024, 64 << 20),
        "16777216",
        &[],
        "the longest body of a request",
    ),
    setting(
        "http.token",
        Kind::Secret,
        "",
        &["ANNALS_HTTP_TOKEN"],
        "the token with which the store's owner calls",
    ),
    setting("http.tokens.*.token", Kind::Secret, "", &[], "the token of one more caller"),
    setting("http.tokens.*.session", Kind::Text, "", &[], "the session that calls with it"),
    setting("webhook.enabled", Kind::Switch, "false", &["WEBHOOK_ENABLED"], "the webhook"),
    setting(
        "webhook.token",
        Kind::Secret,
        "",
        &["WEBHOOK_TOKEN"],
        "what callers of the webhook must know",
    ),
    setting(
        "webhook.secret",
        Kind::Secret,
        "",
        &["WEBHOOK_SECRET"],
        "what callers of the webhook sign with, whsec_...",
    ),
    setting(
        "webhook.waitSeconds",
        Kind::Whole(0, 3_600),
        "60",
        &[],
        "how long a call of the webhook waits for the answer at the most",
    ),
    setting(
        "webhook.sessionPrefixes",
        Kind::Texts,
        "[]",
        &[],
        "how keys may begin that the webhook is told, beside those of its channel",
    ),
    setting(
        "security.maxInboundBytes",
        Kind::Whole(1_024, 64 << 20),
        "1048576",
        &[],
        "the longest text that comes in, in bytes",
    ),
    setting(
        "security.maskValues",
        Kind::Secrets,
        "",
        &[],
        "values that leave no session, whatever they look like",
    ),
    setting(
        "security.maskEnv",
        Kind::Texts,
        "[]",
        &[],
        "variables of the environment whose values leave no session",
    ),
    setting(
        "sinks.*.type",
        Kind::Word(&["exec", "http", "file", "log"]),
        "",
        &[],
        "how a channel's messages go out; the channel * is every other",
    ),
    setting("sinks.*.command", Kind::Text, "", &[], "exec: the program, which reads one as JSON"),
    setting("sinks.*.args", Kind::Texts, "", &[], "exec: its arguments"),
    setting("sinks.*.env.*", Kind::Variable, "", &[], "exec: a variable of its environment"),
    setting("sinks.*.url", Kind::Text, "", &[], "http: where messages are posted"),
    setting("sinks.*.secret", Kind::Secret, "", &[], "http: what they are signed with, whsec_..."),
    setting("sinks.*.path", Kind::Path, "", &[], "file: where messages are appended"),
    setting("sinks.*.threads", Kind::Switch, "", &[], "whether the channel has threads"),
    setting(
        "sinks.*.timeoutSeconds",
        Kind::Whole(1, 3_600),
        "",
        &[],
        "how long one try takes at the most; 30 when absent",
    ),
];
