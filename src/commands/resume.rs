//! `ralph resume`: takes up a run that was interrupted, killed, cut off or limited, with its own settings and counters.

use std::path::Path;

use super::find::Here;
use super::perform::{Keeping, Performance, Stage};
use super::planning::{Planned, Task, arguments, flags, plan_from};
use super::run::working_directory;
use super::runtime;
use super::showing::{Show, needs_terminal_for_agent};
use crate::cli::Output;
use crate::cli::history::{Answer, Resume};
use crate::config;
use crate::error::{UserError, io_reason};
use crate::journal::disk::RealDisk;
use crate::journal::record::VERSION;
use crate::journal::store::{PROMPT, SETTINGS};
use crate::journal::{Journal, Outcome, Redactor, RunDirectory, Summary, reader};
use crate::plural::plural;
use crate::process;
use crate::run::control::{Command as Control, send};
use crate::run::prompt::Source;
use crate::run::{git, memory_of};
use crate::ui::figures;

/// Answers what a run asked, and goes on with it.
pub fn answer(args: Answer) -> Result<u8, UserError> {
    let run = Here::find()?.run(args.run.as_deref())?;
    let summary = Summary::of(&run)
        .map_err(|error| UserError::usage(format!("cannot read the run `{}`: {}", run.id, io_reason(&error))))?;
    if !summary.end.as_ref().is_some_and(|end| end.outcome == Outcome::Human) {
        return Err(UserError::usage(format!("the run `{}` has not asked anything", run.id))
            .hint("tell a run under way something with `ralph hint`, go on with another one with `ralph resume`"));
    }
    let words = args.words.join(" ");
    send(&run, &Control::Answer { words }).map_err(|error| {
        UserError::failed(format!("cannot write to `{}`: {}", run.path.display(), io_reason(&error)))
    })?;
    let Answer { looks, tui, .. } = args;
    let again = Resume {
        id: Some(run.id),
        max_iterations: None,
        max_time: None,
        max_cost: None,
        force: false,
        output: Output::Lines,
        tui,
        looks,
    };
    go_on(&again, Why::Answered)
}

/// Why a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Somebody wants it to.
    Asked,
    /// Its question is answered.
    Answered,
}

/// Goes on with a run.
pub fn run(args: &Resume) -> Result<u8, UserError> {
    go_on(args, Why::Asked)
}

fn go_on(args: &Resume, why: Why) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let show = Show::wanted(args.tui, args.output)?;
    process::protect(process::own_program());
    let run = Here::find()?.run(args.id.as_deref())?;
    let broken = |error: &std::io::Error| {
        UserError::usage(format!("cannot go on with the run `{}`: {}", run.id, io_reason(error)))
    };
    // Before anything is locked or written, and again when nobody else can write any more.
    can_go_on(&run, &Summary::of(&run).map_err(|error| broken(&error))?)?;
    let stage = Stage::take(&workspace)?;
    let summary = Summary::of(&run).map_err(|error| broken(&error))?;
    can_go_on(&run, &summary)?;
    if !args.force {
        check_tree(&run, &summary, &workspace)?;
    }
    let last = reader::last(&run.journal()).map_err(|error| broken(&error))?;
    let mut memory = memory_of(&summary, last.at);
    // What is said now comes before what was said under way.
    if args.max_iterations.is_some() {
        memory.orders.max_iterations = None;
    }
    if args.max_time.is_some() {
        memory.orders.max_seconds = None;
    }
    if args.max_cost.is_some() {
        memory.orders.max_cost_usd = None;
    }
    let Planned { mut plan, settings, .. } = planned(args, &run, &summary, &workspace)?;
    needs_terminal_for_agent(plan.screen, show)?;
    let most = settings.max_iterations.value.max(memory.orders.max_iterations.unwrap_or(0));
    if memory.state.iterations >= most && why == Why::Answered {
        // An answer must be heard.
        memory.orders.max_iterations = Some(memory.state.iterations + 1);
        plan.notices.push("one more iteration, for the answer".to_owned());
    } else if memory.state.iterations >= most {
        return Err(UserError::usage(format!("the run `{}` has used up its {}", run.id, plural(most, "iteration")))
            .hint(format!("allow more: `ralph resume {} -n {}`", run.id, most.saturating_mul(2))));
    }
    let time = memory.orders.max_seconds.map(std::time::Duration::from_secs).or(plan.policy.max_time);
    if time.is_some_and(|most| u128::from(memory.elapsed_ms) >= most.as_millis()) {
        return Err(UserError::usage(format!("the run `{}` has used up its time", run.id))
            .hint(format!("allow more: `ralph resume {} --max-time 8h`", run.id)));
    }
    plan.notices.push(format!("resumed after {}", figures::plural(u64::from(memory.state.iterations), "iteration")));
    let journal = Journal::reopen(&RealDisk, &run.journal()).map_err(|error| broken(&error))?;
    let keeping = Keeping::from(&settings);
    Performance { plan, directory: run, journal, summary, memory, keeping }.play(stage, show, &args.looks)
}

