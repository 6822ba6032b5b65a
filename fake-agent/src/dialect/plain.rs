//! Lines without structure, and RTF1: the same with canonical events behind a sentinel.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words};
use crate::script::{Finish, Speech, Status};

pub(super) struct Plain;

impl Emitter for Plain {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Say(speech) | Words::Think(speech) => {
                out.extend(speech.cut().into_iter().map(|piece| Piece::Out(piece.to_owned())));
                out.push(Piece::Out("\n".into()));
            }
            Words::ToolStart(call) => {
                out.push(Piece::Out(format!("$ {} {}\n", call.name, Value::from(call.input.clone()))));
            }
            Words::ToolEnd(call) if call.output.is_empty() => {}
            Words::ToolEnd(call) => out.push(Piece::Out(format!("{}\n", call.output))),
            Words::Finish(Finish::Failure { message, .. }) => out.push(Piece::Err(format!("error: {message}\n"))),
            Words::Begin(_) | Words::Usage(_) | Words::Finish(Finish::Success) => {}
        }
    }
}

#[derive(Default)]
pub(super) struct Rtf1 {
    memory: Memory,
}

fn event(value: &Value) -> Piece {
    Piece::Out(format!("@@RALPH@@ {value}\n"))
}

fn text(tag: &str, speech: &Speech, out: &mut Vec<Piece>) {
    if speech.is_whole() {
        out.push(event(&json!({"type": "text", "tag": tag, "text": speech.text})));
    } else {
        out.extend(
            speech
                .cut()
                .into_iter()
                .map(|piece| event(&json!({"type": "text", "tag": tag, "text": piece, "delta": true}))),
        );
    }
}

impl Emitter for Rtf1 {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                out.push(event(&json!({"type": "meta", "meta": {"kind": "session", "id": opening.session}})));
                out.push(event(&json!({"type": "meta", "meta": {"kind": "model", "model": opening.model}})));
            }
            Words::Say(speech) => text("AI", speech, out),
            Words::Think(speech) => text("THINK", speech, out),
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                out.push(event(
                    &json!({"type": "tool_start", "tool": {"id": id, "name": call.name, "input": call.input}}),
                ));
            }
            Words::ToolEnd(call) => {
                let id = self.memory.tool();
                if !call.output.is_empty() {
                    out.push(event(&json!({"type": "tool_output", "tool": {"id": id}, "text": call.output})));
                }
                let status = if call.status == Status::Fail { "fail" } else { "ok" };
                out.push(event(
                    &json!({"type": "tool_end", "tool": {"id": id, "status": status, "duration_ms": call.takes}}),
                ));
            }
            Words::Usage(tokens) => {
                let mut usage = json!({
                    "prompt_tokens": tokens.input,
                    "completion_tokens": tokens.output,
                    "cached_tokens": tokens.cached,
                    "reasoning_tokens": tokens.reasoning,
                });
                if let Some(cost) = tokens.cost_usd {
                    usage["cost_usd"] = cost.into();
                }
                out.push(event(&json!({"type": "usage", "usage": usage})));
            }
            Words::Finish(Finish::Success) => {
                out.push(event(&json!({"type": "meta", "meta": {"kind": "turn_end", "success": true}})));
            }
            Words::Finish(Finish::Failure { message, .. }) => out.push(event(
                &json!({"type": "meta", "meta": {"kind": "turn_end", "success": false, "reason": message}}),
            )),
        }
    }
}
