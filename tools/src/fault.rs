//! How an error is told to whoever called: in words, and as the object that every edge of the program answers with.

use annals_engine::Error;
use serde_json::{Value, json};

/// `{"ok": false, "error": {"code", "message", "field"?, "hint"?}}`.
#[must_use]
pub fn fault(error: &Error) -> Value {
    let mut told = json!({ "code": error.kind().code(), "message": with_causes(error) });
    let place = error.place();
    for (name, text) in [("field", place.field.as_deref()), ("hint", error.hint_text())] {
        if let Some(text) = text {
            told[name] = Value::from(text);
        }
    }
    json!({ "ok": false, "error": told })
}

/// What happened, and its causes once each, the outermost first.
#[must_use]
pub fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        match inner.downcast_ref::<Error>() {
            // The place was told already.
            Some(inner) if inner.place() == error.place() => text.push_str(inner.message()),
            _ => text.push_str(&inner.to_string()),
        }
        cause = inner.source();
    }
    text
}
