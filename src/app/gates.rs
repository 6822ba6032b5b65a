//! When a run is done, as the settings say: what is told of the checks at the start, and what cannot work.

use std::path::Path;

use crate::config::Settings;
use crate::error::UserError;
use crate::run::decide::Until;
use crate::run::verify::{Check, When};

/// Looks at the checks before a run starts; gives what is told of them.
pub(super) fn examine(settings: &Settings, workspace: &Path) -> Result<Vec<String>, UserError> {
    let (checks, origin) = (&settings.verify.value, &settings.verify.origin);
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
        let deciding = settings.verify.value.iter().filter(|check| check.required && check.when != When::End);
        let commands: Vec<String> = deciding.map(|check| format!("`{}`", check.command)).collect();
        rules.push(format!("The work is done when these commands exit with 0: {}.", commands.join(", ")));
    }
    rules
}
