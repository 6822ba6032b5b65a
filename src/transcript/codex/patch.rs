//! The block that Codex' text form prints for a patch: how it went, the files, the difference.

use serde_json::json;

use crate::event::{FileChange, Known, Status};
use crate::transcript::turn::Turn;

/// Tells the call that the lines under `apply patch` are.
pub(crate) fn tell(id: &str, lines: &[String], turn: &mut Turn) {
    let status =
        lines.iter().find_map(|line| line.strip_prefix("patch: ")).map_or(Status::Unknown, |word| match word.trim() {
            "completed" => Status::Ok,
            "failed" | "declined" => Status::Fail,
            _ => Status::Unknown,
        });
    let rest: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.starts_with("patch: ")).collect();
    let difference = rest.iter().position(|line| line.starts_with("diff --git ")).unwrap_or(rest.len());
    let paths: Vec<&str> = rest[..difference].iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let changes: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
    turn.tool_start(id, None, "apply_patch", json!({"changes": changes}).as_object().cloned());
    turn.tool_output(id, None, rest[difference..].join("\n").trim_end());
    turn.tool_end(id, None, status, None);
    if status == Status::Ok && !paths.is_empty() {
        let changes = paths.into_iter().map(|path| FileChange { path: path.to_owned(), change: None }).collect();
        turn.meta(Known::Files { changes });
    }
}
