//! `ralph prompt show`: the prompt that the agent of a mode would get.

use crate::app::flags::arguments;
use crate::app::planning::{Planned, plan};
use crate::app::working_directory;
use crate::cli::{Prompt, PromptAction};
use crate::error::UserError;
use crate::run::mode::Mode;
use crate::ui::out;

/// Prints the first prompt.
pub(crate) fn run(args: &Prompt) -> Result<u8, UserError> {
    let PromptAction::Show(show) = &args.action;
    let mode = show.mode.as_deref();
    if let Some(name) = mode.filter(|name| !Mode::names().contains(name)) {
        return Err(
            UserError::usage(format!("unknown mode `{name}`")).hint(format!("known: {}", Mode::names().join(", ")))
        );
    }
    let goal =
        if show.goal.is_empty() && mode == Some("plan") { vec!["(the goal)".to_owned()] } else { show.goal.clone() };
    // Which agent would get it does not matter here, and none need be installed.
    let mut arguments = arguments(&["--agent", "demo"].map(str::to_owned))?;
    arguments.words = goal;
    // Only to look: nothing is prepared for a run.
    arguments.dry_run = true;
    let Planned { plan, .. } = plan(&arguments, mode, working_directory()?)?;
    let (_, prompt) = plan.first_prompt()?;
    // The reader may be gone.
    let _ = out::print(&prompt);
    Ok(0)
}
