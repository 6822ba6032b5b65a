//! Copilot's JSON lines.

use serde_json::{Value, json};

use super::{Emitter, Memory, Piece, Words, exit_code};
use crate::script::{Finish, Speech};

#[derive(Default)]
pub(super) struct Copilot {
    memory: Memory,
}

fn line(kind: &str, data: &Value) -> Piece {
    Piece::json(
        &json!({"type": kind, "data": data, "id": "event", "timestamp": "2026-01-01T00:00:00.000Z", "parentId": null}),
    )
}

fn fragments(kind: &str, key: &str, id: &str, speech: &Speech, out: &mut Vec<Piece>) {
    out.extend(speech.cut().into_iter().map(|piece| line(kind, &json!({key: id, "deltaContent": piece}))));
}

impl Emitter for Copilot {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>) {
        match words {
            Words::Begin(opening) => {
                self.memory.opening = (*opening).clone();
                out.push(line("session.tools_updated", &json!({"model": opening.model})));
                out.push(line("user.message", &json!({"content": opening.prompt})));
                out.push(line("assistant.turn_start", &json!({"turnId": "0"})));
            }
            Words::Say(speech) => {
                let id = self.memory.next_message();
                out.push(line("assistant.message_start", &json!({"messageId": id})));
                fragments("assistant.message_delta", "messageId", &id, speech, out);
                let tokens = self.memory.tokens();
                out.push(line(
                    "assistant.message",
                    &json!({
                        "messageId": id, "model": self.memory.opening.model, "content": speech.text, "toolRequests": [],
                        "outputTokens": tokens.output,
                    }),
                ));
            }
            Words::Think(speech) => {
                let id = self.memory.next_message();
                fragments("assistant.reasoning_delta", "reasoningId", &id, speech, out);
                out.push(line("assistant.reasoning", &json!({"reasoningId": id, "content": speech.text})));
            }
            Words::ToolStart(call) => {
                let id = self.memory.next_tool();
                out.push(line(
                    "tool.execution_start",
                    &json!({"toolCallId": id, "toolName": call.name, "arguments": call.input}),
                ));
            }
            Words::ToolEnd(call) => {
                // Copilot says success beside the exit code of a failed command.
                let code = exit_code(call);
                let content = format!("{}\n<shellId: 0 completed with exit code {code}>", call.output);
                out.push(line(
                    "tool.execution_complete",
                    &json!({
                        "toolCallId": self.memory.tool(), "success": true, "shellExecution": {"exitCode": code},
                        "result": {"content": content, "detailedContent": content},
                    }),
                ));
            }
            Words::Usage(tokens) => self.memory.tokens = Some(*tokens),
            Words::Finish(finish) => {
                if let Finish::Failure { message, status } = finish {
                    out.push(line(
                        "session.error",
                        &json!({"errorType": "query", "message": message, "statusCode": status}),
                    ));
                }
                out.push(Piece::json(&json!({
                    "type": "result", "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": self.memory.opening.session,
                    "exitCode": i32::from(*finish != &Finish::Success),
                    "usage": {"premiumRequests": 0, "totalApiDurationMs": 1, "sessionDurationMs": 1,
                        "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []}},
                })));
            }
        }
    }
}
