//! When a run is done, as the settings say: what the start of a run says about checks and judges, and what cannot work.

use std::path::Path;

use crate::agent::{Permissions, Turn};
use crate::app::agent_choice::settings_for;
use crate::config::{Origin, Settings};
use crate::error::UserError;
use crate::git::Repository;
use crate::process;
use crate::run::decide::Until;
use crate::run::hats::AgentChoice;
use crate::run::judging::{Judge, Seat};
use crate::run::verify::{Check, When};
use crate::run::{Worker, start_error};

/// Looks at the checks before a run starts; gives the notices about them.
pub(super) fn examine(settings: &Settings, workspace: &Path) -> Result<Vec<String>, UserError> {
    let (checks, origin) = (&settings.verify.value.checks, &settings.verify.origin);
    let decides = |check: &&Check| check.required && check.when != When::End;
    if settings.until.value == Until::Checks && checks.iter().find(decides).is_none() {
        return Err(UserError::usage(format!(
            "no check decides when the run is done (`until: checks` from {})",
            settings.until.origin
        ))
        .hint("add one with `--verify COMMAND`, or under `verify` in `ralph.yml`")
        .hint("a check with `required: false` or `when: end` does not count"));
    }
    let mut told = Vec::new();
    for check in checks {
        match check.find_program(workspace) {
            Err(error) if check.required => {
                return Err(UserError { message: format!("{} (from {origin})", error.message), ..error });
            }
            Err(error) => told.push(format!("{} (from {origin})", error.message)),
            Ok(()) => {}
        }
        let moment = match check.when {
            When::Claim => "completion check",
            When::Iteration => "check after each iteration",
            When::End => "check at the end",
        };
        let optional = if check.required { "" } else { ", not required" };
        told.push(format!("{moment}: `{}` (from {origin}{optional})", check.command));
    }
    Ok(told)
}

/// What the agent hears in every iteration: the user's rules, and what ends the run where its own word does not.
pub(super) fn rules(settings: &Settings) -> Vec<String> {
    let mut rules = settings.guardrails.value.clone();
    if settings.until.value == Until::Checks {
        let deciding = settings.verify.value.checks.iter().filter(|check| check.required && check.when != When::End);
        let commands: Vec<String> = deciding.map(|check| format!("`{}`", check.command)).collect();
        rules.push(format!("The work is done when these commands exit with 0: {}.", commands.join(", ")));
    }
    rules
}

/// True when something looks at a claim.
pub(super) fn any(settings: &Settings) -> bool {
    !settings.verify.value.checks.is_empty() || all_judges(settings).next().is_some()
}

/// The judges of `verify` and that of `judge`, and who says so.
fn all_judges(settings: &Settings) -> impl Iterator<Item = (Judge, &Origin)> {
    let listed = settings.verify.value.judges.iter().map(|judge| (judge.clone(), &settings.verify.origin));
    let named = settings.judge.value.iter();
    listed.chain(named.map(|agent| (Judge { agent: agent.clone(), ..Judge::default() }, &settings.judge.origin)))
}

/// The agents that judge, as others that a run starts.
pub(super) fn named_judges(settings: &Settings) -> impl Iterator<Item = (AgentChoice, &Origin)> {
    all_judges(settings).map(|(judge, origin)| (choice(&judge), origin))
}

fn choice(judge: &Judge) -> AgentChoice {
    AgentChoice { model: judge.model.clone(), effort: judge.effort.clone(), ..AgentChoice::named(&judge.agent) }
}

/// The judges of a run, with a notice about each; `find` finds an agent.
pub(super) fn judges(
    settings: &Settings,
    common: &Settings,
    workspace: &Path,
    mut find: impl FnMut(Settings) -> Result<Worker, UserError>,
) -> Result<Vec<(Seat, String)>, UserError> {
    let mut seats = Vec::new();
    for (judge, origin) in all_judges(settings) {
        let mut worker = find(settings_for(&choice(&judge), origin, common))?;
        let id = worker.agent.id().to_owned();
        if worker.agent.plugin.is_some() || worker.agent.definition.arguments.read_only.is_none() {
            return Err(UserError::usage(format!(
                "agent `{id}` cannot judge: ralph knows no read-only mode of it (from {origin})"
            ))
            .hint("use another one, such as `codex` or `claude`")
            .hint("if it has such a mode, put its flags under `arguments.read_only` in `.ralph/agents/NAME.yml`"));
        }
        worker.agent.options.permissions = Some(Permissions::ReadOnly);
        process::check(&worker.agent.invocation(&Turn::new("judge", workspace))?)
            .map_err(|error| start_error(&error))?;
        let undone = if Repository::around(workspace).is_some() {
            ""
        } else {
            "; no git repository: what it changes cannot be undone"
        };
        let told = format!("judge: `{id}`, read-only (from {origin}){undone}");
        let place = seats.len();
        seats.push((Seat { place, worker, prompt: judge.prompt }, told));
    }
    Ok(seats)
}