fn can_go_on(run: &RunDirectory, summary: &Summary) -> Result<(), UserError> {
    if summary.agent.is_empty() {
        return Err(UserError::usage(format!(
            "the run `{}` cannot go on as it began: it was cut off before its first record",
            run.id
        ))
        .hint("nothing was done in it: start it again with `ralph run`"));
    }
    if summary.version > VERSION {
        return Err(UserError::usage(format!("the run `{}` was made by a newer ralph ({})", run.id, summary.ralph))
            .hint("update ralph; this one can only show it"));
    }
    if summary.outcome() == Some(Outcome::Complete) {
        return Err(UserError::usage(format!("the run `{}` is complete", run.id)).hint("start a new one: `ralph run`"));
    }
    Ok(())
}

/// The working directory must still be what the run left behind, or come after it.
fn check_tree(run: &RunDirectory, summary: &Summary, workspace: &Path) -> Result<(), UserError> {
    let branch = summary.receipts().filter_map(|receipt| receipt.branch.clone()).last();
    let Some(left) = summary.receipts().filter_map(|receipt| receipt.head_after.clone()).last() else { return Ok(()) };
    let runtime = runtime()?;
    let here = runtime.block_on(git(workspace, &["symbolic-ref", "--quiet", "--short", "HEAD"]));
    let here = here.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    if let (Some(left), Some(here)) = (&branch, &here)
        && left != here
    {
        return Err(UserError::usage(format!(
            "the working directory is on another branch: the run `{}` left `{left}`, now it is on `{here}`",
            run.id
        ))
        .hint(format!("go back with `git switch {left}`, or go on here with `--force`")));
    }
    let now = runtime.block_on(git(workspace, &["rev-parse", "--verify", "--quiet", "HEAD"]));
    let now = now.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let follows = now.as_ref() == Some(&left)
        || runtime.block_on(git(workspace, &["merge-base", "--is-ancestor", &left, "HEAD"])).is_some();
    if follows {
        return Ok(());
    }
    let now = now.unwrap_or_else(|| "no commit".to_owned());
    Err(UserError::usage(format!(
        "the working directory has moved away from the run `{}`: it left commit {}, now it is at {}",
        run.id,
        left.get(..12).unwrap_or(&left),
        now.get(..12).unwrap_or(&now),
    ))
    .hint("go back to that branch, or go on here with `--force`"))
}

/// The run as it was planned when it began.
fn planned(args: &Resume, run: &RunDirectory, summary: &Summary, workspace: &Path) -> Result<Planned, UserError> {
    let redactor = Redactor::of_environment();
    let kept = |name: &str| -> Result<Option<String>, UserError> {
        let Ok(text) = std::fs::read_to_string(run.path.join(name)) else { return Ok(None) };
        let text = redactor.restore(&text, |variable| std::env::var(variable).ok());
        let text = if name == SETTINGS { with_todays_secrets(text, &redactor, workspace) } else { text };
        match text.find("[redacted:") {
            None => Ok(Some(text)),
            Some(at) => {
                let word = text[at..].split_inclusive(']').next().unwrap_or_default();
                Err(UserError::usage(format!(
                    "`{name}` of the run `{}` held a secret that was not kept: {word}",
                    run.id
                ))
                .hint("secrets in the environment are put back: set the variable, or start a new run"))
            }
        }
    };
    let settings = kept(SETTINGS)?.ok_or_else(|| {
        UserError::usage(format!("the run `{}` has no `{SETTINGS}`, so its settings are not known", run.id))
            .hint("start a new run: what was done so far is in the working directory")
    })?;
    // Paths in it are relative to the working directory.
    let file = config::read_text(&workspace.join(SETTINGS), &settings)?;
    let prompt = match kept(PROMPT)? {
        Some(text) => Source::Text { text, from: summary.prompt.clone() },
        None => Source::File(summary.prompt.clone().into()),
    };
    let mut again = arguments(&[])?;
    again.max_iterations = args.max_iterations;
    again.max_time = args.max_time;
    again.max_cost = args.max_cost;
    plan_from(&again, flags(&again)?, file, workspace.to_owned(), Task::Known(prompt))
}

/// Secrets that stood in the configuration itself are put back from there, where it is plain which one is meant.
fn with_todays_secrets(mut kept: String, redactor: &Redactor, workspace: &Path) -> String {
    let today = config::find(workspace).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let words: std::collections::BTreeSet<&str> =
        today.split(|character: char| character.is_whitespace() || "'\"`,[]{}".contains(character)).collect();
    let secrets: Vec<(String, &str)> =
        words.into_iter().filter_map(|word| redactor.text(word).map(|clean| (clean, word))).collect();
    for (clean, word) in &secrets {
        if secrets.iter().filter(|(other, _)| other == clean).count() == 1 {
            kept = kept.replace(clean, word);
        }
    }
    kept
}
