//! The open GitHub issues with a label, through `gh`, which has the login.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::{PlacedTask, Source};
use crate::batch::task::{ID_FORM, Task, TaskId, TaskLimits};
use crate::error::UserError;
use crate::process::{Invocation, Place, capture, runtime};

/// How long `gh` may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most issues, and the most bytes of them.
const MOST: &str = "500";
const MOST_BYTES: usize = 32 * 1024 * 1024;

pub(super) struct Issues {
    label: String,
    directory: PathBuf,
}

#[derive(Deserialize)]
struct Issue {
    number: u64,
    title: String,
    #[serde(default)]
    body: String,
}

impl Issues {
    pub(super) fn new(label: &str, directory: &Path) -> Result<Self, UserError> {
        if label.trim().is_empty() {
            return Err(UserError::usage("`gh:` needs a label").hint("such as `gh:ralph`"));
        }
        Ok(Self { label: label.to_owned(), directory: directory.to_owned() })
    }
}

impl Source for Issues {
    fn read(&self) -> Result<Vec<PlacedTask>, UserError> {
        let args = ["issue", "list", "--state", "open", "--json", "number,title,body", "--limit", MOST];
        let mut args: Vec<_> = args.map(Into::into).to_vec();
        // With `=`, a label that begins with a dash is no flag.
        args.push(format!("--label={}", self.label).into());
        let invocation = Invocation { args, place: Place::Outside, ..Invocation::new("gh", &self.directory) };
        let done = runtime()?.block_on(capture(invocation, PATIENCE, MOST_BYTES));
        let done = done.map_err(|error| {
            UserError::usage(format!("cannot list GitHub issues: {error}")).hint("`gh:LABEL` needs GitHub's `gh`")
        })?;
        if !done.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(UserError::usage(format!("cannot list GitHub issues: `gh` failed: {said}"))
                .hint("log in with `gh auth login`"));
        }
        let mut issues: Vec<Issue> = serde_json::from_slice(&done.stdout)
            .map_err(|error| UserError::usage(format!("cannot read what `gh` printed: {error}")))?;
        issues.sort_by_key(|issue| issue.number);
        issues.into_iter().map(task).collect()
    }
}

fn task(issue: Issue) -> Result<PlacedTask, UserError> {
    let Issue { number, title, body } = issue;
    let id = TaskId::new(format!("issue-{number}")).ok_or_else(|| UserError::usage(ID_FORM))?;
    let prompt = format!("{title}\n\n{body}\n\nThis is GitHub issue #{number}.");
    let (verify, needs, touches) = (Vec::new(), Vec::new(), Vec::new());
    let limits = TaskLimits::default();
    let task = Task { id, title, prompt, verify, agent: None, model: None, needs, touches, priority: 0, limits };
    Ok(PlacedTask { task, place: format!("issue #{number}") })
}
