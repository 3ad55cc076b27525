//! OpenAI's Responses: one response, item by item. Its input counts what a cache had.

use serde_json::{Value, json};

use super::script::Said;

/// The events of an answer.
pub(super) fn events(model: &str, number: usize, said: &Said) -> Vec<Value> {
    let id = format!("resp_{number:03}");
    let begin = json!({"type": "response.created", "response": {"id": id, "model": model}});
    let texts = said.text.iter().map(|text| {
        json!({
            "type": "message", "id": format!("msg_{number:03}"), "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        })
    });
    let calls = said.calls.iter().zip(1..).map(|((name, input), call)| {
        json!({
            "type": "function_call", "id": format!("fc_{number:03}_{call}"),
            "call_id": format!("call_{number:03}_{call}"), "name": name,
            "arguments": input.to_string(),
        })
    });
    let items = texts.chain(calls).zip(0..).map(|(item, index)| {
        json!({"type": "response.output_item.done", "output_index": index, "item": item})
    });
    let input = said.usage.input + said.usage.cached;
    let end = json!({
        "type": "response.completed",
        "response": {
            "id": id,
            "usage": {
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": said.usage.cached},
                "output_tokens": said.usage.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + said.usage.output,
            },
        },
    });
    std::iter::once(begin).chain(items).chain([end]).collect()
}
