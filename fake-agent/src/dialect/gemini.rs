//! Gemini's stream-json.

use serde_json::json;

use super::{Emitter, Memory, Piece, Words};
use crate::script::{Finish, Status};

const TIME: &str = "2026-01-01T00:00:00.000Z";

#[derive(Default)]
pub(super) struct Gemini {
    memory: Memory,
}

impl Emitter for Gemini {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(Piece::json(
                    &json!({"type": "init", "timestamp": TIME, "session_id": opening.session, "model": opening.model}),
                ));
                out.push(Piece::json(
                    &json!({"type": "message", "timestamp": TIME, "role": "user", "content": opening.prompt}),
                ));
            }
            Words::Say(speech) => out.extend(speech.cut().into_iter().map(|piece| {
                Piece::json(&json!({
                    "type": "message", "timestamp": TIME, "role": "assistant", "content": piece, "delta": true,
                }))
            })),
            // Gemini keeps its thoughts to itself.
            Words::Think(_) => {}
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                out.push(Piece::json(&json!({
                    "type": "tool_use", "timestamp": TIME, "tool_name": call.name, "tool_id": id, "parameters": call.input,
                })));
            }
            Words::ToolEnd(call) => {
                let mut result = json!({
                    "type": "tool_result", "timestamp": TIME, "tool_id": self.memory.tool(), "status": "success",
                    "output": call.output,
                });
                if call.status == Status::Fail {
                    result["status"] = "error".into();
                    result["error"] = json!({"type": "unknown", "message": call.output});
                }
                out.push(Piece::json(&result));
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(finish) => {
                let tokens = self.memory.tokens();
                let numbers = json!({
                    "total_tokens": tokens.input + tokens.output, "input_tokens": tokens.input,
                    "output_tokens": tokens.output, "cached": tokens.cached, "input": tokens.input.saturating_sub(tokens.cached),
                });
                let mut stats = numbers.clone();
                stats["duration_ms"] = 1.into();
                stats["tool_calls"] = self.memory.tools.into();
                stats["models"] = json!({(self.memory.opening.model.as_str()): numbers});
                let mut result = json!({"type": "result", "timestamp": TIME, "status": "success", "stats": stats});
                if let Finish::Failure { message, status } = finish {
                    let message =
                        status.map_or_else(|| message.clone(), |status| format!("[API Error: {status} {message}]"));
                    result["status"] = "error".into();
                    result["error"] = json!({"type": "Error", "message": message});
                }
                out.push(Piece::json(&result));
            }
        }
    }
}
