//! `commit: iteration`: what an iteration left uncommitted becomes a commit, except ralph's own files and files with secrets.

use std::path::Path;

use super::Recorder;
use super::coordinator::Looping;
use super::plan::Commit;
use crate::error::UserError;
use crate::git::Change;
use crate::journal::Fact;
use crate::redact::Redactor;

/// How long the subject of a commit is.
const SUBJECT: usize = 72;

impl Looping<'_> {
    /// Commits what the iteration left, where the plan says so.
    pub(super) async fn commit_iteration(
        &mut self,
        number: u32,
        change: &mut Change,
        recorder: &mut Recorder,
    ) -> Result<(), UserError> {
        // On a branch of its own, what was uncommitted when the run was resumed is work of an iteration that was cut off.
        let is_own = self.snapshots.uncommitted() > 0 && self.directory.place().is_some();
        if self.plan.commit != Commit::Iteration || (change.moved == Some(false) && !is_own) {
            return Ok(());
        }
        let redactor = recorder.redactor().clone();
        let has_secret = |_: &Path, content: &[u8]| {
            let found = redactor.text(&String::from_utf8_lossy(content)).is_some();
            found.then(|| "it contains a secret".to_owned())
        };
        let goal = self.directory.kept_goal().unwrap_or_else(|| self.words.clone());
        let message = message(&goal, number, &self.directory.id, recorder.redactor());
        match self.snapshots.commit(&message, has_secret).await {
            Err(error) => {
                recorder.fact(Fact::Notice { message: format!("iteration {number} was not committed: {error}") })
            }
            Ok(committed) => {
                for (path, reason) in committed.refused {
                    recorder
                        .fact(Fact::Notice { message: format!("not committed: `{}`: {reason}", path.display()) })?;
                }
                if let Some(commit) = committed.commit {
                    let short = commit.get(..7).unwrap_or(&commit);
                    change.commits.insert(0, format!("{short} {}", message.lines().next().unwrap_or_default()));
                    change.head_after = Some(commit);
                }
                Ok(())
            }
        }
    }
}

/// The goal and the iteration in the subject, the run in a trailer.
fn message(goal: &str, iteration: u32, run: &str, redactor: &Redactor) -> String {
    let goal = super::prompt::title(goal);
    let goal = redactor.text(&goal).unwrap_or(goal);
    let end = format!(" (iteration {iteration})");
    let room = SUBJECT.saturating_sub(end.len());
    let goal = if goal.chars().count() > room {
        goal.chars().take(room - 1).collect::<String>().trim_end().to_owned() + "…"
    } else {
        goal
    };
    format!("{goal}{end}\n\nRalph-Run: {run}\nRalph-Iteration: {iteration}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_goal_the_iteration_and_the_run() {
        let redactor = Redactor::with([]);
        let text = message("# Fix the tests\n\nAll of them.", 3, "20261118-1", &redactor);
        assert_eq!(text, "Fix the tests (iteration 3)\n\nRalph-Run: 20261118-1\nRalph-Iteration: 3\n");
        let long = message(&"word ".repeat(40), 12, "r", &redactor);
        assert!(long.lines().next().unwrap().chars().count() <= SUBJECT, "{long}");
    }
}
