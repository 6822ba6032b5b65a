//! The configuration of the loops that drivers and agent scripts were written for: where it is, which plug-in it names, and
//! what it says about a run. It is read, never executed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bash::assignments::{Assignment, Assignments};
use super::bash::{config as bash_config, ralphrc};
use super::driver::tools;
use super::files;
use crate::agent::Contract;
use crate::config::{Layer, OrOff, Origin, SessionChoice, Setting};
use crate::error::{UserError, io_reason};
use crate::run::decide::Permission;
use crate::signals::promise::Match;
use crate::user_file;

/// The configuration of the driver contract, in the order in which it is looked for.
pub(super) const RALPHRC: [&str; 2] = [".ralph/.ralphrc", ".ralphrc"];
/// The configuration of agent scripts, in the order in which it is looked for.
const CONFIG: [&str; 2] = [".ralph/config", "config"];
/// The plan of the driver contract, in the order in which it is looked for.
const PLANS: [&str; 2] = [".ralph/@fix_plan.md", "@fix_plan.md"];
/// A larger file is not a configuration.
const LARGEST: u64 = 1024 * 1024;
/// The prompt of the driver contract.
const PROMPT: &str = ".ralph/PROMPT.md";
/// The driver when nobody names one.
const DEFAULT_DRIVER: &str = "claude-code";
/// How often a script's iteration is retried when nothing is said.
pub(super) const RETRIES: u32 = 3;
/// The tools that the agent may use: the public name, and the contract's own.
pub(super) const ALLOWED_TOOLS: [&str; 2] = ["ALLOWED_TOOLS", "CLAUDE_ALLOWED_TOOLS"];
/// Whether sessions continue: the public name, and the contract's own.
pub(super) const CONTINUITY: [&str; 2] = ["SESSION_CONTINUITY", "CLAUDE_USE_CONTINUE"];

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A configuration of another loop.
pub(super) struct Read {
    pub(super) path: PathBuf,
    pub(super) values: Assignments,
}

impl Read {
    /// Reads the first of the files that is there.
    fn first(names: &[&str], workspace: &Path, parse: fn(&str) -> Assignments) -> Result<Option<Self>, UserError> {
        let Some(path) = names.iter().map(PathBuf::from).find(|path| workspace.join(path).is_file()) else {
            return Ok(None);
        };
        if let Err(reason) = user_file::usable(&workspace.join(&path)) {
            let values = Assignments { warnings: vec![reason], ..Assignments::default() };
            return Ok(Some(Self { path, values }));
        }
        let bytes = user_file::read(&workspace.join(&path), LARGEST)
            .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
        let values = parse(&String::from_utf8_lossy(&bytes));
        Ok(Some(Self { path, values }))
    }

    pub(super) fn ralphrc(workspace: &Path) -> Result<Option<Self>, UserError> {
        Self::first(&RALPHRC, workspace, |text| ralphrc::parse(text, variable))
    }

    pub(super) fn config(workspace: &Path) -> Result<Option<Self>, UserError> {
        Self::first(&CONFIG, workspace, |text| bash_config::parse(text, variable))
    }

    fn origin(&self, assignment: &Assignment) -> Origin {
        Origin::File { path: self.path.clone(), line: assignment.line }
    }

    /// A value with its place, when it can be read as one.
    fn setting<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<Setting<T>> {
        let found = self.values.find(name)?;
        read(&found.value).map(|value| Setting::new(value, self.origin(found)))
    }
}

/// The plug-in that a configuration of another loop names, with who says so.
pub(crate) fn named(workspace: &Path) -> Result<Option<(Contract, String, Origin)>, UserError> {
    let read = Read::ralphrc(workspace)?;
    if read.is_some() || !files::list(Contract::Driver, workspace).is_empty() {
        let written = read.as_ref().and_then(|read| Some((read, read.values.find("PLATFORM_DRIVER")?)));
        let environment = environment(&["PLATFORM_DRIVER"]).map(|(name, value)| (value, Origin::Environment(name)));
        let by_default =
            || read.is_some().then(|| (DEFAULT_DRIVER.to_owned(), Origin::Contract(Contract::Driver.word())));
        let driver = written.map(|(read, driver)| (driver.value.clone(), read.origin(driver)));
        if let Some((name, origin)) = driver.or(environment).or_else(by_default) {
            return Ok(Some((Contract::Driver, name, origin)));
        }
    }
    if let Some(read) = Read::config(workspace)?
        && let Some(agent) = read.values.find("AGENT")
        // Many projects have a file of this name: it is meant only where there are scripts too.
        && (read.path != Path::new("config") || !files::list(Contract::Script, workspace).is_empty())
    {
        return Ok(Some((Contract::Script, agent.value.clone(), read.origin(agent))));
    }
    Ok(None)
}

