//! `ralph diff`: what a run, or one of its iterations, changed, as git tells it.

use std::fmt::Write as _;
use std::path::Path;

use super::find::{Here, print};
use super::run::working_directory;
use super::runtime;
use crate::cli::history::Diff;
use crate::error::UserError;
use crate::journal::{Receipt, RunDirectory};
use crate::process;
use crate::ui::harmless;

/// Shows the difference.
pub fn run(args: &Diff) -> Result<u8, UserError> {
    let here = Here::find()?;
    let run = here.run(args.id.as_deref())?;
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
    print(&of(&run, &receipts)?)
}

/// What iterations changed: in full where the run kept it, else what was committed, and the names of the rest.
pub fn of(run: &RunDirectory, receipts: &[&Receipt]) -> Result<String, UserError> {
    if let Some(text) = kept(run, receipts) {
        return Ok(text);
    }
    let before = receipts.iter().find_map(|receipt| receipt.head_before.as_deref());
    let after = receipts.iter().rev().find_map(|receipt| receipt.head_after.as_deref());
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(files(receipts, "what changed was not kept: there is no repository, or it was too much"));
    };
    let mut text = String::new();
    if before != after {
        let form = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
        text += &git(&working_directory()?, &[&form[..], &[before, after]].concat())?;
    }
    // Work that was not committed: only its names were kept.
    let committed = |file: &str| text.contains(&format!(" b/{file}\n"));
    let rest: Vec<String> =
        receipts.iter().flat_map(|receipt| &receipt.files).filter(|file| !committed(file)).cloned().collect();
    if !rest.is_empty() {
        let rest = Receipt { files: rest, ..Receipt::default() };
        let told = files(&[&rest], "changed and not committed; as it is now: `git diff`");
        text = told + &text;
    } else if text.is_empty() {
        "no change\n".clone_into(&mut text);
    }
    Ok(text)
}

/// What the run itself kept of each iteration. `None` when it is not there for all that changed something.
fn kept(run: &RunDirectory, receipts: &[&Receipt]) -> Option<String> {
    let mut all = String::new();
    for receipt in receipts.iter().filter(|receipt| receipt.progress != Some(false)) {
        let text = std::fs::read_to_string(run.difference(receipt.iteration)).ok()?;
        if receipts.len() > 1 && !text.is_empty() {
            let _ = writeln!(all, "# iteration {}", receipt.iteration);
        }
        all.extend(text.lines().map(|line| harmless(line) + "\n"));
    }
    Some(if all.is_empty() { "no change\n".to_owned() } else { all })
}

/// The names of changed files.
fn files(receipts: &[&Receipt], why: &str) -> String {
    let mut names: Vec<&String> = receipts.iter().flat_map(|receipt| &receipt.files).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().fold(format!("# {why}\n"), |mut text, name| {
        let _ = writeln!(text, "#   {}", harmless(name));
        text
    })
}

/// Asks git. Lines are made harmless: a file may have anything in it.
fn git(workspace: &Path, args: &[&str]) -> Result<String, UserError> {
    let said = runtime()?.block_on(crate::run::git(workspace, args)).ok_or_else(|| {
        UserError::failed("git cannot tell what was committed").hint("the commits of that iteration may be gone")
    })?;
    Ok(String::from_utf8_lossy(&said).lines().fold(String::new(), |text, line| text + &harmless(line) + "\n"))
}
