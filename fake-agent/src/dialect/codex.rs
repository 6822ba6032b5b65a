//! Codex: JSON lines, and the text form that talks on standard error and repeats its last message on standard output.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words, exit_code};
use crate::script::{Finish, Speech, Status, ToolCall};

#[derive(Default)]
pub(super) struct Json {
    memory: Memory,
    item: usize,
}

impl Json {
    fn item(&mut self, kind: &str, speech: &Speech, out: &mut Vec<Piece>) {
        let id = format!("item_{}", self.item);
        self.item += 1;
        out.push(Piece::json(
            &json!({"type": "item.completed", "item": {"id": id, "type": kind, "text": speech.text}}),
        ));
    }
}

/// The shell command of a call, or a replacement for one.
fn command(call: &ToolCall) -> String {
    let said = call.input.get("command").and_then(Value::as_str);
    said.map_or_else(|| format!("{} {}", call.name, Value::from(call.input.clone())), str::to_owned)
}

impl Emitter for Json {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                out.push(Piece::json(&json!({"type": "thread.started", "thread_id": opening.session})));
                out.push(Piece::json(&json!({"type": "turn.started"})));
            }
            Words::Say(speech) => self.item("agent_message", speech, out),
            Words::Think(speech) => self.item("reasoning", speech, out),
            Words::ToolStart(call) => out.push(Piece::json(&json!({"type": "item.started", "item": {
                "id": format!("item_{}", self.item), "type": "command_execution", "command": command(call),
                "aggregated_output": "", "exit_code": null, "status": "in_progress",
            }}))),
            Words::ToolEnd(call) => {
                let status = if call.status == Status::Fail { "failed" } else { "completed" };
                out.push(Piece::json(&json!({"type": "item.completed", "item": {
                    "id": format!("item_{}", self.item), "type": "command_execution", "command": command(call),
                    "aggregated_output": call.output, "exit_code": exit_code(call), "status": status,
                }})));
                self.item += 1;
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(Finish::Success) => {
                let tokens = self.memory.tokens();
                out.push(Piece::json(&json!({"type": "turn.completed", "usage": {
                    "input_tokens": tokens.input, "cached_input_tokens": tokens.cached,
                    "output_tokens": tokens.output, "reasoning_output_tokens": tokens.reasoning,
                }})));
            }
            Words::Finish(Finish::Failure { message, status }) => {
                let message =
                    status.map_or_else(|| message.clone(), |status| format!("unexpected status {status}: {message}"));
                out.push(Piece::json(&json!({"type": "error", "message": message})));
                out.push(Piece::json(&json!({"type": "turn.failed", "error": {"message": message}})));
            }
        }
    }
}

#[derive(Default)]
pub(super) struct Text {
    memory: Memory,
}

impl Emitter for Text {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        let mut say = |text: String| out.push(Piece::Err(text));
        match words {
            Words::Begin(opening) => say(format!(
                "OpenAI Codex v0.166.0\n--------\nworkdir: /workspace\nmodel: {}\nprovider: fake\napproval: never\nsandbox: \
                 danger-full-access\nreasoning effort: none\nreasoning summaries: none\nsession id: {}\n--------\nuser\n{}\n",
                opening.model,
                opening.session,
                opening.prompt.trim_end(),
            )),
            Words::Say(speech) => {
                self.memory.last.clone_from(&speech.text);
                say(format!("codex\n{}\n", speech.text));
            }
            Words::Think(speech) => say(format!("thinking\n{}\n", speech.text)),
            Words::ToolStart(call) => say(format!("exec\n{} in /workspace\n", command(call))),
            Words::ToolEnd(call) => {
                let how = if call.status == Status::Fail { "exited 1" } else { "succeeded" };
                say(format!(" {how} in {}ms:\n{}\n\n", call.takes, call.output));
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(Finish::Success) => {
                if let Some(tokens) = self.memory.tokens {
                    say(format!("tokens used\n{}\n", tokens.input - tokens.cached.min(tokens.input) + tokens.output));
                }
                out.push(Piece::Out(format!("{}\n", self.memory.last)));
            }
            Words::Finish(Finish::Failure { message, status }) => {
                let status = status.map(|status| format!("unexpected status {status}: ")).unwrap_or_default();
                say(format!("ERROR: {status}{message}\n"));
            }
        }
    }
}
