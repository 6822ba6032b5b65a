//! `ralph agents`, as far as drivers and agent scripts go: what there is, a new one, and whether one keeps its contract.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agent::{Contract, Live};
use crate::app::choose::{Purpose, choose};
use crate::app::repository::NOT_EXAMINED;
use crate::cli::{Check, New, Show};
use crate::config::{FileLayer, Settings};
use crate::error::{UserError, exit_code, io_reason};
use crate::plugin;
use crate::plugin::by_text;
use crate::plugin::conformance::{self, Examined, Grade};
use crate::plugin::files::{self, find, list, no_such};
use crate::plugin::settings::FoundPlugin;
use crate::process::runtime;
use crate::trust::{self, Item};
use crate::ui::pretty;

const DRIVER: &str = include_str!("skeletons/driver.sh");
const SCRIPT: &str = include_str!("skeletons/script.sh");

/// A driver or a script, as this machine has it.
pub(super) struct Plugin {
    name: String,
    contract: Contract,
    path: PathBuf,
    /// What is wrong with it, or not known of it.
    problem: Option<String>,
}

impl Plugin {
    fn state(&self) -> &'static str {
        match &self.problem {
            None => "installed",
            Some(problem) if problem == NOT_EXAMINED => "not checked",
            Some(_) => "broken",
        }
    }

    /// As a row of the table of agents.
    pub(super) fn cells(&self) -> [String; 7] {
        let dash = || "-".to_owned();
        let state = self.problem.as_ref().map_or_else(String::new, |problem| format!("; {problem}"));
        let state = format!("only by name{state}");
        let path = self.path.display().to_string();
        [self.name.clone(), dash(), self.contract.word().to_owned(), dash(), dash(), format!("no: {state}"), path]
    }

    pub(super) fn json(&self) -> Value {
        let contract = self.contract.word();
        json!({
            "id": self.name, "source": self.path, "contract": contract, "path": self.path,
            "state": self.state(), "problem": self.problem,
            "auto": {"taken": false, "reason": "only by name"},
        })
    }
}

/// Every driver and script here. One that this user has run here before is sourced in a shell of its own; of others only
/// the text is read.
pub(super) fn all(settings: &Settings, workspace: &Path) -> Vec<Plugin> {
    let mut plugins = Vec::new();
    for contract in [Contract::Driver, Contract::Script] {
        for (name, path) in list(contract, workspace) {
            let problem =
                problem(contract, &name, &path, settings, workspace).unwrap_or_else(|error| Some(error.message));
            plugins.push(Plugin { name, contract, path, problem });
        }
    }
    plugins
}

/// Files of other users, which are left out.
pub(super) fn ignored(workspace: &Path) -> Vec<String> {
    [Contract::Driver, Contract::Script].into_iter().flat_map(|contract| files::ignored(contract, workspace)).collect()
}

/// What is wrong with a file, as far as can be seen without calling the agent.
fn problem(
    contract: Contract,
    name: &str,
    path: &Path,
    settings: &Settings,
    workspace: &Path,
) -> Result<Option<String>, UserError> {
    let may_run = trust::known(&[Item::file(contract.word(), path, workspace)?]);
    let known = if may_run {
        examine(contract, name, path, settings, workspace)?
    } else {
        by_text::examine(contract, path, workspace)?
    };
    let bad = known.points.into_iter().find(|point| point.grade == Grade::Bad).map(|point| point.text);
    Ok(match (bad, may_run) {
        (bad, true) => bad,
        (Some(bad), false) => Some(format!("{bad}; {NOT_EXAMINED}")),
        (None, false) => Some(NOT_EXAMINED.to_owned()),
    })
}

/// Loads a file and asks it what a run would ask at its start. The agent's command is looked for, not started.
pub(super) fn examine(
    contract: Contract,
    name: &str,
    path: &Path,
    settings: &Settings,
    workspace: &Path,
) -> Result<Examined, UserError> {
    let (file, _) = plugin::settings::plugin_file(contract, name, path, Live::Wanted, settings, workspace)?;
    Ok(runtime()?.block_on(conformance::examine(&file, workspace)))
}

