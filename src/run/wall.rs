//! What the wall around the agent has to report after an iteration: refused hosts and files, and changes to what runs
//! outside. Each is a record, a line, and a remark in the next prompt.

use std::path::{Path, PathBuf};

use super::Recorder;
use super::coordinator::Looping;
use super::plan::Plan;
use crate::error::UserError;
use crate::journal::{Fact, SandboxEvent};
use crate::plural::plural;
use crate::sandbox::{Tamper, Watch};

/// No more lines of one kind for one iteration.
const MOST_LINES: usize = 10;

/// Watches what the agents of a plan must not change unseen; nothing without a wall.
pub(super) fn watch(plan: &Plan) -> Option<Watch> {
    let wall = plan.wall.as_ref()?;
    let (mut roots, mut keys) = (wall.watched(), Vec::new());
    for worker in &plan.workers {
        let (files, more) = wall.settings_of(&worker.agent.definition.needs());
        roots.extend(files);
        keys.extend(more);
    }
    Some(Watch::new(roots, keys))
}

impl Looping<'_> {
    /// Records what was refused and what was changed; an error where the run must end for it.
    pub(super) fn look_at_wall(
        &mut self,
        iteration: u32,
        complaints: &[String],
        recorder: &mut Recorder,
    ) -> Result<Option<UserError>, UserError> {
        let Some(wall) = &self.plan.wall else { return Ok(None) };
        let mut remarks = Vec::new();
        for host in wall.refusals.take().into_iter().take(MOST_LINES) {
            let message = format!("sandbox refused {host}; add it to `sandbox.network`");
            remarks.push(format!("the sandbox refused a connection to {host}; only a person can allow it."));
            recorder.fact(Fact::Sandbox { iteration, event: SandboxEvent::RefusedHost, subject: host, message })?;
        }
        let mut explained: Vec<String> = Vec::new();
        for (subject, message) in complaints.iter().filter_map(|line| wall.explain_complaint(line)) {
            if explained.contains(&message) || explained.len() >= MOST_LINES {
                continue;
            }
            explained.push(message.clone());
            remarks.push(format!("{message}. Only a person can change that."));
            recorder.fact(Fact::Sandbox { iteration, event: SandboxEvent::RefusedFile, subject, message })?;
        }
        self.memory.remarks.extend(remarks);
        self.look_for_changes(iteration, recorder)
    }

    fn look_for_changes(&mut self, iteration: u32, recorder: &mut Recorder) -> Result<Option<UserError>, UserError> {
        let (Some(wall), Some(watch)) = (&self.plan.wall, &mut self.watch) else { return Ok(None) };
        let changes = watch.changes();
        if changes.is_empty() {
            return Ok(None);
        }
        let tamper = wall.options.tamper;
        let failed: Vec<PathBuf> = if tamper == Tamper::Restore { watch.restore(&changes) } else { Vec::new() };
        // A new directory is reported once, with everything in it.
        let added = |path: &Path| changes.iter().any(|change| change.how == "added" && change.path == path);
        let told = changes.iter().filter(|change| !change.path.parent().is_some_and(added));
        for change in told.take(MOST_LINES) {
            let (path, how) = (change.path.display(), change.how);
            let what = format!("TAMPERING: the agent {how} `{path}`, which is run or obeyed outside the sandbox");
            let message = match tamper {
                Tamper::Warn => format!("{what}; look at it before you use git or ralph here (`sandbox.tamper: warn`)"),
                Tamper::Stop => format!("{what}; the run stops (`sandbox.tamper: stop`)"),
                Tamper::Restore if failed.contains(&change.path) => format!("{what}; it could NOT be restored"),
                Tamper::Restore => format!("{what}; it was restored"),
            };
            let subject = change.path.display().to_string();
            self.memory.remarks.push(format!("do not change `{path}`: it is run or obeyed outside the sandbox."));
            recorder.fact(Fact::Sandbox { iteration, event: SandboxEvent::Tampered, subject, message })?;
        }
        watch.accept();
        if tamper != Tamper::Stop && failed.is_empty() {
            return Ok(None);
        }
        let what = plural(changes.len() as u64, "protected file");
        Ok(Some(
            UserError::failed(format!("the agent changed {what}: {}", changes[0].path.display()))
                .hint("look at the changes before you use git or ralph here, then `ralph resume`"),
        ))
    }
}
