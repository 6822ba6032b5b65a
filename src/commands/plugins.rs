//! `ralph agents`, as far as drivers and agent scripts go: what there is, a new one, and whether one keeps its contract.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::foreign;
use super::runtime;
use super::trust::{self, Standing};
use crate::agent::conformance::{self, Grade};
use crate::agent::foreign::{find, list, no_such};
use crate::agent::{Contract, Foreign, Live};
use crate::cli::{Check, New};
use crate::config::{Settings, Trust};
use crate::error::{UserError, exit_code, io_reason};
use crate::process::{self, Invocation};

const DRIVER: &str = include_str!("skeletons/driver.sh");
const SCRIPT: &str = include_str!("skeletons/script.sh");

/// A driver or a script, as this machine has it.
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// What it promises.
    pub contract: Contract,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Option<String>,
}

impl Plugin {
    /// As a row of the table of agents.
    pub fn cells(&self) -> [String; 7] {
        let dash = || "-".to_owned();
        let state = self.problem.clone().unwrap_or_else(|| "only when it is named".to_owned());
        let path = self.path.display().to_string();
        [self.name.clone(), dash(), self.contract.word().to_owned(), dash(), dash(), format!("no: {state}"), path]
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let contract = self.contract.word();
        json!({
            "id": self.name, "source": self.path, "contract": contract, "path": self.path,
            "state": if self.problem.is_some() { "broken" } else { "installed" }, "problem": self.problem,
            "auto": {"taken": false, "reason": "only when it is named"},
        })
    }
}

/// Every driver and script here. Each is sourced in a shell of its own, unless it is not allowed to run.
pub fn all(settings: &Settings, workspace: &Path) -> Result<Vec<Plugin>, UserError> {
    let runtime = runtime()?;
    let wanted = trust::wanted(settings)?;
    let mut plugins = Vec::new();
    for contract in [Contract::Driver, Contract::Script] {
        for (name, path) in list(contract, workspace) {
            let held = wanted == Trust::Ask && trust::standing(&workspace.join(&path))? != Standing::Trusted;
            let problem = if held {
                Some("not allowed to run yet (`trust: ask`)".to_owned())
            } else {
                runtime.block_on(problem(contract, &path, workspace))
            };
            plugins.push(Plugin { name, contract, path, problem });
        }
    }
    Ok(plugins)
}

/// What is wrong with a file, as far as can be seen without calling the agent.
async fn problem(contract: Contract, path: &Path, workspace: &Path) -> Option<String> {
    let functions = match conformance::functions(path, workspace, &foreign::helper()).await {
        Ok(functions) => functions,
        Err(error) => return Some(error.message),
    };
    let missing = contract.missing(&functions);
    if !missing.is_empty() {
        return Some(format!("lacks {}", missing.join(", ")));
    }
    let command = conformance::command(contract, path, workspace, &foreign::helper()).await;
    match command {
        Ok(command) if process::check(&Invocation::new(&command, workspace)).is_ok() => None,
        Ok(command) => Some(format!("its command `{command}` was not found")),
        Err(error) => Some(error.message),
    }
}

/// Writes the skeleton of a driver or a script.
pub fn new(args: &New, workspace: &Path) -> Result<String, UserError> {
    let (contract, name) = match (&args.driver, &args.script) {
        (Some(name), _) => (Contract::Driver, name),
        (None, Some(name)) => (Contract::Script, name),
        (None, None) => {
            return Err(UserError::usage("say what it is: `ralph agents new --driver NAME` or `--script NAME`"));
        }
    };
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(UserError::usage(format!("`{name}` is no name: use small letters, digits, `-` and `_`")));
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
            .hint("an existing file is never written over")
    })?;
    let word = contract.word();
    Ok(format!(
        "wrote `{}`\nfill it in, then test it: `ralph agents check {name}`\nand run it: `ralph run --agent {word}:{name}`\n",
        path.display()
    ))
}

/// Puts a driver or a script through its contract; the report, and the exit code.
pub fn check(args: &Check, settings: &Settings, workspace: &Path) -> Result<(String, u8), UserError> {
    let (named, path) = locate(&args.name, workspace)?;
    trust::ask(std::slice::from_ref(&path), settings, workspace)?;
    let runtime = runtime()?;
    let functions = runtime.block_on(conformance::functions(&path, workspace, &foreign::helper()))?;
    let contract = match named {
        Some(contract) => contract,
        None => {
            Contract::of(&functions).map_err(|problem| UserError::agent(format!("`{}`: {problem}", path.display())))?
        }
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (globals, exports, _) = foreign::variables(contract, settings, Live::Wanted, &name, &path, workspace)?;
    let foreign =
        Foreign { contract, path: path.clone(), globals, exports, live: Live::Wanted, helper: foreign::helper() };
    let points = runtime.block_on(conformance::check(&foreign, workspace))?;
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
        0 => writeln!(report, "it keeps its contract"),
        bad => writeln!(report, "{bad} of {} points are against its contract", points.len()),
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
    Err(UserError::usage(format!("there is no driver and no agent script `{name}`"))
        .hint("see what there is: `ralph agents`")
        .hint(format!("write one: `ralph agents new --driver {name}` or `--script {name}`")))
}