/// `ralph agents show` for a driver or a script: what its text says, and the command that it builds where this user has run
/// it here before.
pub(super) fn show(
    args: &Show,
    found: &FoundPlugin,
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
) -> Result<String, UserError> {
    let contract = found.contract(workspace)?;
    let may_run = trust::known(&[found.item(workspace)?]);
    let known = if may_run {
        examine(contract, &found.name, &found.path, settings, workspace)?
    } else {
        by_text::examine(contract, &found.path, workspace)?
    };
    let words = if args.prompt.is_empty() { "PROMPT".to_owned() } else { args.prompt.join(" ") };
    let chosen = choose(settings, file, workspace, Purpose::Look);
    let line = match chosen.as_ref().map(|chosen| (&chosen.agent, chosen.agent.plugin.as_ref())) {
        Ok((agent, Some(file))) if may_run => plugin::settings::command_line(agent, file, &words, workspace)?,
        _ => NOT_EXAMINED.to_owned(),
    };
    let said: Vec<&str> = known.points.iter().map(|point| point.text.as_str()).collect();
    if args.json {
        return Ok(pretty(&json!({
            "source": found.path, "contract": contract.word(), "command": known.cli, "minimum": known.minimum,
            "examined": may_run, "points": said, "commands": {"new": line},
        })));
    }
    let unknown = || "unknown".to_owned();
    let mut rows = vec![
        ("agent", format!("{} ({})", found.name, contract.word())),
        ("defined", found.path.display().to_string()),
        ("commands", known.cli.clone().unwrap_or_else(unknown)),
        ("at least", known.minimum.clone().unwrap_or_else(unknown)),
    ];
    rows.extend(said.iter().map(|said| ("note", (*said).to_owned())));
    let mut page = String::new();
    for (name, value) in rows {
        let _ = writeln!(page, "{name:<11} {value}");
    }
    Ok(format!("{page}\nnew:\n  {}\n", line.replace('\n', "\n  ")))
}

/// Writes the skeleton of a driver or a script.
pub(super) fn new(args: &New, workspace: &Path) -> Result<String, UserError> {
    let (contract, name) = match (&args.driver, &args.script) {
        (Some(name), _) => (Contract::Driver, name),
        (None, Some(name)) => (Contract::Script, name),
        (None, None) => {
            return Err(UserError::usage("say what it is: `ralph agents new --driver NAME` or `--script NAME`"));
        }
    };
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(UserError::usage(format!("invalid name `{name}`: use lower-case letters, digits, `-` and `_`")));
    }
    let (directory, skeleton) = match contract {
        Contract::Driver => (".ralph/drivers", DRIVER),
        Contract::Script => (".ralph/agents", SCRIPT),
    };
    let path = Path::new(directory).join(format!("{name}.sh"));
    let write = || {
        std::fs::create_dir_all(workspace.join(directory))?;
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(workspace.join(&path))?;
        std::io::Write::write_all(&mut file, skeleton.replace("@NAME@", name).as_bytes())
    };
    write().map_err(|error| {
        UserError::usage(format!("cannot write `{}`: {}", path.display(), io_reason(&error)))
            .hint("existing files are not overwritten")
    })?;
    let word = contract.word();
    Ok(format!(
        "wrote `{}`\nedit it, then test it: `ralph agents check {name}`\nand run it: `ralph run --agent {word}:{name}`\n",
        path.display()
    ))
}

/// Puts a driver or a script through its contract; the report, and the exit code.
pub(super) fn check(args: &Check, settings: &Settings, workspace: &Path) -> Result<(String, u8), UserError> {
    let (named, path) = locate(&args.name, workspace)?;
    let contract = match named {
        Some(contract) => contract,
        None => files::contract(&path, workspace)?,
    };
    trust::consent(&[Item::file(contract.word(), &path, workspace)?], settings)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (file, _) = plugin::settings::plugin_file(contract, &name, &path, Live::Wanted, settings, workspace)?;
    let points = runtime()?.block_on(conformance::check(&file, workspace))?;
    let mut report = format!("{} `{}`\n", contract.word(), path.display());
    for point in &points {
        let grade = match point.grade {
            Grade::Good => "ok",
            Grade::Note => "note",
            Grade::Bad => "BAD",
        };
        let _ = writeln!(report, "  {grade:<5} {}", point.text.replace('\n', "\n        "));
    }
    let bad = points.iter().filter(|point| point.grade == Grade::Bad).count();
    let _ = match bad {
        0 => writeln!(report, "all points pass"),
        bad => writeln!(report, "{bad} of {} points fail", points.len()),
    };
    Ok((report, if bad == 0 { exit_code::COMPLETE } else { exit_code::AGENT }))
}

/// The file that a name means: with its contract in front, a path, or whichever contract has one.
fn locate(name: &str, workspace: &Path) -> Result<(Option<Contract>, PathBuf), UserError> {
    let both = [Contract::Driver, Contract::Script];
    for contract in both {
        if let Some(name) = name.strip_prefix(contract.word()).and_then(|rest| rest.strip_prefix(':')) {
            let path = find(contract, name, workspace)?.ok_or_else(|| no_such(contract, name, workspace))?;
            return Ok((Some(contract), path));
        }
    }
    if workspace.join(name).is_file() {
        return Ok((None, PathBuf::from(name)));
    }
    for contract in both {
        if let Ok(Some(path)) = find(contract, name, workspace) {
            return Ok((Some(contract), path));
        }
    }
    Err(UserError::usage(format!("no driver or agent script `{name}`"))
        .hint("`ralph agents` lists them")
        .hint(format!("write one: `ralph agents new --driver {name}` or `--script {name}`")))
}
