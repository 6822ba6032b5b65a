//! Drivers and agent scripts as agents: which file is meant, and what the configuration of its own loop says.
//!
//! A file is named by `driver:NAME`, `script:NAME`, a path, or a bare name that no agent file has; and by `.ralphrc` or
//! `config` where nothing else names an agent ([`layer`]).

use std::path::{Path, PathBuf};

use super::loop_config::{self, CONTINUITY, RALPHRC, Read};
use super::{Chosen, Loaded, files, script, wrapper};
use crate::agent::{self, Agent, Catalog, Contract, Live, Options, PluginFile, Source, Turn, home_of};
use crate::config::{Layer, Origin, SessionChoice, Setting, Settings};
use crate::error::{UserError, io_reason};
use crate::plugin::bash::assignments::Assignment;
use crate::plugin::driver::{Driver, tools};
use crate::plugin::script::plan_slices::Plan;
use crate::plugin::script::{PLAN, Script};
use crate::process::runtime;
use crate::process::{self, Invocation, PrivateFile, StartError};
use crate::run::{self, start_error};
use crate::trust::Item;
use crate::user_file;

/// The permission mode in which claude asks for nothing.
const BYPASS: &str = "bypassPermissions";

/// This program, as the shells of drivers and scripts call it.
pub(crate) fn helper() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| process::own_program())
}

/// A file that was found, before anything of it has run.
pub(crate) struct FoundPlugin {
    contract: Option<Contract>,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    origin: Origin,
}

impl FoundPlugin {
    pub(crate) fn contract(&self, workspace: &Path) -> Result<Contract, UserError> {
        self.contract.map_or_else(|| files::contract(&self.path, workspace), Ok)
    }

    pub(crate) fn item(&self, workspace: &Path) -> Result<Item, UserError> {
        Item::file(self.contract.map_or("plug-in", Contract::word), &self.path, workspace)
    }
}

/// The settings below the user's own: the plug-in that the configuration of another loop names, and what that configuration
/// says about the run.
pub(crate) fn layer(asked: &Settings, catalog: &Catalog, workspace: &Path) -> Result<Layer, UserError> {
    let unnamed = matches!(asked.agent.origin, Origin::Default) && asked.custom_command().is_none();
    let named = if unnamed { loop_config::named(workspace)? } else { None };
    if let Some((contract, name, origin)) = named {
        let agent = Some(Setting::new(format!("{}:{name}", contract.word()), origin));
        return Ok(Layer { agent, ..loop_config::layer(contract, workspace)? });
    }
    if let Some(found) = find(asked, catalog, workspace)? {
        return loop_config::layer(found.contract(workspace)?, workspace);
    }
    if lacks_driver_file(asked, workspace) {
        loop_config::layer(Contract::Driver, workspace)
    } else {
        wrapper::layer(asked, workspace)
    }
}

/// True when the settings mean the default driver of the contract and no file has it.
pub(crate) fn lacks_driver_file(settings: &Settings, workspace: &Path) -> bool {
    let name = settings.agent.value.strip_prefix("driver:");
    name.is_some_and(|name| loop_config::lacks_default_driver(Contract::Driver, name, workspace))
}

/// The built-in claude in place of the default driver, when no file has that: it gets the tools that `.ralphrc` allows, by
/// claude's own flag, and no permission beyond them.
pub(crate) fn claude_for_driver(
    settings: &Settings,
    options: Options,
    catalog: &Catalog,
    workspace: &Path,
) -> Result<Option<Chosen>, UserError> {
    if !lacks_driver_file(settings, workspace) {
        return Ok(None);
    }
    let entry = catalog.find("claude")?;
    let (globals, _, mut notices) = driver_variables(settings, Live::Wanted, "claude-code", workspace)?;
    let global = |name: &str| globals.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let allowed = tools::split(global("CLAUDE_ALLOWED_TOOLS").unwrap_or_default());
    let mode = global("CLAUDE_PERMISSION_MODE").filter(|mode| *mode != BYPASS).unwrap_or("default").to_owned();
    let mut definition = (*entry.definition).clone();
    let approve = ["--permission-mode", &mode, "--allowedTools"].map(str::to_owned).into_iter().chain(allowed.clone());
    definition.arguments.grant(approve.collect());
    if let Some(interactive) = &mut definition.interactive {
        interactive.args.clone_from(&definition.arguments.approve);
    }
    let rc = global("RALPHRC_FILE").unwrap_or(RALPHRC[1]);
    definition.permission_help = Some(format!("add the tool to `ALLOWED_TOOLS` in `{rc}`"));
    // The list approves tools; it does not take the others away.
    let options = Options { tools: Vec::new(), status_blocks: true, ..options };
    let origin = &settings.agent.origin;
    notices.insert(
        0,
        format!(
            "no driver file `claude-code` (from {origin}): the built-in `claude` runs with permission mode `{mode}` \
             and may use {} (`--allowedTools`)",
            allowed.join(", ")
        ),
    );
    let (agent, found) = agent::locate(&definition, options, workspace);
    match found {
        Ok(_) => {}
        Err(StartError::NotFound { .. }) => return Err(agent::not_installed(&agent, &origin.to_string())),
        Err(error) => return Err(start_error(&error)),
    }
    let why = format!("from {origin}");
    Ok(Some(Chosen { agent, source: Some(entry.source.clone()), why, notices, loaded: None }))
}

