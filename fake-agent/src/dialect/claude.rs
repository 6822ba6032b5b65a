//! Claude's stream-json, with and without partial messages.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words};
use crate::script::{Finish, Speech, Status};

/// Whether fragments are sent before each message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Partial {
    With,
    Without,
}

pub(super) struct Claude {
    partial: Partial,
    memory: Memory,
}

impl Claude {
    pub(super) fn new(partial: Partial) -> Self {
        Self { partial, memory: Memory::default() }
    }

    fn usage(&self) -> Value {
        let tokens = self.memory.tokens();
        json!({
            // Claude counts cached tokens apart from the others.
            "input_tokens": tokens.input.saturating_sub(tokens.cached),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": tokens.cached,
            "output_tokens": tokens.output,
        })
    }

    fn stream(&self, event: &Value) -> Piece {
        Piece::json(&json!({
            "type": "stream_event", "event": event, "session_id": self.memory.opening.session, "parent_tool_use_id": null,
        }))
    }

    /// An assistant line with one block, and its fragments before it.
    fn message(&mut self, block: &Value, fragments: Vec<Value>, out: &mut Vec<Piece>) {
        let id = self.memory.next_message();
        let message = |content: Value| {
            json!({
                "id": id, "type": "message", "role": "assistant", "model": self.memory.opening.model, "content": content,
                "stop_reason": null, "stop_sequence": null, "usage": self.usage(),
            })
        };
        let whole = Piece::json(&json!({
            "type": "assistant", "message": message(json!([block])), "parent_tool_use_id": null,
            "session_id": self.memory.opening.session,
        }));
        if self.partial == Partial::Without {
            out.push(whole);
            return;
        }
        let mut empty = block.clone();
        for key in ["text", "thinking"] {
            if let Some(text) = empty.get_mut(key) {
                *text = "".into();
            }
        }
        out.push(self.stream(&json!({"type": "message_start", "message": message(json!([]))})));
        out.push(self.stream(&json!({"type": "content_block_start", "index": 0, "content_block": empty})));
        for delta in fragments {
            out.push(self.stream(&json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        }
        out.push(whole);
        out.push(self.stream(&json!({"type": "content_block_stop", "index": 0})));
        let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": self.usage()});
        out.push(self.stream(&stop));
        out.push(self.stream(&json!({"type": "message_stop"})));
    }

    fn speech(&mut self, kind: &str, speech: &Speech, out: &mut Vec<Piece>) {
        let block = json!({"type": kind, kind: speech.text});
        let fragments =
            speech.cut().into_iter().map(|piece| json!({"type": format!("{kind}_delta"), kind: piece})).collect();
        self.message(&block, fragments, out);
    }
}

impl Emitter for Claude {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(Piece::json(&json!({
                    "type": "system", "subtype": "init", "cwd": ".", "session_id": opening.session, "tools": ["Bash", "Edit"],
                    "mcp_servers": [], "model": opening.model, "permissionMode": "bypassPermissions", "claude_code_version": "2.1.197",
                })));
            }
            Words::Say(speech) => {
                self.memory.last.clone_from(&speech.text);
                self.speech("text", speech, out);
            }
            Words::Think(speech) => self.speech("thinking", speech, out),
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                let input = Value::from(call.input.clone());
                let fragment = json!({"type": "input_json_delta", "partial_json": input.to_string()});
                let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": input});
                self.message(&block, vec![fragment], out);
            }
            Words::ToolEnd(call) => out.push(Piece::json(&json!({
                "type": "user",
                "message": {"role": "user", "content": [{
                    "tool_use_id": self.memory.tool(), "type": "tool_result", "content": call.output,
                    "is_error": call.status == Status::Fail,
                }]},
                "parent_tool_use_id": null, "session_id": self.memory.opening.session,
            }))),
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(finish) => {
                let (is_error, text, status) = match finish {
                    Finish::Success => (false, &self.memory.last, None),
                    Finish::Failure { message, status } => (true, message, *status),
                };
                let mut result = json!({
                    "type": "result", "subtype": "success", "is_error": is_error, "api_error_status": status, "duration_ms": 1,
                    "num_turns": self.memory.messages, "result": text, "stop_reason": "end_turn",
                    "session_id": self.memory.opening.session,
                });
                if let Some(tokens) = self.memory.tokens {
                    result["usage"] = self.usage();
                    result["total_cost_usd"] = tokens.cost_usd.into();
                }
                out.push(Piece::json(&result));
            }
        }
    }
}
