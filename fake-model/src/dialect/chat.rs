//! `OpenAI` Chat Completions, which most CLIs take for "any other provider".

use serde_json::{Value, json};

use super::{Dialect, Frame, Part, Reply, pieces};
use crate::scenario::FaultKind;
use crate::tools::{Offered, function};

/// `OpenAI` Chat Completions.
pub struct Chat;

impl Chat {
    fn finish(reply: &Reply) -> &'static str {
        if reply.calls() { "tool_calls" } else { "stop" }
    }

    fn usage(reply: &Reply) -> Value {
        let usage = reply.usage;
        json!({
            "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
        })
    }

    fn chunk(reply: &Reply, choices: &Value) -> Value {
        json!({"id": reply.id("chatcmpl-", 0), "object": "chat.completion.chunk", "created": 1, "model": reply.model, "choices": choices})
    }
}

impl Dialect for Chat {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| function(&tool["function"], "parameters")).collect()
    }

    fn whole(&self, reply: &Reply) -> Value {
        let (mut said, mut calls) = (String::new(), Vec::new());
        for (at, part) in reply.parts.iter().enumerate() {
            match part {
                Part::Thinking(_) => {}
                Part::Text(text) => said.push_str(text),
                Part::Call(call) => calls.push(json!({
                    "id": reply.id("call_", at), "type": "function",
                    "function": {"name": call.name, "arguments": call.input.to_string()},
                })),
            }
        }
        let mut message = json!({"role": "assistant", "content": said});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        json!({
            "id": reply.id("chatcmpl-", 0), "object": "chat.completion", "created": 1, "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": Self::finish(reply)}], "usage": Self::usage(reply),
        })
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let chunk = |delta: Value, finish: Value| {
            Frame::plain(&Self::chunk(reply, &json!([{"index": 0, "delta": delta, "finish_reason": finish}])))
        };
        let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        let mut calls = 0;
        for (at, part) in reply.parts.iter().enumerate() {
            match part {
                Part::Thinking(text) => {
                    frames
                        .extend(pieces(text).into_iter().map(|p| chunk(json!({"reasoning_content": p}), Value::Null)));
                }
                Part::Text(text) => {
                    frames.extend(pieces(text).into_iter().map(|p| chunk(json!({"content": p}), Value::Null)));
                }
                Part::Call(call) => {
                    let begin = json!({"index": calls, "id": reply.id("call_", at), "type": "function",
                        "function": {"name": call.name, "arguments": ""}});
                    frames.push(chunk(json!({"tool_calls": [begin]}), Value::Null));
                    let arguments = call.input.to_string();
                    frames.extend(pieces(&arguments).into_iter().map(|p| {
                        chunk(json!({"tool_calls": [{"index": calls, "function": {"arguments": p}}]}), Value::Null)
                    }));
                    calls += 1;
                }
            }
        }
        frames.push(chunk(json!({}), json!(Self::finish(reply))));
        let mut last = Self::chunk(reply, &json!([]));
        last["usage"] = Self::usage(reply);
        frames.push(Frame::plain(&last));
        frames.push(Frame { name: None, data: "[DONE]".to_owned() });
        frames
    }

    fn refusal(&self, kind: FaultKind) -> (u16, Value) {
        refusal(kind)
    }

    fn wanted<'a>(&self, body: &'a Value) -> &'a Value {
        &body["response_format"]["json_schema"]["schema"]
    }
}

/// Both protocols of `OpenAI` have the same errors.
pub(super) fn refusal(kind: FaultKind) -> (u16, Value) {
    let (status, class, code, message) = match kind {
        FaultKind::Unauthorized => {
            (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: dummy.")
        }
        FaultKind::RateLimit => {
            (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again in 1s.")
        }
        FaultKind::Overloaded => {
            (503, "server_error", "server_is_overloaded", "The engine is currently overloaded, please try again later.")
        }
        FaultKind::Context => (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 tokens.",
        ),
        FaultKind::ServerError | FaultKind::Cut | FaultKind::Hang => {
            (500, "server_error", "server_error", "The server had an error while processing your request.")
        }
    };
    (status, json!({"error": {"message": message, "type": class, "param": null, "code": code}}))
}
