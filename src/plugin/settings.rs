//! Drivers and agent scripts as agents: which file is meant, and what the configuration of its own loop says.
//!
//! A file is named by `driver:NAME`, `script:NAME`, a path, or a bare name that no agent file has; and by `.ralphrc` or
//! `config` where nothing else names an agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bash::{config as bash_config, ralphrc};
use super::files;
use super::{Chosen, Loaded};
use crate::agent::{Agent, Catalog, Contract, Live, Options, PluginFile, Source, Turn};
use crate::config::{Layer, OrOff, Origin, SessionChoice, Setting, Settings};
use crate::error::{UserError, io_reason};
use crate::plugin::bash::assignments::{Assignment, Assignments};
use crate::plugin::driver::{Driver, tools};
use crate::plugin::script::Script;
use crate::process::runtime;
use crate::process::{self, Invocation, PrivateFile};
use crate::run::decide::Permission;
use crate::run::start_error;
use crate::signals::promise::Match;
use crate::trust::Item;
use crate::user_file;

/// The configuration of the driver contract, in the order in which it is looked for.
const RALPHRC: [&str; 2] = [".ralph/.ralphrc", ".ralphrc"];
/// The configuration of agent scripts, in the order in which it is looked for.
const CONFIG: [&str; 2] = [".ralph/config", "config"];
/// The plan of the driver contract, in the order in which it is looked for.
const PLANS: [&str; 2] = [".ralph/@fix_plan.md", "@fix_plan.md"];
/// A larger file is not a configuration.
const LARGEST: u64 = 1024 * 1024;
/// Whether sessions go on: the public name, and the contract's own.
const CONTINUITY: [&str; 2] = ["SESSION_CONTINUITY", "CLAUDE_USE_CONTINUE"];

/// This program, as the shells of drivers and scripts call it.
pub(crate) fn helper() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| process::own_program())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A configuration of another loop.
struct Read {
    path: PathBuf,
    values: Assignments,
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

    fn ralphrc(workspace: &Path) -> Result<Option<Self>, UserError> {
        Self::first(&RALPHRC, workspace, |text| ralphrc::parse(text, variable))
    }

