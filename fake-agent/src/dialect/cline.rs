//! Cline's JSON lines.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words};
use crate::script::{Finish, Speech, Status};

const TIME: &str = "2026-01-01T00:00:00.000Z";

#[derive(Default)]
pub(super) struct Cline {
    memory: Memory,
}

fn event(event: &Value) -> Piece {
    Piece::json(&json!({"ts": TIME, "type": "agent_event", "event": event}))
}

fn speech(kind: &str, speech: &Speech, out: &mut Vec<Piece>) {
    let mut accumulated = String::new();
    for piece in speech.cut() {
        accumulated.push_str(piece);
        out.push(event(&json!({
            "type": "content_start", "contentType": kind, kind: piece, "accumulated": accumulated,
        })));
    }
    out.push(event(&json!({"type": "content_end", "contentType": kind, kind: speech.text})));
}

impl Cline {
    fn usage(&self) -> Value {
        let tokens = self.memory.tokens();
        json!({
            "inputTokens": tokens.input, "outputTokens": tokens.output, "cacheReadTokens": tokens.cached,
            "totalCost": tokens.cost_usd.unwrap_or(0.0),
        })
    }
}

impl Emitter for Cline {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(Piece::json(&json!({
                    "ts": TIME, "type": "hook_event", "hookEventName": "agent_start", "agentId": "agent_1",
                    "taskId": opening.session, "parentAgentId": null,
                })));
            }
            Words::Say(words) => {
                self.memory.last.clone_from(&words.text);
                speech("text", words, out);
            }
            Words::Think(words) => speech("reasoning", words, out),
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                out.push(event(&json!({
                    "type": "content_start", "contentType": "tool", "toolName": call.name, "toolCallId": id, "input": call.input,
                })));
            }
            Words::ToolEnd(call) => out.push(event(&json!({
                "type": "content_end", "contentType": "tool", "toolName": call.name, "toolCallId": self.memory.tool(),
                "output": [{"query": call.name, "result": call.output, "success": call.status != Status::Fail}],
                "durationMs": call.takes,
            }))),
            Words::Usage(tokens) => {
                self.memory.tokens = Some(*tokens);
                let mut usage = self.usage();
                usage["type"] = "usage".into();
                out.push(event(&usage));
            }
            Words::Finish(finish) => {
                let reason = if *finish == &Finish::Success { "completed" } else { "error" };
                if let Finish::Failure { message, .. } = finish {
                    out.push(event(&json!({
                        "type": "error", "error": {"name": "Error", "message": message}, "recoverable": false, "iteration": 1,
                    })));
                }
                let last = &self.memory.last;
                let usage = self.usage();
                out.push(event(
                    &json!({"type": "done", "reason": reason, "text": last, "iterations": 1, "usage": usage}),
                ));
                out.push(Piece::json(&json!({
                    "ts": TIME, "type": "run_result", "finishReason": reason, "iterations": 1, "usage": usage, "aggregateUsage": usage,
                    "durationMs": 1, "text": last, "model": {"id": self.memory.opening.model, "provider": "fake"},
                })));
            }
        }
    }
}
