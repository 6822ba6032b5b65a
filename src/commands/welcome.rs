//! `ralph` alone: what to do next in this directory, in at most ten lines. It starts nothing.

use std::path::Path;

use jiff::Timestamp;

use crate::app::choose::{catalog, passed_over};
use crate::app::find::{Here, print};
use crate::app::project::test_command;
use crate::app::working_directory;
use crate::config::{self, FileLayer};
use crate::error::UserError;
use crate::journal::Outcome;
use crate::process::{self, Invocation};
use crate::ui::RunState;
use crate::ui::history::status;

pub(crate) fn run() -> Result<u8, UserError> {
    let workspace = working_directory()?;
    if let Ok((here, newest)) = Here::run(None)
        && let Ok(run) = here.details(&newest)
    {
        if run.state != RunState::Ended(Outcome::Complete) {
            return print(&status(&run));
        }
        if run.summary.newest.is_some_and(is_recent) {
            return print(&(status(&run) + "start another: `ralph run \"…\"`; all commands: `ralph --help`\n"));
        }
    }
    let file = config::nearest_file(None, &workspace)?;
    let text = match installed(&file, &workspace) {
        None => "ralph runs your coding agent in a loop until your checks say it's done.\n\n\
                 No agent CLI was found on PATH. Try the built-in demo agent:\n  ralph run --agent demo\n\
                 or install an agent, for example:\n  npm install -g @anthropic-ai/claude-code\n\
                 `ralph agents` lists the agents ralph knows.\n"
            .to_owned(),
        Some(agent) => next(&agent, &file, &workspace),
    };
    print(&(text + "All commands: `ralph --help`\n"))
}

/// A run that completed within a day is what the user comes back for.
fn is_recent(ended: Timestamp) -> bool {
    Timestamp::now().duration_since(ended).as_hours() < 24
}

/// With an agent: the command to type.
fn next(agent: &str, file: &FileLayer, workspace: &Path) -> String {
    let settings = match &file.path {
        Some(path) => format!("settings: {}", path.file_name().unwrap_or_default().to_string_lossy()),
        None => "no ralph.yml; `ralph init` writes one".to_owned(),
    };
    let text = format!("agent: {agent}; {settings}\n");
    let prompt = ["PROMPT.md", ".ralph/PROMPT.md"].into_iter().find(|name| workspace.join(name).is_file());
    if let Some(prompt) = prompt {
        return text + &format!("{prompt} is here:\n  ralph run --dry-run\n  ralph run\n");
    }
    let verify = match test_command(workspace) {
        Some(test) if file.layer.verify.is_none() => format!(" --verify '{}'", test.command),
        _ => String::new(),
    };
    text + &format!(
        "Start a run:\n  ralph run \"fix the failing tests\"{verify} --max-cost 5\n\
         or plan first:\n  ralph plan \"add a --json flag\"\n  ralph build\n"
    )
}

/// The first agent whose program is found; nothing is started.
fn installed(file: &FileLayer, workspace: &Path) -> Option<String> {
    if let Some(agent) = file.layer.agent.as_ref().filter(|agent| agent.value != "auto") {
        return Some(agent.value.clone());
    }
    let catalog = catalog(workspace, file);
    let mut entries = catalog.entries().iter().filter(|entry| passed_over(entry, file).is_none());
    let is_there = |program: &String| process::check(&Invocation::new(program, workspace)).is_ok();
    let found = entries.find(|entry| entry.definition.commands.iter().any(is_there));
    found.map(|entry| entry.id.clone())
}
