//! JSON text with other strings in it. Everything between the strings, and every string that stays, is copied as it is.

use super::rules::{ASSIGNMENT, is_placeholder, label, names_secret};

/// What a string is masked to, if it is: it gets the string as it is spelled, and what gives the text.
type MaskString<'a> = dyn Fn(&str, &dyn Fn() -> Option<String>) -> Option<String> + 'a;

/// Replaces the strings that `mask` has another text for, and those of members that are secret by their name; `None` when
/// there are none. What is no JSON is copied.
pub(super) fn masked(json: &str, mask: &MaskString<'_>) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut in_secret_member = false;
    let mut at = 0;
    while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')).map(|found| at + found) {
        let Some(end) = end_of_string(json, start) else { break };
        at = end;
        let spelled = json.get(start..end).unwrap_or_default();
        let text = || serde_json::from_str::<String>(spelled).ok();
        let behind = json.get(end..).unwrap_or_default();
        if behind.trim_start().starts_with(':') {
            in_secret_member = text().is_some_and(|name| names_secret(&name));
            continue;
        }
        let is_secret = |text: String| text.len() > 3 && !is_placeholder(&text);
        let by_name = in_secret_member && text().is_some_and(is_secret);
        let masked = if by_name { Some(label(ASSIGNMENT)) } else { mask(spelled, &text) };
        let Some(Ok(masked)) = masked.map(|masked| serde_json::to_string(&masked)) else {
            continue;
        };
        out.push_str(json.get(copied..start).unwrap_or_default());
        out.push_str(&masked);
        copied = end;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Some(out)
}

/// Where a string ends that begins at a quotation mark.
fn end_of_string(json: &str, start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let rest = json.as_bytes().get(at..)?;
        let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        match rest.get(found)? {
            b'"' => return Some(at + found + 1),
            _ => at += found + 2,
        }
    }
}
