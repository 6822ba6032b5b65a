//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Dialect, Frame, Part, Reply, pieces};
use crate::scenario::FaultKind;
use crate::tools::{Offered, function};

/// Anthropic Messages.
pub struct Anthropic;

impl Anthropic {
    fn blocks(reply: &Reply) -> Vec<Value> {
        let block = |(at, part): (usize, &Part)| match part {
            Part::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ="}),
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Call(call) => {
                json!({"type": "tool_use", "id": reply.id("toolu_", at), "name": call.name, "input": call.input})
            }
        };
        reply.parts.iter().enumerate().map(block).collect()
    }

    fn message(reply: &Reply, content: &[Value], stop: &Value, output: u64) -> Value {
        let usage = reply.usage;
        json!({
            "id": reply.id("msg_", 0), "type": "message", "role": "assistant", "model": reply.model, "content": content,
            "stop_reason": stop, "stop_sequence": null,
            "usage": {
                "input_tokens": usage.input - usage.cached.min(usage.input), "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached, "output_tokens": output,
            },
        })
    }
}

impl Dialect for Anthropic {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools
            .filter(|tool| tool["input_schema"].is_object())
            .filter_map(|tool| function(tool, "input_schema"))
            .collect()
    }

    fn whole(&self, reply: &Reply) -> Value {
        let stop = json!(if reply.calls() { "tool_use" } else { "end_turn" });
        Self::message(reply, &Self::blocks(reply), &stop, reply.usage.output)
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let whole = self.whole(reply);
        let start = Self::message(reply, &[], &Value::Null, 1);
        let mut frames = vec![Frame::named("message_start", &json!({"type": "message_start", "message": start}))];
        for (at, block) in Self::blocks(reply).iter().enumerate() {
            let mut empty = block.clone();
            let mut deltas = Vec::new();
            match block["type"].as_str() {
                Some("tool_use") => {
                    empty["input"] = json!({});
                    let input = block["input"].to_string();
                    deltas.extend(
                        pieces(&input).into_iter().map(|p| json!({"type": "input_json_delta", "partial_json": p})),
                    );
                }
                Some("thinking") => {
                    empty["thinking"] = json!("");
                    empty["signature"] = json!("");
                    let said = block["thinking"].as_str().unwrap_or_default();
                    deltas.extend(pieces(said).into_iter().map(|p| json!({"type": "thinking_delta", "thinking": p})));
                    deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
                }
                _ => {
                    empty["text"] = json!("");
                    let said = block["text"].as_str().unwrap_or_default();
                    deltas.extend(pieces(said).into_iter().map(|p| json!({"type": "text_delta", "text": p})));
                }
            }
            let begin = json!({"type": "content_block_start", "index": at, "content_block": empty});
            frames.push(Frame::named("content_block_start", &begin));
            frames.extend(deltas.into_iter().map(|delta| {
                Frame::named(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": at, "delta": delta}),
                )
            }));
            frames.push(Frame::named("content_block_stop", &json!({"type": "content_block_stop", "index": at})));
        }
        let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
        let end = json!({"type": "message_delta", "delta": delta, "usage": whole["usage"]});
        frames.push(Frame::named("message_delta", &end));
        frames.push(Frame::named("message_stop", &json!({"type": "message_stop"})));
        frames
    }

    fn refusal(&self, kind: FaultKind) -> (u16, Value) {
        let (status, class, message) = match kind {
            FaultKind::Unauthorized => (401, "authentication_error", "invalid x-api-key"),
            FaultKind::RateLimit => (
                429,
                "rate_limit_error",
                "This request would exceed your organization's rate limit. Please try again later.",
            ),
            FaultKind::Overloaded => (529, "overloaded_error", "Overloaded"),
            FaultKind::Context => (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
            FaultKind::ServerError | FaultKind::Cut | FaultKind::Hang => (500, "api_error", "Internal server error"),
        };
        (status, json!({"type": "error", "error": {"type": class, "message": message}}))
    }

    fn wanted<'a>(&self, body: &'a Value) -> &'a Value {
        &body["output_config"]["format"]["schema"]
    }
}
