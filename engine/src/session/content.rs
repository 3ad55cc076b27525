//! What a turn says, as text: blocks of text whole, everything else by its name, so that nothing is swallowed.

use serde_json::Value;

use super::event::Json;

/// The text of a turn's content: a string, or the blocks of some model's interface.
#[must_use]
pub fn plain(content: &Json) -> String {
    let Some(content) = content.read::<Value>() else { return content.as_str().to_owned() };
    match &content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().map(block).filter(|t| !t.is_empty()).collect();
            texts.join("\n")
        }
        other => block(other),
    }
}

fn block(block: &Value) -> String {
    if let Value::String(text) = block {
        return text.clone();
    }
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    let kind = field("type").unwrap_or("block");
    match (field("text"), field("name"), block.get("content")) {
        (Some(text), ..) => text.to_owned(),
        (None, Some(name), _) => format!("[{kind} {name}]"),
        (None, None, Some(Value::String(text))) => text.clone(),
        (None, None, Some(Value::Array(blocks))) => {
            blocks.iter().map(self::block).collect::<Vec<_>>().join("\n")
        }
        _ => format!("[{kind}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, expect: &str) {
        assert_eq!(plain(&Json::from_text(content).unwrap()), expect);
    }

    /// Text is whole; calls, images and blocks of a kind that nobody knows leave their name.
    #[test]
    fn every_block_leaves_something() {
        check(r#""plain""#, "plain");
        check(
            r#"[{"type":"text","text":"a"},{"type":"toolCall","id":"1","name":"exec","arguments":{}}]"#,
            "a\n[toolCall exec]",
        );
        check(r#"[{"type":"tool_result","content":[{"type":"text","text":"out"}]}]"#, "out");
        check(r#"[{"type":"image","data":"aaaa"},{"type":"brand_new"}]"#, "[image]\n[brand_new]");
        check(r#"["x",{"type":"tool_result","content":"y"}]"#, "x\ny");
        check("[]", "");
        check("null", "[block]");
    }
}
