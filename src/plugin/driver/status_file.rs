//! `.ralph/status.json`, which dashboards of the driver contract watch. It is replaced in one step, never half written.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::journal::Outcome;
use crate::redact::Redactor;
use crate::user_file;

const FILE: &str = ".ralph/status.json";

/// The calls an hour that the contract allows when nothing is said.
const USUAL_CALLS: u32 = 100;

#[derive(Clone, Debug)]
pub(crate) struct Status {
    loops: u32,
    calls: Vec<Timestamp>,
    most_calls: u32,
    action: String,
    state: &'static str,
    exit_reason: String,
}

impl Status {
    /// A run that has not begun.
    pub(crate) fn new(most_calls: Option<u32>) -> Self {
        Self {
            loops: 0,
            calls: Vec::new(),
            most_calls: most_calls.unwrap_or(USUAL_CALLS),
            action: "starting".to_owned(),
            state: "running",
            exit_reason: String::new(),
        }
    }

    pub(crate) fn begin(&mut self, iteration: u32) {
        self.loops = iteration;
        self.calls.push(Timestamp::now());
        "executing".clone_into(&mut self.action);
        self.state = "running";
    }

    /// An iteration is over.
    pub(crate) fn end(&mut self, how: &str, succeeded: bool) {
        how.clone_into(&mut self.action);
        self.state = if succeeded { "success" } else { "error" };
    }

    pub(crate) fn finish(&mut self, outcome: Outcome, reason: &str) {
        reason.clone_into(&mut self.exit_reason);
        self.state = match outcome {
            Outcome::Complete => "completed",
            Outcome::Interrupted => "stopped",
            Outcome::Failed => "failed",
            _ => "halted",
        };
    }

    fn text(&self, now: Timestamp) -> String {
        let hour = SignedDuration::from_hours(1);
        let calls = self.calls.iter().filter(|call| now.duration_since(**call) < hour).count();
        let status = json!({
            "timestamp": now.to_string(),
            "loop_count": self.loops,
            "calls_made_this_hour": calls,
            "max_calls_per_hour": self.most_calls,
            "last_action": self.action,
            "status": self.state,
            "exit_reason": self.exit_reason,
            "next_reset": (now + hour).to_string(),
        });
        format!("{status:#}\n")
    }
}

/// Writes the file. Nobody's work depends on it: what cannot be written is left.
pub(crate) fn write(workspace: &Path, status: &Status) {
    let mut text = status.text(Timestamp::now());
    Redactor::of_process().clean(&mut text);
    let _ = user_file::replace(workspace, &workspace.join(FILE), &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_that_dashboards_know() {
        let mut status = Status::new(None);
        status.begin(3);
        status.end("exit code 0", true);
        status.finish(Outcome::Complete, "the agent said so");
        let now = Timestamp::now();
        let value: serde_json::Value = serde_json::from_str(&status.text(now)).unwrap();
        assert_eq!(value["loop_count"], 3);
        assert_eq!(value["calls_made_this_hour"], 1);
        assert_eq!(value["max_calls_per_hour"], 100);
        assert_eq!(value["last_action"], "exit code 0");
        assert_eq!(value["status"], "completed");
        assert_eq!(value["exit_reason"], "the agent said so");
        let later = now + SignedDuration::from_hours(2);
        let value: serde_json::Value = serde_json::from_str(&status.text(later)).unwrap();
        assert_eq!(value["calls_made_this_hour"], 0, "calls of another hour do not count");
    }
}
