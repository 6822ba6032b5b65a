//! `ralph run --phases`: each phase is planned as its mode would be, with an agent and a model of its own.

use std::path::Path;

use crate::app::planning::{self, Planned};
use crate::app::saved_plan::SavedPlan;
use crate::cli::Run;
use crate::error::UserError;
use crate::redact::Redactor;
use crate::run::mode::Mode;

/// The run, which starts as its first phase, and all phases in order.
pub(crate) fn plan(args: &Run, workspace: &Path) -> Result<(Planned, Vec<(String, Planned)>), UserError> {
    let names = &args.phases.phases;
    if let Some(name) = names.iter().find(|name| !Mode::names().contains(&name.as_str())) {
        return Err(UserError::usage(format!("`--phases`: unknown mode `{name}`"))
            .hint(format!("known: {}", Mode::names().join(", "))));
    }
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(UserError::usage(format!("`--phases` names `{}` twice", twice.1)));
    }
    let planned = |name: &str| planning::plan(&for_phase(args, name), Some(name), workspace.to_owned());
    let first = planned(names.first().map_or("build", String::as_str))?;
    let all = names.iter().map(|name| Ok((name.clone(), planned(name)?)));
    Ok((first, all.collect::<Result<_, UserError>>()?))
}

/// The arguments of one phase.
fn for_phase(args: &Run, mode: &str) -> Run {
    let mut own = args.clone();
    let (agent, model) = args.phases.of(mode);
    if let Some(agent) = agent {
        own.agent = Some(agent.to_owned());
        (own.agent_cmd, own.model, own.effort) = (None, None, None);
    }
    if let Some(model) = model {
        let (model, effort) = model.rsplit_once(':').map_or((model, None), |(model, effort)| (model, Some(effort)));
        own.model = Some(model.to_owned());
        own.effort = effort.map(str::to_owned).or(own.effort);
    }
    own
}

/// What a resumed run needs of each phase.
pub(crate) fn saved(phases: &[(String, Planned)], redactor: &Redactor) -> Result<Vec<(String, SavedPlan)>, UserError> {
    let saved = phases.iter().map(|(name, phase)| {
        let mut settings = phase.settings.clone();
        if settings.agent.value == "auto" {
            phase.plan.chosen().agent.id().clone_into(&mut settings.agent.value);
        }
        Ok((name.clone(), SavedPlan::new(&settings, &phase.adapters, &phase.plan.prompt, redactor)?))
    });
    saved.collect()
}
