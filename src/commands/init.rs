//! `ralph init`: a commented `ralph.yml` with the agent that is installed here. It never writes over a file unless told.

use std::path::Path;

use crate::app::choose::{self, Purpose};
use crate::app::working_directory;
use crate::cli::Init;
use crate::config::{self, FileLayer, Layer, Setting};
use crate::error::{Kind, UserError, io_reason};
use crate::plugin;
use crate::process;
use crate::ui::out;

/// The file, and the other name it may have.
const FILE: &str = "ralph.yml";
const OTHER: &str = "ralph.yaml";

/// Writes the file and says what to do next.
pub(crate) fn run(args: &Init) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    if let Some(there) = [FILE, OTHER].into_iter().find(|name| workspace.join(name).exists())
        && (!args.force || there == OTHER)
    {
        let error = UserError::usage(format!("`{there}` is already there, and was not touched"));
        return Err(match there {
            FILE => error.hint("see what it says: `ralph config`; write over it: `ralph init --force`"),
            _ => error.hint(format!("ralph reads it as it reads `{FILE}`: move it away first")),
        });
    }
    let (agent, remark, told, taken) = if args.from {
        taken_over(&workspace)?
    } else {
        let (agent, remark, told) = agent(args, &workspace)?;
        (agent, remark, told, Layer::default())
    };
    write(&workspace.join(FILE), &config::template(&agent, &remark, &taken))?;
    let next = if ["PROMPT.md", ".ralph/PROMPT.md"].iter().any(|prompt| workspace.join(prompt).exists()) {
        "`ralph run --dry-run` shows what would be run"
    } else {
        "write what is to be done to `PROMPT.md`, then `ralph run`"
    };
    // The reader may be gone.
    let _ = out::print(&format!("wrote `{FILE}`: {told}\nnext: {next}\n"));
    Ok(0)
}

/// The agent to write down, the remark behind it, and what to tell.
fn agent(args: &Init, workspace: &Path) -> Result<(String, String, String), UserError> {
    let remark = "or `auto`, or another name that `ralph agents` shows".to_owned();
    if let Some(name) = &args.agent {
        if !["auto", "custom"].contains(&name.as_str()) {
            choose::catalog(workspace, &FileLayer::default())?.find(name)?;
        }
        return Ok((name.clone(), remark, format!("the agent is `{name}`, as you said")));
    }
    let settings = choose::settle(Layer::default(), &FileLayer::default(), workspace)?;
    let Setting { value, origin } = &settings.agent;
    if value != "auto" {
        return Ok((value.clone(), remark, format!("the agent is `{value}`, asked for by {origin}")));
    }
    process::protect(process::own_program());
    match choose::choose(&settings, &FileLayer::default(), workspace, Purpose::Look) {
        Ok(chosen) => {
            let id = chosen.agent.id().to_owned();
            let told = format!("the agent is `{id}`, the first that is installed");
            Ok((id, remark, told))
        }
        Err(error) if error.kind == Kind::Agent => {
            let told = "no agent was found, so it says `auto`; `ralph agents` shows what can be installed".to_owned();
            Ok(("auto".to_owned(), "the first that is installed".to_owned(), told))
        }
        Err(error) => Err(error),
    }
}

/// The same from the configuration of another loop, with what it says about the run.
fn taken_over(workspace: &Path) -> Result<(String, String, String, Layer), UserError> {
    let catalog = choose::catalog(workspace, &FileLayer::default())?;
    let mut taken = plugin::settings::layer(&Layer::default().settle(), &catalog, workspace)?;
    let Some(Setting { value: agent, origin }) = taken.agent.take() else {
        return Err(UserError::usage(
            "there is nothing to take over here: no other loop's configuration names an agent",
        )
        .hint("`PLATFORM_DRIVER` in `.ralphrc`, `AGENT` in `config` and `claude_command` in `.ralphex/config` do"));
    };
    // What the contract says by itself goes on holding without being written down.
    taken.keep_from_files();
    let why = format!("asked for by {origin}");
    let told = format!("the agent is `{agent}`, {why}");
    Ok((agent, why, told, taken))
}

/// A file that is whole or not there: a torn one would stop every run.
fn write(path: &Path, text: &str) -> Result<(), UserError> {
    let aside = path.with_extension("yml.new");
    let written = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&aside);
        UserError::usage(format!("cannot write `{}`: {}", path.display(), io_reason(&error)))
    })
}
