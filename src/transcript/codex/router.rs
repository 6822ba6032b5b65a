//! Codex' log lines on standard error: the only trace of calls that were refused, unknown or malformed.

use crate::event::{Known, Object, Status};
use crate::transcript::turn::Turn;

/// Distinguishes calls that have no id of their own.
#[derive(Debug, Default)]
pub(crate) struct Router {
    calls: usize,
}

/// True for a line that Codex logs: time, level, module.
pub(crate) fn is_log(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let time = words.next().is_some_and(|word| {
        word.len() > 19 && word.as_bytes()[4] == b'-' && word.as_bytes()[10] == b'T' && word.ends_with('Z')
    });
    let level = words.next().is_some_and(|word| matches!(word, "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE"));
    time && level && words.next().is_some_and(|word| word.starts_with("codex"))
}

impl Router {
    /// Takes a log line that has been shown already.
    pub(crate) fn line(&mut self, line: &str, turn: &mut Turn) {
        if !is_log(line) {
            return;
        }
        let Some((_, message)) = line.split_once("::tools::router: error=") else { return };
        let lower = message.to_ascii_lowercase();
        let name = if lower.starts_with("patch rejected") || lower.starts_with("apply_patch") {
            "apply_patch"
        } else if lower.contains("reject command") || lower.starts_with("exec") {
            "shell"
        } else {
            message.strip_prefix("unsupported call: ").unwrap_or("unknown")
        };
        self.calls += 1;
        let id = format!("refused_{}", self.calls);
        turn.tool_start(&id, None, name, Some(Object::new()));
        turn.tool_output(&id, None, message);
        turn.tool_end(&id, None, Status::Fail, None);
        let refused = ["rejected", "reject command", "approval"].iter().any(|word| lower.contains(word));
        if refused && !lower.contains("verification failed") {
            turn.meta(Known::Permission {
                input: None,
                tool: name.to_owned(),
                id: Some(id),
                message: Some(message.to_owned()),
            });
        }
    }
}
