//! Anthropic's Messages: one message, block by block.

use serde_json::{Value, json};

use super::script::Said;

/// The events of an answer.
pub(super) fn events(model: &str, number: usize, said: &Said) -> Vec<Value> {
    let usage = |output: u64| {
        json!({
            "input_tokens": said.usage.input,
            "output_tokens": output,
            "cache_read_input_tokens": said.usage.cached,
            "cache_creation_input_tokens": 0,
        })
    };
    let begin = json!({
        "type": "message_start",
        "message": {
            "id": format!("msg_{number:03}"), "type": "message", "role": "assistant",
            "model": model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": usage(1),
        },
    });
    let texts = said.text.iter().map(|text| {
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
    });
    let calls = said.calls.iter().zip(1..).map(|((name, input), call)| {
        let id = format!("toolu_{number:03}_{call}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        (block, json!({"type": "input_json_delta", "partial_json": input.to_string()}))
    });
    let blocks = texts.chain(calls).zip(0..).flat_map(|((block, delta), index)| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    });
    let reason = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": usage(said.usage.output),
    });
    let stop = json!({"type": "message_stop"});
    std::iter::once(begin).chain(blocks).chain([end, stop]).collect()
}
