//! Secrets, masked where text leaves the session that it was said in: to another session, into an export, into the audit
//! views. What is stored stays as it was said, and nobody's own context is masked.
//!
//! In the place of a secret stands the rule that found it, such as `[masked:jwt]`; `[masked:value]` stands for values that
//! the settings name. The text around stays, and JSON stays the JSON that it was: only the strings change that hold a
//! secret.

mod json;
mod rules;

use std::borrow::Cow;

use annals_engine::config::Config;
use annals_engine::session::event::Json;
use regex::Regex;

/// What is masked.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// Values that are masked wherever they stand, the longest first.
    values: Vec<String>,
    /// Any of them, as it is or as JSON spells it; `None` when there are none.
    any: Option<Regex>,
}

/// The rule of the values that the settings name.
const NAMED: &str = "value";

/// Shorter values would be found in half of all words.
const VALUE_CHARS_MIN: usize = 4;

impl Mask {
    /// The rules, and the values that the settings name.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::with(config.masked_values())
    }

    /// The rules and these values. Values of less than four characters are left out.
    #[must_use]
    pub fn with<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let long = values.into_iter().filter(|value| value.chars().count() >= VALUE_CHARS_MIN);
        let mut values: Vec<String> = long.map(str::to_owned).collect();
        values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup();
        let spelled = values.iter().flat_map(|value| [value.clone(), spelled_in_json(value)]);
        let any: Vec<String> = spelled.map(|value| regex::escape(&value)).collect();
        let any = Some(any.join("|")).filter(|any| !any.is_empty());
        Self { values, any: any.and_then(|any| Regex::new(&any).ok()) }
    }

    /// A text with its secrets masked.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        if self.holds_value(text) {
            for value in self.values.iter().filter(|value| text.contains(*value)) {
                masked = masked.replace(value, &rules::label(NAMED)).into();
            }
        }
        match rules::masked(&masked) {
            Some(more) => Cow::Owned(more),
            None => masked,
        }
    }

    /// A JSON text with the secrets in its strings masked; `None` when it stays as it is.
    #[must_use]
    pub fn json(&self, json: &str) -> Option<String> {
        if !self.may_be_spelled(json) {
            return None;
        }
        json::masked(json, &|spelled, text| {
            if !self.may_be_spelled(spelled) {
                return None;
            }
            match self.text(text()?.as_str()) {
                Cow::Owned(masked) => Some(masked),
                Cow::Borrowed(_) => None,
            }
        })
    }

    /// The content of a turn, text or blocks, with its secrets masked; `None` when it stays as it is.
    #[must_use]
    pub fn content(&self, content: &Json) -> Option<Json> {
        Json::from_text(self.json(content.as_str())?).ok()
    }

    /// Whether something in what a JSON text spells may have to be masked. A named value can be spelled with any escape.
    fn may_be_spelled(&self, json: &str) -> bool {
        rules::may_hold(json)
            || self.holds_value(json)
            || !self.values.is_empty() && json.contains("\\u")
    }

    /// Whether a named value may stand in a text; when none can be looked for at once, all are looked for.
    fn holds_value(&self, text: &str) -> bool {
        match &self.any {
            Some(any) => any.is_match(text),
            None => !self.values.is_empty(),
        }
    }
}

/// A text as it stands between the quotation marks of a JSON string.
fn spelled_in_json(text: &str) -> String {
    let spelled = serde_json::to_string(text).unwrap_or_default();
    let inside = spelled.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests;
