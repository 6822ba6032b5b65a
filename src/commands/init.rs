//! `ralph init`: a `ralph.yml` with the agent that is installed and the command that tests this project. It overwrites
//! nothing unless asked to.

use std::path::Path;

use crate::app::choose::{self, Purpose};
use crate::app::project;
use crate::app::working_directory;
use crate::cli::Init;
use crate::config::{self, FileLayer, Layer, Setting};
use crate::error::{Kind, UserError, io_reason};
use crate::plugin;
use crate::process::{self, wall};
use crate::sandbox;
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
        let error = UserError::usage(format!("`{there}` already exists; it was not changed"));
        return Err(match there {
            FILE => error.hint("show its settings: `ralph config`; overwrite it: `ralph init --force`"),
            _ => error.hint(format!("ralph reads it like `{FILE}`; move it away first")),
        });
    }
    let (agent, remark, told, taken) = if args.from {
        taken_over(&workspace)?
    } else {
        let (agent, remark, told) = agent(args, &workspace)?;
        (agent, remark, told, Layer::default())
    };
    let test = project::test_command(&workspace);
    let text = if args.full || args.from {
        config::template(&agent, &remark, &taken)
    } else {
        let test = test.as_ref().map(|test| (test.command.as_str(), test.source.as_str()));
        let no_sandbox = sandbox::choose(&wall::machine(), sandbox::Backend::Auto).err();
        config::short(&agent, test, no_sandbox.as_deref())
    };
    write(&workspace.join(FILE), &text)?;
    let check = match &test {
        Some(test) if !args.full && !args.from => {
            format!("completion check: `{}` (from {})\n", test.command, test.source)
        }
        _ if args.full || args.from => String::new(),
        _ => "no completion check found: set `verify` in it, or ralph believes the agent\n".to_owned(),
    };
    let next = if ["PROMPT.md", ".ralph/PROMPT.md"].iter().any(|prompt| workspace.join(prompt).exists()) {
        "see what would run: `ralph run --dry-run`"
    } else {
        "`ralph run \"what to do\"`, or write it to `PROMPT.md` and type `ralph run`"
    };
    // The reader may be gone.
    let _ = out::print(&format!("wrote `{FILE}`: {told}\n{check}next: commit it, then {next}\n"));
    Ok(0)
}

/// The agent to write down, the remark behind it, and what to tell.
fn agent(args: &Init, workspace: &Path) -> Result<(String, String, String), UserError> {
    let remark = "or `auto`, or another name from `ralph agents`".to_owned();
    if let Some(name) = &args.agent {
        if !["auto", "custom"].contains(&name.as_str()) {
            choose::catalog(workspace, &FileLayer::default()).find(name)?;
        }
        return Ok((name.clone(), remark, format!("agent `{name}`")));
    }
    let settings = choose::settle(Layer::default(), &FileLayer::default(), workspace)?;
    let Setting { value, origin } = &settings.agent;
    if value != "auto" {
        return Ok((value.clone(), remark, format!("agent `{value}` (from {origin})")));
    }
    process::protect(process::own_program());
    match choose::choose(&settings, &FileLayer::default(), workspace, Purpose::Look) {
        Ok(chosen) => {
            let id = chosen.agent.id().to_owned();
            let told = format!("agent `{id}`, the first one installed");
            Ok((id, remark, told))
        }
        Err(error) if error.kind == Kind::Agent => {
            let told = "agent `auto`; none is installed yet, `ralph agents` lists what ralph knows".to_owned();
            Ok(("auto".to_owned(), "the first one installed".to_owned(), told))
        }
        Err(error) => Err(error),
    }
}

/// The same from the configuration of another loop, with what it says about the run.
fn taken_over(workspace: &Path) -> Result<(String, String, String, Layer), UserError> {
    let catalog = choose::catalog(workspace, &FileLayer::default());
    let mut taken = plugin::settings::layer(&Layer::default().settle(), &catalog, workspace)?;
    let Some(Setting { value: agent, origin }) = taken.agent.take() else {
        return Err(UserError::usage("no configuration of another loop found").hint(
            "looked for `PLATFORM_DRIVER` in `.ralphrc`, `AGENT` in `config` and `claude_command` in `.ralphex/config`",
        ));
    };
    // What the contract itself sets need not be written.
    taken.keep_from_files();
    let why = format!("from {origin}");
    let told = format!("agent `{agent}`, {why}");
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
