//! `ralph diff`: what a run, or one of its iterations, changed, as git tells it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::find::{Here, print};
use super::run::working_directory;
use super::runtime;
use crate::cli::history::Diff;
use crate::error::UserError;
use crate::journal::{Receipt, RunDirectory};
use crate::process::{self, Environment, Invocation, capture};
use crate::run::shelf_environment;
use crate::ui::harmless;

/// Longer differences are cut, and that is said.
const LONGEST: usize = 64 * 1024 * 1024;

/// Shows the difference.
pub fn run(args: &Diff) -> Result<u8, UserError> {
    let here = Here::find()?;
    let run = here.run(Some(&args.id))?;
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
    if let Some(text) = kept(run, receipts)? {
        return Ok(text);
    }
    let before = receipts.iter().find_map(|receipt| receipt.head_before.as_deref());
    let after = receipts.iter().rev().find_map(|receipt| receipt.head_after.as_deref());
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(files(receipts, "what changed is not known in full, because the directory has no commits"));
    };
    let mut text = String::new();
    if before != after {
        text += &git(&working_directory()?, &["diff", "--no-ext-diff", "--no-color", before, after], &[])?;
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

/// The difference between the trees that the run kept: committed or not. `None` when it kept none.
fn kept(run: &RunDirectory, receipts: &[&Receipt]) -> Result<Option<String>, UserError> {
    let before = receipts.first().and_then(|receipt| receipt.tree_before.as_deref());
    let after = receipts.last().and_then(|receipt| receipt.tree_after.as_deref());
    let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
    if before == after {
        return Ok(Some("no change\n".to_owned()));
    }
    let workspace = working_directory()?;
    let objects = git(&workspace, &["rev-parse", "--path-format=absolute", "--git-path", "objects"], &[])?;
    let environment = shelf_environment(&run.objects(), objects.trim_end(), None);
    let text = git(&workspace, &["diff", "--no-ext-diff", "--no-color", before, after], &environment)?;
    Ok(Some(text))
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
fn git(workspace: &Path, args: &[&str], environment: &[(String, String)]) -> Result<String, UserError> {
    let set = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let invocation = Invocation {
        args: args.iter().map(Into::into).collect(),
        env: Environment { set, remove: Vec::new() },
        ..Invocation::new("git", workspace)
    };
    let said = runtime()?
        .block_on(capture(invocation, Duration::from_secs(60), LONGEST))
        .map_err(|error| UserError::failed(format!("cannot ask git: {error}")))?;
    if !said.success() {
        let words = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        return Err(UserError::failed(format!("git cannot tell: {}", harmless(&words)))
            .hint("the commits of that iteration may be gone"));
    }
    let mut text: String =
        String::from_utf8_lossy(&said.stdout).lines().fold(String::new(), |text, line| text + &harmless(line) + "\n");
    if said.cut {
        text += "# the rest is too long to be shown\n";
    }
    Ok(text)
}
