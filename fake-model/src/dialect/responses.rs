//! `OpenAI` Responses, the protocol of codex.

use serde_json::{Value, json};

use super::{Dialect, Frame, Part, Reply, chat, pieces};
use crate::scenario::FaultKind;
use crate::tools::{Form, Offered, function};

/// `OpenAI` Responses.
pub struct Responses;

impl Responses {
    fn items(reply: &Reply) -> Vec<Value> {
        let item = |(at, part): (usize, &Part)| match part {
            Part::Thinking(text) => json!({
                "type": "reasoning", "id": reply.id("rs_", at), "summary": [{"type": "summary_text", "text": text}],
                "encrypted_content": "c2NyaXB0ZWQ=",
            }),
            Part::Text(text) => json!({
                "type": "message", "id": reply.id("msg_", at), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }),
            Part::Call(call) if call.form == Form::Text => json!({
                "type": "custom_tool_call", "id": reply.id("ctc_", at), "call_id": reply.id("call_", at),
                "status": "completed", "name": call.name, "input": call.input,
            }),
            Part::Call(call) => json!({
                "type": "function_call", "id": reply.id("fc_", at), "call_id": reply.id("call_", at), "status": "completed",
                "name": call.name, "arguments": call.input.to_string(),
            }),
        };
        reply.parts.iter().enumerate().map(item).collect()
    }
}

/// Tools are in the list, in named groups of it, and with newer models between the messages.
fn listed(tools: &Value, offered: &mut Vec<Offered>) {
    for tool in tools.as_array().into_iter().flatten() {
        match tool["type"].as_str() {
            Some("function") => offered.extend(function(tool, "parameters")),
            Some("custom") => {
                let name = tool["name"].as_str().unwrap_or_default().to_owned();
                offered.push(Offered { name, form: Form::Text, schema: Value::Null });
            }
            Some("additional_tools") => listed(&tool["tools"], offered),
            _ => {}
        }
    }
}

impl Dialect for Responses {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let mut offered = Vec::new();
        listed(&body["tools"], &mut offered);
        listed(&body["input"], &mut offered);
        offered
    }

    fn whole(&self, reply: &Reply) -> Value {
        let usage = reply.usage;
        json!({
            "id": reply.id("resp_", 0), "object": "response", "created_at": 1, "status": "completed", "model": reply.model,
            "output": Self::items(reply),
            "usage": {
                "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.input + usage.output,
            },
        })
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut say = |name: &'static str, mut data: Value| {
            data["type"] = json!(name);
            data["sequence_number"] = json!(frames.len());
            frames.push(Frame::named(name, &data));
        };
        let whole = self.whole(reply);
        let mut begun = whole.clone();
        begun["status"] = json!("in_progress");
        begun["output"] = json!([]);
        begun["usage"] = Value::Null;
        say("response.created", json!({"response": begun}));
        for (at, item) in Self::items(reply).iter().enumerate() {
            let mut empty = item.clone();
            let about = |more: Value| {
                let mut data = json!({"item_id": item["id"], "output_index": at});
                if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
                    data.extend(more);
                }
                data
            };
            match item["type"].as_str() {
                Some("message") => {
                    let text = item["content"][0]["text"].as_str().unwrap_or_default();
                    empty["content"] = json!([]);
                    say("response.output_item.added", json!({"output_index": at, "item": empty}));
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    say("response.content_part.added", about(json!({"content_index": 0, "part": part})));
                    for piece in pieces(text) {
                        say("response.output_text.delta", about(json!({"content_index": 0, "delta": piece})));
                    }
                    say("response.output_text.done", about(json!({"content_index": 0, "text": text})));
                }
                Some("reasoning") => {
                    let text = item["summary"][0]["text"].as_str().unwrap_or_default();
                    empty["summary"] = json!([]);
                    say("response.output_item.added", json!({"output_index": at, "item": empty}));
                    let part = json!({"type": "summary_text", "text": ""});
                    say("response.reasoning_summary_part.added", about(json!({"summary_index": 0, "part": part})));
                    for piece in pieces(text) {
                        say(
                            "response.reasoning_summary_text.delta",
                            about(json!({"summary_index": 0, "delta": piece})),
                        );
                    }
                    say("response.reasoning_summary_text.done", about(json!({"summary_index": 0, "text": text})));
                }
                _ => {
                    empty["status"] = json!("in_progress");
                    say("response.output_item.added", json!({"output_index": at, "item": empty}));
                    for piece in item["arguments"].as_str().map(pieces).unwrap_or_default() {
                        say("response.function_call_arguments.delta", about(json!({"delta": piece})));
                    }
                }
            }
            say("response.output_item.done", json!({"output_index": at, "item": item}));
        }
        say("response.completed", json!({"response": whole}));
        frames
    }

    fn refusal(&self, kind: FaultKind) -> (u16, Value) {
        chat::refusal(kind)
    }

    fn wanted<'a>(&self, body: &'a Value) -> &'a Value {
        &body["text"]["format"]["schema"]
    }
}