    fn config(workspace: &Path) -> Result<Option<Self>, UserError> {
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

/// A file that was found, before anything of it has run.
pub(crate) struct Found {
    contract: Option<Contract>,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    origin: Origin,
}

impl Found {
    pub(crate) fn contract(&self, workspace: &Path) -> Result<Contract, UserError> {
        self.contract.map_or_else(|| files::contract(&self.path, workspace), Ok)
    }

    pub(crate) fn item(&self, workspace: &Path) -> Result<Item, UserError> {
        Item::file(self.contract.map_or("plug-in", Contract::word), &self.path, workspace)
    }
}

/// The file that the settings mean; none when they mean another agent.
pub(crate) fn find(settings: &Settings, catalog: &Catalog, workspace: &Path) -> Result<Option<Found>, UserError> {
    let named = settings.agent.value.as_str();
    let origin = settings.agent.origin.clone();
    let of = |contract: Contract, name: &str, origin: Origin| -> Result<Option<Found>, UserError> {
        if let Some(path) = files::find(contract, name, workspace)? {
            return Ok(Some(Found { contract: Some(contract), name: name.to_owned(), path, origin }));
        }
        let error = files::no_such(contract, name, workspace);
        Err(UserError { message: format!("{} (from {origin})", error.message), ..error })
    };
    for contract in [Contract::Driver, Contract::Script] {
        if let Some(name) = named.strip_prefix(contract.word()).and_then(|rest| rest.strip_prefix(':')) {
            return of(contract, name, origin);
        }
    }
    if matches!(origin, Origin::Default) && settings.custom_command().is_none() {
        if let Some(read) = Read::ralphrc(workspace)?
            && let Some(driver) = read.values.find("PLATFORM_DRIVER")
        {
            return of(Contract::Driver, &driver.value, read.origin(driver));
        }
        if let Some(read) = Read::config(workspace)?
            && let Some(agent) = read.values.find("AGENT")
            // Many projects have a file of this name: it is meant only where there are scripts too.
            && (read.path != Path::new("config") || !files::list(Contract::Script, workspace).is_empty())
        {
            return of(Contract::Script, &agent.value, read.origin(agent));
        }
        return Ok(None);
    }
    if named.contains('/') || Path::new(named).extension().is_some_and(|extension| extension == "sh") {
        let path = PathBuf::from(named);
        if !workspace.join(&path).is_file() {
            return Err(UserError::usage(format!("there is no file `{named}` (from {origin})"))
                .hint("give the path of a driver or of an agent script, or a name that `ralph agents` shows"));
        }
        user_file::usable(&workspace.join(&path)).map_err(UserError::usage)?;
        let name = path.file_stem().map_or_else(|| named.to_owned(), |stem| stem.to_string_lossy().into_owned());
        return Ok(Some(Found { contract: None, name, path, origin }));
    }
    if ["auto", "custom"].contains(&named) || catalog.names().contains(&named) {
        return Ok(None);
    }
    for contract in [Contract::Driver, Contract::Script] {
        if files::find(contract, named, workspace)?.is_some() {
            return of(contract, named, origin);
        }
    }
    Ok(None)
}

/// The driver or script as an agent. It is loaded to learn what it says of itself, unless it may not run.
pub(crate) fn choose(
    found: Found,
    settings: &Settings,
    options: Options,
    catalog: &Catalog,
    workspace: &Path,
    may_load: bool,
) -> Result<Chosen, UserError> {
    let contract = found.contract(workspace)?;
    let Found { name, path, origin, .. } = found;
    let live = if settings.live.value { Live::Wanted } else { Live::Off };
    let (file, mut notices) = plugin_file(contract, &name, &path, live, settings, workspace)?;
    let mut agent = file.clone().agent(&name, options);
    let environment = agent.environment(&Turn::new("", workspace));
    let mut loaded = None;
    if may_load {
        loaded = Some(runtime()?.block_on(async {
            Ok::<_, UserError>(match contract {
                Contract::Driver => {
                    let mut driver = Driver::load(&file, workspace, environment).await?;
                    learn(&mut agent, &mut driver, settings, &mut notices, workspace).await?;
                    Loaded::Driver(Box::new(driver))
                }
                Contract::Script => {
                    let script = Script::load(&file, workspace, environment).await?;
                    agent.program = script.cli.clone().into();
                    agent.definition.name.clone_from(&script.cli);
                    Loaded::Script(Box::new(script))
                }
            })
        })?);
        agent.definition.dialect = dialect(&agent, catalog);
    } else {
        // Which program it is about, only the file itself can say.
        agent.program = "bash".into();
    }
    let word = contract.word();
    notices.insert(0, format!("agent `{name}` is the {word} `{}` (from {origin}); its code runs here", path.display()));
    let why = format!("asked for by {origin}");
    Ok(Chosen { agent, source: Some(Source::File(path)), why, notices, loaded })
}

/// A file with the variables that it finds set, and what to tell about them.
pub(crate) fn plugin_file(
    contract: Contract,
    name: &str,
    path: &Path,
    live: Live,
    settings: &Settings,
    workspace: &Path,
) -> Result<(PluginFile, Vec<String>), UserError> {
    let (globals, exports, notices) = match contract {
        Contract::Driver => driver_variables(settings, live, name, workspace)?,
        Contract::Script => script_variables(path, workspace)?,
    };
    crate::redact::learn(globals.iter().chain(&exports).cloned());
    let file = PluginFile { contract, path: path.to_owned(), globals, exports, live, helper: helper() };
    Ok((file, notices))
}

/// The command of the first iteration, as the hooks of a driver build it. Its CLI is not started.
pub(crate) fn command_line(
    agent: &Agent,
    file: &PluginFile,
    words: &str,
    workspace: &Path,
) -> Result<String, UserError> {
    if file.contract == Contract::Script {
        let path = file.path.display();
        return Ok(format!(
            "agent_invoke PROMPT_FILE  # in a shell that has sourced `{path}`, which alone knows the rest"
        ));
    }
    let quote = |word: &std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        shlex::try_quote(&word).map(std::borrow::Cow::into_owned).unwrap_or(word)
    };
    let environment = agent.environment(&Turn::new("", workspace));
    runtime()?.block_on(async {
        let mut driver = Driver::load(file, workspace, environment).await?;
        let file = PrivateFile::new(&std::env::temp_dir(), words.as_bytes())
            .map_err(|error| UserError::failed(format!("cannot write the prompt to a file: {error}")))?;
        let built = driver.build(file.path(), "", "", workspace).await?;
        driver.close().await;
        let argv = std::iter::once(&built.invocation.program).chain(&built.invocation.args);
        let line = argv.map(quote).collect::<Vec<_>>().join(" ");
        Ok(line.replace(&file.path().display().to_string(), "PROMPT_FILE"))
    })
}

/// What a driver says of itself becomes the agent's definition.
async fn learn(
    agent: &mut Agent,
    driver: &mut Driver,
    settings: &Settings,
    notices: &mut Vec<String>,
    workspace: &Path,
) -> Result<(), UserError> {
    let facts = driver.facts.clone();
    let wanted = settings.tools.value.join(",");
    if !wanted.is_empty() && facts.allowlist {
        tools::validate(&wanted, &facts.tools, &facts.display_name)?;
    } else if !wanted.is_empty() {
        notices.push(format!("the list of tools is ignored: {} cannot be limited to tools", facts.display_name));
    }
    // The hooks find them in a variable; on the command line they stand by the driver's own word.
    agent.options.tools.clear();
    let (minimum, _) = driver.metadata().await?;
    agent.definition.permission_help = Some(driver.denial_help().await?);
    agent.definition.name.clone_from(&facts.display_name);
    agent.definition.version.minimum = minimum;
    agent.program = facts.binary.clone().into();
    if !facts.sessions {
        agent.definition.session.resume = None;
    }
    process::check(&Invocation::new(&facts.binary, workspace)).map_err(|error| {
        let error = start_error(&error);
        UserError { message: format!("driver `{}`: {}", agent.id(), error.message), ..error }
    })?;
    Ok(())
}

/// The dialect of the agent file that has the same command; plain, which sees others by itself, when there is none.
fn dialect(agent: &Agent, catalog: &Catalog) -> String {
    let program = Path::new(&agent.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let known = catalog.entries().iter().find(|entry| entry.definition.commands.contains(&program));
    known.map_or_else(|| "plain".to_owned(), |entry| entry.definition.dialect.clone())
}

/// Variables for a file, those for its commands too, and what to tell.
type Variables = (Vec<(String, String)>, Vec<(String, String)>, Vec<String>);

/// The variables that a driver finds set: its contract's defaults, `.ralphrc`, the environment, the flags.
fn driver_variables(settings: &Settings, live: Live, name: &str, workspace: &Path) -> Result<Variables, UserError> {
    let read = Read::ralphrc(workspace)?;
    let file = |names: &[&str]| {
        let values = read.as_ref().map(|read| &read.values)?;
        names.iter().find_map(|name| values.get(name)).map(str::to_owned)
    };
    let environment =
        |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    // The public name beats the contract's own, and the environment beats the file.
    let value = |names: &[&str], default: &str| {
        environment(names).or_else(|| file(names)).unwrap_or_else(|| default.to_owned())
    };
    let one_of = |name: &str, value: String, known: &[&str]| -> Result<String, UserError> {
        if known.contains(&value.as_str()) {
            return Ok(value);
        }
        Err(UserError::usage(format!("`{name}` must be one of {}, found `{value}`", known.join(", "))))
    };
    let format = value(&["CLAUDE_OUTPUT_FORMAT"], "json");
    let format = one_of("CLAUDE_OUTPUT_FORMAT", format, &["json", "text"])?;
    // A text has no lines to filter.
    let format = if live == Live::Wanted { "json".to_owned() } else { format };
    let modes = ["auto", "acceptEdits", "bypassPermissions", "default", "dontAsk", "plan"];
    let mode = value(&["CLAUDE_PERMISSION_MODE"], "bypassPermissions");
    let mode = one_of("CLAUDE_PERMISSION_MODE", mode, &modes)?;
    let allowed = match settings.tools.value.as_slice() {
        [] => value(&["ALLOWED_TOOLS", "CLAUDE_ALLOWED_TOOLS"], tools::DEFAULT),
        wanted => wanted.join(","),
    };
    let usual = value(&CONTINUITY, "true");
    // The user's own word comes before the contract's.
    let goes_on = match (&settings.session.origin, settings.session.value) {
        (Origin::Default | Origin::Contract(_), _) => usual == "true",
        (_, SessionChoice::Fresh) => false,
        (_, SessionChoice::Resume | SessionChoice::ResumeUntil(_)) => true,
    };
    let own = read.as_ref().map_or_else(|| RALPHRC[1].to_owned(), |read| read.path.display().to_string());
    let mut globals: Vec<(String, String)> = read.iter().flat_map(|read| &read.values.all).map(pair).collect();
    let promised = [
        ("CLAUDE_OUTPUT_FORMAT", format),
        ("CLAUDE_PERMISSION_MODE", mode),
        ("CLAUDE_ALLOWED_TOOLS", allowed),
        ("CLAUDE_USE_CONTINUE", goes_on.to_string()),
        ("RALPHRC_FILE", own),
        ("PLATFORM_DRIVER", name.to_owned()),
        ("RALPH_DIR", ".ralph".to_owned()),
    ];
    globals.extend(promised.map(|(name, value)| (name.to_owned(), value)));
    let mut notices = warnings(read.as_ref());
    for command in ["TEST_COMMAND", "QUALITY_GATES"] {
        if file(&[command]).is_some() {
            notices.push(format!("`{command}` of `.ralphrc` is not run: put it under `verify:` in `ralph.yml`"));
        }
    }
    Ok((globals, Vec::new(), notices))
}

/// The variables that a script finds set: `config`, and what its loop exports.
fn script_variables(path: &Path, workspace: &Path) -> Result<Variables, UserError> {
    let read = Read::config(workspace)?;
    let of_config = |name: &str| read.as_ref().and_then(|read| read.values.get(name)).map(str::to_owned);
    let file = PluginFile {
        contract: Contract::Script,
        path: path.to_owned(),
        globals: Vec::new(),
        exports: Vec::new(),
        live: Live::Wanted,
        helper: helper(),
    };
    let home = file.home();
    let mut globals: Vec<(String, String)> = read.iter().flat_map(|read| &read.values.all).map(pair).collect();
    globals.push(("RALPH_DIR".to_owned(), workspace.join(&home).display().to_string()));
    let exports = [
        ("MODE", "prompt".to_owned()),
        ("SPECS_DIR", of_config("SPECS_DIR").unwrap_or_else(|| "specs".to_owned())),
        ("PROCESS_DIR", of_config("PROCESS_DIR").unwrap_or_default()),
        ("RALPH_HOME", home.display().to_string()),
    ];
    let exports = exports.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Ok((globals, exports, warnings(read.as_ref())))
}

fn pair(assignment: &Assignment) -> (String, String) {
    (assignment.name.clone(), assignment.value.clone())
}

fn warnings(read: Option<&Read>) -> Vec<String> {
    let told = read
        .iter()
        .flat_map(|read| read.values.warnings.iter().map(|warning| format!("`{}`: {warning}", read.path.display())));
    told.collect()
}

/// What the configuration of a contract says about the loop, below `ralph.yml` and above the defaults.
pub(crate) fn layer(agent: &Agent, workspace: &Path) -> Result<Layer, UserError> {
    match agent.plugin.as_ref().map(|file| file.contract) {
        None => Ok(Layer::default()),
        Some(Contract::Driver) => Ok(driver_layer(Read::ralphrc(workspace)?.as_ref(), workspace)),
        Some(Contract::Script) => Ok(script_layer(Read::config(workspace)?.as_ref())),
    }
}

fn driver_layer(read: Option<&Read>, workspace: &Path) -> Layer {
    let minutes = |text: &str| text.parse::<u64>().ok().map(|minutes| Duration::from_secs(minutes * 60));
    let hours = |text: &str| text.parse::<u64>().ok().map(|hours| Duration::from_secs(hours * 3600));
    let count = |text: &str| text.parse::<u32>().ok().filter(|&count| count > 0);
    let by_contract = Origin::Contract(Contract::Driver.word());
    let plan = PLANS.iter().map(PathBuf::from).find(|path| workspace.join(path).is_file());
    let environment = CONTINUITY.iter().find_map(|&name| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(Setting::new(sessions(&value), Origin::Environment(name)))
    });
    let named = CONTINUITY.iter().find_map(|name| read?.setting(name, |text| Some(sessions(text))));
    Layer {
        timeout: read.and_then(|read| read.setting("CLAUDE_TIMEOUT_MINUTES", minutes)),
        prompt_file: read.and_then(|read| read.setting("PROMPT_FILE", |text| Some(Some(PathBuf::from(text))))),
        session: environment.or(named).or(Some(Setting::new(SessionChoice::Resume, by_contract.clone()))),
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
    let count = |text: &str| text.parse::<u32>().ok();
    let tries = read.and_then(|read| read.setting("MAX_RETRIES", |text| count(text).map(|retries| retries + 1)));
    Layer {
        max_iterations: read
            .and_then(|read| read.setting("DEFAULT_MAX_ITERATIONS", |text| count(text).filter(|&n| n > 0))),
        max_consecutive_failures: Some(tries.unwrap_or(Setting::new(4, Origin::Contract("script")))),
        completion_match: Some(Setting::new(Match::Anywhere, Origin::Contract("script"))),
        ..Layer::default()
    }
}
