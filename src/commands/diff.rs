//! `ralph diff`: what a run, or one of its iterations, changed. It shows what the run kept, and asks git only about commits.

use std::fmt::Write as _;

use crate::app::find::{Here, print};
use crate::app::working_directory;
use crate::cli::history::Diff;
use crate::error::UserError;
use crate::git::{Repository, Store};
use crate::journal::store::WHOLE_DIFF;
use crate::journal::{Receipt, RunDirectory};
use crate::process;
use crate::process::runtime;
use crate::redact::Redactor;
use crate::ui::harmless;
use crate::ui::history::Standing;

/// Shows the difference.
pub(crate) fn run(args: &Diff) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.id.as_deref())?;
    let told = here.tell(&run)?;
    let receipts: Vec<&Receipt> = told
        .summary
        .receipts()
        .filter(|receipt| args.iteration.is_none_or(|number| receipt.iteration == number))
        .collect();
    if receipts.is_empty() {
        let what =
            args.iteration.map_or_else(|| "finished iteration".to_owned(), |number| format!("iteration {number}"));
        return Err(UserError::usage(format!("the run `{}` has no {what}", run.id)).hint("see `ralph show`"));
    }
    process::protect(process::own_program());
    let ended = matches!(told.standing, Standing::Ended(_));
    if args.iteration.is_none()
        && ended
        && let Ok(whole) = std::fs::read_to_string(run.difference(WHOLE_DIFF))
    {
        return print(&shown(&whole));
    }
    print(&of(&run, &receipts)?)
}

/// What iterations changed: in full where the run kept it, else what was committed, and the names of the rest.
pub(crate) fn of(run: &RunDirectory, receipts: &[&Receipt]) -> Result<String, UserError> {
    if let Some(text) = kept(run, receipts) {
        return Ok(shown(&text));
    }
    let before = receipts.iter().find_map(|receipt| receipt.head_before.as_deref());
    let after = receipts.iter().rev().find_map(|receipt| receipt.head_after.as_deref());
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(shown(&files(receipts, "the diff was not kept: there is no repository, or it was too large")));
    };
    let text = if before == after { String::new() } else { committed(before, after)? };
    // Work that was not committed: only its names were kept.
    let is_committed = |file: &str| text.contains(&format!(" b/{file}\n"));
    let rest: Vec<String> =
        receipts.iter().flat_map(|receipt| &receipt.files).filter(|file| !is_committed(file)).cloned().collect();
    if rest.is_empty() {
        return Ok(shown(&text));
    }
    let rest = Receipt { files: rest, ..Receipt::default() };
    Ok(shown(&(files(&[&rest], "changed and not committed; as it is now: `git diff`") + &text)))
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
        Repository::around(&working_directory()?).ok_or_else(|| gone("there is no repository here".to_owned()))?;
    let store = Store::temporary(&repository).map_err(|error| gone(error.to_string()))?;
    runtime()?.block_on(store.patch(before, after, "")).map_err(|error| gone(error.to_string()))
}

/// A diff as it may be printed: without secrets, and without control characters, for a file may have anything in it.
fn shown(text: &str) -> String {
    let clean = Redactor::of_process().text(text);
    let lines = clean.as_deref().unwrap_or(text).lines();
    let text: String = lines.flat_map(|line| [harmless(line), "\n".to_owned()]).collect();
    if text.is_empty() { "no change\n".to_owned() } else { text }
}
