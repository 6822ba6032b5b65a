//! Commands that speak Claude as agents: `cli.backend: claude-command`, `--claude-command`, or `.ralphex/config`.

mod config;

use std::path::{Path, PathBuf};

use super::Chosen;
use crate::agent::{Agent, By, Options, PromptForm, definition};
use crate::config::{Layer, Origin, Program, PromptMode, Setting, Settings};
use crate::error::UserError;
use crate::signals::promise::OF_SOME_RUNS;
use crate::user_file;

/// The name of such an agent.
pub(crate) const NAME: &str = "claude-command";

/// Where its loop keeps its configuration.
const CONFIG: &str = ".ralphex/config";

/// What Claude Code itself needs to print what is read here.
const USUAL_ARGS: [&str; 4] = ["--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose"];

/// The agent that the settings mean; none when they mean another one.
pub(crate) fn choose(settings: &Settings, options: Options, workspace: &Path) -> Result<Option<Chosen>, UserError> {
    let Some((argv, origin)) = command(settings, workspace)? else { return Ok(None) };
    let Some((program, args)) = argv.split_first() else { return Ok(None) };
    let agent = agent(program, args.to_vec(), settings, options);
    let notice = format!("agent: `{program}` (from {origin}), a command that prints Claude's stream-json");
    let why = format!("from {origin}");
    Ok(Some(Chosen { agent, source: None, why, notices: vec![notice], loaded: None }))
}

/// The command line that the settings mean, and who says so; none when they mean another agent.
pub(crate) fn command(settings: &Settings, workspace: &Path) -> Result<Option<(Vec<String>, Origin)>, UserError> {
    let named = settings.agent.value == NAME;
    let unnamed = matches!(settings.agent.origin, Origin::Default) && settings.custom_command().is_none();
    let of_loop = read(workspace);
    let from_loop = of_loop.command.clone().filter(|_| named || unnamed);
    let (program, origin) = match (settings.command.value.as_ref().filter(|_| named), from_loop) {
        (Some(program), _) => (program.0.clone(), settings.command.origin.clone()),
        (None, Some((program, origin))) => (program, origin),
        (None, None) if named => {
            return Err(UserError::usage("`claude-command` has no command")
                .hint("give `--claude-command COMMAND`, or `command` under `cli:` in `ralph.yml`"));
        }
        (None, None) => return Ok(None),
    };
    let args = match (&settings.args.value, of_loop.args) {
        (args, _) if !args.is_empty() => args.clone(),
        (_, Some((args, _))) => config::split(&args),
        _ => USUAL_ARGS.map(str::to_owned).to_vec(),
    };
    Ok(Some((std::iter::once(program).chain(args).collect(), origin)))
}

/// The configuration of its own loop: the project's, and below it the user's, key by key. A file of another user is
/// ignored.
fn read(workspace: &Path) -> config::Ralphex {
    let one = |path: &Path, shown: &Path| {
        let text = user_file::usable(path).ok().and_then(|_| user_file::read_text(path, 1024 * 1024).ok());
        text.map(|text| config::parse(shown, &text)).unwrap_or_default()
    };
    let of_project = one(&workspace.join(CONFIG), Path::new(CONFIG));
    let of_user = user_config().map(|path| one(&path, &path)).unwrap_or_default();
    of_project.over(of_user)
}

fn user_config() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(directory) = absolute("RALPHEX_CONFIG_DIR") {
        return Some(directory.join("config"));
    }
    let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(home.join("ralphex/config"))
}

fn agent(program: &str, args: Vec<String>, settings: &Settings, options: Options) -> Agent {
    let flag = |word: &str| vec![word.to_owned()];
    let by_argument = PromptForm { by: By::Argument, after: flag("-p") };
    let by_stdin = PromptForm { by: By::Stdin, after: flag("--print") };
    let (prompt, large_prompt) = match settings.prompt_mode.value {
        Some(PromptMode::Stdin) => (by_stdin, None),
        // A wrapper that takes only the other form is found out by its first answer.
        Some(PromptMode::Arg) | None => (by_argument, Some(by_stdin)),
    };
    let mut definition = definition::of_command(program);
    NAME.clone_into(&mut definition.id);
    "claude".clone_into(&mut definition.dialect);
    definition.prompt = prompt;
    definition.large_prompt = large_prompt;
    definition.tries_both_prompts = settings.prompt_mode.value.is_none();
    definition.arguments.model = vec!["--model".to_owned(), "{model}".to_owned()];
    definition.arguments.effort = vec!["--effort".to_owned(), "{effort}".to_owned()];
    Agent { program: program.into(), leading: args, definition, options, plugin: None }
}

/// What the configuration of its own loop says, as settings.
fn taken_over(workspace: &Path) -> Layer {
    let read = read(workspace);
    Layer {
        command: read.command.map(|(program, origin)| Setting::new(Some(Program(program)), origin)),
        args: read.args.map(|(args, origin)| Setting::new(config::split(&args), origin)),
        ..Layer::default()
    }
}

/// The prompt of a project of that loop that has no other: its only open plan. Done plans are in a directory below.
fn only_plan(workspace: &Path) -> Option<PathBuf> {
    if !workspace.join(CONFIG).is_file() || workspace.join("PROMPT.md").exists() {
        return None;
    }
    let directory = workspace.join(read(workspace).plans.as_deref().unwrap_or("docs/plans"));
    let listing = std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let is_plan = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md") && path.is_file();
    let mut plans = listing.filter(is_plan).filter(|path| user_file::inside(workspace, path).is_ok());
    plans.next().filter(|_| plans.next().is_none())
}

/// The settings of such a run unless the user says otherwise; nothing when the settings mean another agent.
pub(crate) fn layer(asked: &Settings, workspace: &Path) -> Result<Layer, UserError> {
    let prompt_file = only_plan(workspace).map(|plan| Setting::new(Some(plan), Origin::Contract("ralphex")));
    let Some((_, origin)) = command(asked, workspace)? else {
        return Ok(Layer { prompt_file, ..Layer::default() });
    };
    let also = OF_SOME_RUNS.map(str::to_owned).to_vec();
    Ok(Layer {
        agent: Some(Setting::new(NAME.to_owned(), origin)),
        completion_also: Some(Setting::new(also, Origin::Contract(NAME))),
        prompt_file,
        ..taken_over(workspace)
    })
}
