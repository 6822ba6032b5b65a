//! `ralph run`: settings, agent, prompt, journal and view are put together; then the loop runs.

use std::io::Write as _;
use std::path::PathBuf;

use super::dry_run;
use super::perform::{Keeping, Performance, Stage, unusable};
use super::planning::{Planned, plan};
use super::showing::{Show, needs_terminal_for_agent};
use crate::cli::Run;
use crate::config;
use crate::error::{UserError, io_reason};
use crate::journal::store::{PROMPT, SETTINGS};
use crate::journal::{Journal, Redactor, Summary};
use crate::process;
use crate::run::Memory;
use crate::run::prompt::Source;

/// Runs the loop and gives its exit code.
pub fn run(args: &Run, mode: Option<&str>) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let show = Show::wanted(args.tui, args.output)?;
    // Looking for agents already starts some.
    process::protect(process::own_program());
    let planned = plan(args, mode, workspace)?;
    if args.dry_run {
        let report = dry_run::report(&planned, args.output)?;
        // Nobody may be left to read it.
        let _ = std::io::stdout().write_all(report.as_bytes());
        return Ok(0);
    }
    let Planned { plan, mut settings, adapters, .. } = planned;
    needs_terminal_for_agent(plan.screen, show)?;
    if let Some(path) = settings.plan_file.value.as_ref().filter(|path| !plan.workspace.join(path).is_file()) {
        return Err(UserError::usage(format!(
            "there is no plan file `{}` (from {})",
            path.display(),
            settings.plan_file.origin
        ))
        .hint("`ralph plan \"the goal\"` writes `PLAN.md`"));
    }
    let stage = Stage::take(&plan.workspace)?;
    let unusable = |error: std::io::Error| unusable(&plan.workspace, &error);
    let directory = stage.store.create_run().map_err(unusable)?;
    // A run that goes on goes on with this agent, whatever is installed then.
    if settings.agent.value == "auto" {
        plan.chosen().agent.id().clone_into(&mut settings.agent.value);
    }
    // Before the journal: a directory with a journal is a run, and every run can go on.
    let redactor = Redactor::of_environment();
    directory.keep(SETTINGS, &config::effective(&settings, &adapters), &redactor).map_err(unusable)?;
    if !matches!(plan.prompt, Source::File(_)) {
        directory.keep(PROMPT, &plan.prompt.read()?, &redactor).map_err(unusable)?;
    }
    let journal = Journal::create(&directory.journal()).map_err(unusable)?;
    let (summary, memory) = (Summary::default(), Memory::default());
    let keeping = Keeping::from(&settings);
    Performance { plan, directory, journal, summary, memory, keeping }.play(stage, show, &args.looks)
}

/// Where the user is.
pub fn working_directory() -> Result<PathBuf, UserError> {
    std::env::current_dir().map_err(|error| {
        UserError::usage(format!("the working directory is gone or not accessible: {}", io_reason(&error)))
            .hint("change to a directory that exists")
    })
}
