//! Pi's JSON lines.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words};
use crate::script::{Finish, Speech, Status, Tokens};

#[derive(Default)]
pub(super) struct Pi {
    memory: Memory,
    content: Vec<Value>,
}

impl Pi {
    fn message(&self, stop: &str, error: Option<&str>) -> Value {
        let Tokens { input, output, cached, cost_usd, .. } = self.memory.tokens();
        let mut message = json!({
            "role": "assistant", "content": self.content, "api": "openai-completions", "provider": "fake",
            "model": self.memory.opening.model,
            "usage": {"input": input.saturating_sub(cached), "output": output, "cacheRead": cached, "cacheWrite": 0,
                "totalTokens": input + output, "cost": {"total": cost_usd.unwrap_or(0.0)}},
            "stopReason": stop, "timestamp": 1,
        });
        if let Some(error) = error {
            message["errorMessage"] = error.into();
        }
        message
    }

    /// A message of its own for each block, so that the words come in the order of the script.
    fn block(&mut self, block: Value, stop: &str, updates: Vec<Value>, out: &mut Vec<Piece>) {
        self.content.clear();
        out.push(Piece::json(&json!({"type": "message_start", "message": self.message("stop", None)})));
        self.content.push(block);
        for mut update in updates {
            update["contentIndex"] = 0.into();
            out.push(Piece::json(&json!({"type": "message_update", "assistantMessageEvent": update})));
        }
        out.push(Piece::json(&json!({"type": "message_end", "message": self.message(stop, None)})));
        self.memory.tokens = None;
    }

    fn speech(&mut self, kind: &str, speech: &Speech, out: &mut Vec<Piece>) {
        let mut updates = vec![json!({"type": format!("{kind}_start")})];
        updates.extend(speech.cut().into_iter().map(|piece| json!({"type": format!("{kind}_delta"), "delta": piece})));
        updates.push(json!({"type": format!("{kind}_end"), "content": speech.text}));
        self.block(json!({"type": kind, kind: speech.text}), "stop", updates, out);
    }
}

impl Emitter for Pi {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(Piece::json(&json!({"type": "session", "version": 3, "id": opening.session, "cwd": "."})));
                out.push(Piece::json(&json!({"type": "agent_start"})));
                out.push(Piece::json(&json!({"type": "turn_start"})));
            }
            Words::Say(words) => self.speech("text", words, out),
            Words::Think(words) => self.speech("thinking", words, out),
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                let block = json!({"type": "toolCall", "id": id, "name": call.name, "arguments": call.input});
                self.block(block, "toolUse", Vec::new(), out);
                out.push(Piece::json(&json!({
                    "type": "tool_execution_start", "toolCallId": id, "toolName": call.name, "args": call.input,
                })));
            }
            Words::ToolEnd(call) => out.push(Piece::json(&json!({
                "type": "tool_execution_end", "toolCallId": self.memory.tool(), "toolName": call.name,
                "result": {"content": [{"type": "text", "text": call.output}]}, "isError": call.status == Status::Fail,
            }))),
            // Reported with the next message.
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(finish) => {
                self.content.clear();
                let last = match finish {
                    Finish::Success => self.message("stop", None),
                    Finish::Failure { message, status } => {
                        let message = status.map_or_else(|| message.clone(), |status| format!("{status} {message}"));
                        let message = self.message("error", Some(&message));
                        out.push(Piece::json(&json!({"type": "message_end", "message": message})));
                        message
                    }
                };
                out.push(Piece::json(&json!({"type": "turn_end", "message": last, "toolResults": []})));
                out.push(Piece::json(&json!({"type": "agent_end", "messages": [last]})));
            }
        }
    }
}