/// The file that the settings mean; none when they mean another agent.
pub(crate) fn find(settings: &Settings, catalog: &Catalog, workspace: &Path) -> Result<Option<FoundPlugin>, UserError> {
    let named = settings.agent.value.as_str();
    let origin = settings.agent.origin.clone();
    let of = |contract: Contract, name: &str, origin: Origin| -> Result<Option<FoundPlugin>, UserError> {
        if let Some(path) = files::find(contract, name, workspace)? {
            return Ok(Some(FoundPlugin { contract: Some(contract), name: name.to_owned(), path, origin }));
        }
        let error = files::no_such(contract, name, workspace);
        Err(UserError { message: format!("{} (from {origin})", error.message), ..error })
    };
    for contract in [Contract::Driver, Contract::Script] {
        if let Some(name) = named.strip_prefix(contract.word()).and_then(|rest| rest.strip_prefix(':')) {
            if loop_config::lacks_default_driver(contract, name, workspace) {
                return Ok(None);
            }
            return of(contract, name, origin);
        }
    }
    if named.contains('/') || Path::new(named).extension().is_some_and(|extension| extension == "sh") {
        let path = PathBuf::from(named);
        if !workspace.join(&path).is_file() {
            return Err(UserError::usage(format!("there is no file `{named}` (from {origin})"))
                .hint("give the path of a driver or of an agent script, or a name that `ralph agents` shows"));
        }
        user_file::usable(&workspace.join(&path)).map_err(UserError::usage)?;
        let name = path.file_stem().map_or_else(|| named.to_owned(), |stem| stem.to_string_lossy().into_owned());
        return Ok(Some(FoundPlugin { contract: None, name, path, origin }));
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

/// The prompt that the loop of an agent script has for a mode. A file with variables of ralph's own is a prompt for ralph.
pub(crate) fn prompt_of_mode(
    mode: &str,
    settings: &Settings,
    catalog: &Catalog,
    workspace: &Path,
) -> Result<Option<PathBuf>, UserError> {
    let Some(found) = find(settings, catalog, workspace)? else { return Ok(None) };
    if found.contract(workspace)? != Contract::Script {
        return Ok(None);
    }
    let home = workspace.join(home_of(&found.path));
    let plan = user_file::read_text(&home.join(PLAN), user_file::MOST_BYTES);
    let is_process = plan.as_ref().is_ok_and(|plan| Plan::read(plan).is_process());
    let names = [format!("{mode}-process.md"), format!("{mode}.md")]
        .into_iter()
        .skip(usize::from(mode != "build" || !is_process));
    let Some(path) = names.map(|name| home.join("prompts").join(name)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let text = user_file::read_text_inside(workspace, &path, user_file::MOST_BYTES)
        .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
    if text.contains("{{") {
        return Ok(None);
    }
    if mode == "build" && plan.is_err() {
        return Err(
            UserError::usage(format!("no plan `{}`", home.join(PLAN).display())).hint("make one first: `ralph plan`")
        );
    }
    Ok(Some(path))
}

/// The driver or script as an agent. It is loaded to learn what it says of itself, unless it may not run.
pub(crate) fn choose(
    found: FoundPlugin,
    settings: &Settings,
    options: Options,
    catalog: &Catalog,
    workspace: &Path,
    may_load: bool,
) -> Result<Chosen, UserError> {
    let contract = found.contract(workspace)?;
    let FoundPlugin { name, path, origin, .. } = found;
    let live = if settings.live.value { Live::Wanted } else { Live::Off };
    let (file, mut notices) = plugin_file(contract, &name, &path, live, settings, workspace)?;
    // The hooks read the tools from a variable and put them on the command line themselves.
    let mut agent = file.clone().agent(&name, Options { tools: Vec::new(), ..options });
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
    notices.insert(
        0,
        format!("agent `{name}`: {word} `{}` (from {origin}); its code runs on this machine", path.display()),
    );
    let why = format!("from {origin}");
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

/// A prompt as the plug-in passes it to its agent: the loop of agent scripts fills in variables.
pub(crate) fn filled(file: &PluginFile, prompt: &run::prompt::Source, words: &str, workspace: &Path) -> String {
    match file.contract {
        Contract::Script => script::filled(file, prompt, words, workspace),
        Contract::Driver => words.to_owned(),
    }
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
        // The contract checks what a person types, and takes the file as it is.
        if matches!(settings.tools.origin, Origin::Flag(_)) {
            tools::validate(&wanted, &facts.tools, &facts.display_name)?;
        }
    } else if !wanted.is_empty() {
        notices.push(format!("the list of tools is ignored: {} cannot be limited to tools", facts.display_name));
    }
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
        ("RALPHRC_FILE", own.clone()),
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
    let ignored = [("REVIEW_MODE", "off"), ("REVIEW_ENABLED", "false"), ("WRITE_TIMEOUT_MINUTES", "0")];
    let ignored = ignored.into_iter().filter(|(name, off)| file(&[name]).is_some_and(|value| value != *off));
    let ignored: Vec<String> = ignored.map(|(name, _)| format!("`{name}`")).collect();
    if !ignored.is_empty() {
        notices.push(format!("`{own}`: ralph ignores {}", ignored.join(", ")));
    }
    Ok((globals, Vec::new(), notices))
}

/// The variables that a script finds set: `config`, and what its loop exports.
fn script_variables(path: &Path, workspace: &Path) -> Result<Variables, UserError> {
    let read = Read::config(workspace)?;
    let of_config = |name: &str| read.as_ref().and_then(|read| read.values.get(name)).map(str::to_owned);
    let home = home_of(path);
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
