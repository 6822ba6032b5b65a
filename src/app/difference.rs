//! What iterations changed, as text: what the run kept, else what git knows of their commits.

use std::fmt::Write as _;

use super::working_directory;
use crate::error::UserError;
use crate::git::{Repository, Store};
use crate::journal::{Receipt, RunDirectory};
use crate::process::runtime;
use crate::redact::Redactor;
use crate::ui::harmless;

/// What iterations changed: in full where the run kept it, else what was committed, and the names of the rest.
pub(crate) fn of_iterations(run: &RunDirectory, receipts: &[&Receipt]) -> Result<String, UserError> {
    if let Some(text) = kept(run, receipts) {
        return Ok(printable(&text));
    }
    let before = receipts.iter().find_map(|receipt| receipt.head_before.as_deref());
    let after = receipts.iter().rev().find_map(|receipt| receipt.head_after.as_deref());
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(printable(&files(
            receipts,
            "no diff was kept: this is not a git repository, or the diff was too large",
        )));
    };
    let text = if before == after { String::new() } else { committed(before, after)? };
    // Work that was not committed: only its names were kept.
    let is_committed = |file: &str| text.contains(&format!(" b/{file}\n"));
    let rest: Vec<String> =
        receipts.iter().flat_map(|receipt| &receipt.files).filter(|file| !is_committed(file)).cloned().collect();
    if rest.is_empty() {
        return Ok(printable(&text));
    }
    let rest = Receipt { files: rest, ..Receipt::default() };
    Ok(printable(&(files(&[&rest], "changed, not committed; `git diff` shows the current state") + &text)))
}

/// What the run itself kept of each iteration. `None` when it is not there for all that changed something.
fn kept(run: &RunDirectory, receipts: &[&Receipt]) -> Option<String> {
    let mut all = String::new();
    for receipt in receipts.iter().filter(|receipt| receipt.progress != Some(false)) {
        let text = std::fs::read_to_string(run.difference(&receipt.iteration.to_string())).ok()?;
        if receipts.len() > 1 && !text.is_empty() {
            let _ = writeln!(all, "# iteration {}", receipt.iteration);
        }
        all += &text;
    }
    Some(all)
}

/// The names of changed files.
fn files(receipts: &[&Receipt], why: &str) -> String {
    let mut names: Vec<&String> = receipts.iter().flat_map(|receipt| &receipt.files).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().fold(format!("# {why}\n"), |text, name| text + "#   " + &harmless(name) + "\n")
}

/// The difference between two commits of the repository here.
fn committed(before: &str, after: &str) -> Result<String, UserError> {
    let gone = |why: String| {
        UserError::failed(format!("cannot show what was committed: {why}"))
            .hint("the commits of that iteration may be gone")
    };
    let repository =
        Repository::around(&working_directory()?).ok_or_else(|| gone("this is not a git repository".to_owned()))?;
    let store = Store::temporary(&repository).map_err(|error| gone(error.to_string()))?;
    runtime()?.block_on(store.patch(before, after, "")).map_err(|error| gone(error.to_string()))
}

/// A diff as it may be printed: without secrets, and without control characters, for a file may have anything in it.
pub(crate) fn printable(text: &str) -> String {
    let clean = Redactor::of_process().text(text);
    let lines = clean.as_deref().unwrap_or(text).lines();
    let text: String = lines.flat_map(|line| [harmless(line), "\n".to_owned()]).collect();
    if text.is_empty() { "no change\n".to_owned() } else { text }
}
