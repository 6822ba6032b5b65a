//! `ralph prompt show`: the prompt that the agent of a mode would get.

use std::io::Write as _;

use super::planning::{Planned, plan};
use super::run::working_directory;
use crate::cli::{Cli, Command, Prompt, PromptAction, Run};
use crate::error::UserError;
use crate::run::mode::Mode;
use crate::run::prompt::{LoopContext, compose};

/// Prints the first prompt.
pub fn run(args: &Prompt) -> Result<u8, UserError> {
    let PromptAction::Show(show) = &args.action;
    let mode = show.mode.as_deref();
    if let Some(name) = mode.filter(|name| !Mode::names().contains(name)) {
        return Err(
            UserError::usage(format!("there is no mode `{name}`")).hint(format!("known: {}", Mode::names().join(", ")))
        );
    }
    let goal =
        if show.goal.is_empty() && mode == Some("plan") { vec!["(the goal)".to_owned()] } else { show.goal.clone() };
    // Which agent would get it does not matter here, and none need be installed.
    let planned = plan(&words(&goal), mode, working_directory()?)?;
    let Planned { plan, .. } = planned;
    let words = plan.prompt.read()?;
    let context = LoopContext {
        iteration: 1,
        of: plan.policy.max_iterations,
        marker: (!plan.rule.is_mentioned_in(&words)).then(|| plan.rule.told()),
        ..LoopContext::default()
    };
    // Nobody may be left to read it.
    let _ = std::io::stdout().write_all(compose(&words, &context).as_bytes());
    Ok(0)
}

/// The arguments of `ralph run --agent demo GOAL`.
fn words(goal: &[String]) -> Run {
    use clap::Parser as _;
    let fixed = ["ralph", "run", "--agent", "demo", "--"].map(str::to_owned);
    match Cli::parse_from(fixed.into_iter().chain(goal.iter().cloned())).command {
        Command::Run(run) => *run,
        _ => unreachable!("these are the arguments of a run"),
    }
}
