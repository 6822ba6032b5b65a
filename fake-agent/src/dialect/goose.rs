//! Goose's stream-json.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words, exit_code};
use crate::script::{Finish, Status};

#[derive(Default)]
pub(super) struct Goose {
    memory: Memory,
}

fn message(id: &str, role: &str, block: &Value) -> Piece {
    Piece::json(&json!({"type": "message", "message": {
        "id": id, "role": role, "created": 1, "content": [block], "metadata": {"userVisible": true, "agentVisible": true},
    }}))
}

impl Emitter for Goose {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => out.push(Piece::Out(format!(
                "\n    __( O)>  ● new session · openai {}\n   \\____)    {} · /workspace\n     L L     goose is ready\n",
                opening.model, opening.session,
            ))),
            Words::Say(speech) => {
                let id = self.memory.next_message();
                out.extend(
                    speech.cut().into_iter().map(|piece| message(&id, "assistant", &json!({"type": "text", "text": piece}))),
                );
            }
            Words::Think(speech) => {
                let id = self.memory.next_message();
                out.push(message(&id, "assistant", &json!({"type": "thinking", "thinking": speech.text, "signature": ""})));
            }
            Words::ToolStart(call) => {
                let id = self.memory.next_message();
                let request = json!({"type": "toolRequest", "id": self.memory.next_tool(), "toolCall": {
                    "status": "success", "value": {"name": call.name, "arguments": call.input},
                }});
                out.push(message(&id, "assistant", &request));
            }
            Words::ToolEnd(call) => {
                let response = json!({"type": "toolResponse", "id": self.memory.tool(), "toolResult": {
                    "status": "success", "value": {
                        "content": [{"type": "text", "text": call.output}],
                        "structuredContent": {"stdout": call.output, "stderr": "", "exit_code": exit_code(call)},
                        "isError": call.status == Status::Fail,
                    },
                }});
                out.push(message("msg_result", "user", &response));
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(finish) => {
                if let Finish::Failure { message, .. } = finish {
                    out.push(Piece::json(&json!({"type": "error", "error": message})));
                }
                let tokens = self.memory.tokens();
                out.push(Piece::json(&json!({
                    "type": "complete", "total_tokens": tokens.input + tokens.output, "input_tokens": tokens.input,
                    "output_tokens": tokens.output, "cache_read_input_tokens": tokens.cached, "cache_write_input_tokens": 0,
                })));
            }
        }
    }
}
