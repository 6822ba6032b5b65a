//! `OpenCode`'s JSON lines.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words, exit_code};
use crate::script::{Finish, Speech, Tokens};

#[derive(Default)]
pub(super) struct Opencode {
    memory: Memory,
}

impl Opencode {
    fn line(&self, kind: &str, mut part: Value) -> Piece {
        let session = self.memory.opening.session.as_str();
        part["sessionID"] = session.into();
        part["messageID"] = "msg_0001".into();
        Piece::json(&json!({"type": kind, "timestamp": 1, "sessionID": session, "part": part}))
    }

    fn speech(&self, kind: &str, speech: &Speech) -> Piece {
        self.line(kind, json!({"type": kind, "text": speech.text, "time": {"start": 1, "end": 2}}))
    }
}

impl Emitter for Opencode {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(self.line("step_start", json!({"type": "step-start"})));
            }
            Words::Say(speech) => out.push(self.speech("text", speech)),
            Words::Think(speech) => out.push(self.speech("reasoning", speech)),
            // A call is one line, printed when it is over.
            Words::ToolStart(_) => {}
            Words::ToolEnd(call) => {
                let id = self.memory.next_tool();
                let part = json!({"type": "tool", "tool": call.name, "callID": id, "state": {
                    "status": "completed", "input": call.input, "output": call.output,
                    "metadata": {"output": call.output, "exit": exit_code(call), "truncated": false},
                    "title": call.name, "time": {"start": 0, "end": call.takes},
                }});
                out.push(self.line("tool_use", part));
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(Finish::Success) => {
                let Tokens { input, output, cached, reasoning, cost_usd } = self.memory.tokens();
                let part = json!({"type": "step-finish", "reason": "stop", "tokens": {
                    "total": input + output, "input": input.saturating_sub(cached), "output": output.saturating_sub(reasoning),
                    "reasoning": reasoning, "cache": {"write": 0, "read": cached},
                }, "cost": cost_usd.unwrap_or(0.0)});
                out.push(self.line("step_finish", part));
            }
            Words::Finish(Finish::Failure { message, status }) => {
                let mut data = json!({"message": message, "isRetryable": false});
                if let Some(status) = status {
                    data["statusCode"] = (*status).into();
                }
                out.push(Piece::json(&json!({
                    "type": "error", "timestamp": 1, "sessionID": self.memory.opening.session,
                    "error": {"name": "APIError", "data": data},
                })));
            }
        }
    }
}