/// The first of these variables that is set.
pub(super) fn environment(names: &[&'static str]) -> Option<(&'static str, String)> {
    names.iter().find_map(|&name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?)))
}

/// True when the driver is the one that the contract means by default, no file has it, and the project is one of that
/// contract: then the built-in claude does its work.
pub(crate) fn lacks_default_driver(contract: Contract, name: &str, workspace: &Path) -> bool {
    contract == Contract::Driver
        && name == DEFAULT_DRIVER
        && matches!(files::find(contract, name, workspace), Ok(None))
        && RALPHRC.iter().any(|path| workspace.join(path).is_file())
}

/// What the configuration of a contract says about the loop, below `ralph.yml` and above the defaults.
pub(crate) fn layer(contract: Contract, workspace: &Path) -> Result<Layer, UserError> {
    match contract {
        Contract::Driver => Ok(driver_layer(Read::ralphrc(workspace)?.as_ref(), workspace)),
        Contract::Script => Ok(script_layer(Read::config(workspace)?.as_ref())),
    }
}

fn driver_layer(read: Option<&Read>, workspace: &Path) -> Layer {
    let minutes = |text: &str| text.parse::<u64>().ok().map(|minutes| Duration::from_secs(minutes * 60));
    let hours = |text: &str| text.parse::<u64>().ok().map(|hours| Duration::from_secs(hours * 3600));
    let count = |text: &str| text.parse::<u32>().ok().filter(|&count| count > 0);
    let by_contract = Origin::Contract(Contract::Driver.word());
    let plan = PLANS.iter().map(PathBuf::from).find(|path| workspace.join(path).is_file());
    let goes_on = environment(&CONTINUITY)
        .map(|(name, value)| Setting::new(sessions(&value), Origin::Environment(name)))
        .or_else(|| CONTINUITY.iter().find_map(|name| read?.setting(name, |text| Some(sessions(text)))));
    let allowed = environment(&ALLOWED_TOOLS)
        .map(|(name, value)| Setting::new(tools::split(&value), Origin::Environment(name)))
        .or_else(|| ALLOWED_TOOLS.iter().find_map(|name| read?.setting(name, |text| Some(tools::split(text)))));
    let prompt =
        workspace.join(PROMPT).is_file().then(|| Setting::new(Some(PathBuf::from(PROMPT)), by_contract.clone()));
    Layer {
        timeout: read.and_then(|read| read.setting("CLAUDE_TIMEOUT_MINUTES", minutes)),
        tools: allowed,
        prompt_file: read
            .and_then(|read| read.setting("PROMPT_FILE", |text| Some(Some(PathBuf::from(text)))))
            .or(prompt),
        session: goes_on.or(Some(Setting::new(SessionChoice::Resume, by_contract.clone()))),
        session_expiry: read.and_then(|read| read.setting("SESSION_EXPIRY_HOURS", hours)),
        permission: read
            .and_then(|read| read.setting("PERMISSION_DENIAL_MODE", permission))
            .or(Some(Setting::new(Permission::Continue, by_contract.clone()))),
        max_stalled: read
            .and_then(|read| read.setting("CB_NO_PROGRESS_THRESHOLD", |text| text.parse().ok().map(OrOff)))
            .or(Some(Setting::new(OrOff(3), by_contract.clone()))),
        calls_per_hour: read
            .and_then(|read| read.setting("MAX_CALLS_PER_HOUR", |text| count(text).map(Some)))
            .or(Some(Setting::new(Some(100), by_contract.clone()))),
        plan_file: read
            .and_then(|read| read.setting("FIX_PLAN_FILE", |text| Some(Some(PathBuf::from(text)))))
            .or_else(|| plan.map(|path| Setting::new(Some(path), by_contract.clone()))),
        // A claim must be made twice in a row.
        confirmations: Some(Setting::new(2, by_contract)),
        ..Layer::default()
    }
}

fn sessions(text: &str) -> SessionChoice {
    if text == "true" { SessionChoice::Resume } else { SessionChoice::Fresh }
}

fn permission(text: &str) -> Option<Permission> {
    match text {
        "continue" => Some(Permission::Continue),
        "halt" => Some(Permission::Halt),
        "threshold" => Some(Permission::Threshold),
        _ => None,
    }
}

fn script_layer(read: Option<&Read>) -> Layer {
    let iterations = |text: &str| text.parse::<u32>().ok().filter(|&count| count > 0);
    Layer {
        max_iterations: read.and_then(|read| read.setting("DEFAULT_MAX_ITERATIONS", iterations)),
        // Each iteration is retried by itself; one that fails for good ends the run.
        max_consecutive_failures: Some(Setting::new(1, Origin::Contract(Contract::Script.word()))),
        completion_match: Some(Setting::new(Match::AnyLine, Origin::Contract(Contract::Script.word()))),
        ..Layer::default()
    }
}
