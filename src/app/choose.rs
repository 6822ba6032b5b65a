//! Which agent a run uses: named, found by itself, or any command. Settings in, an agent that can be started out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::agent::definition::{Auto, When};
use crate::agent::{
    self, Agent, By, Catalog, Entry, Installation, Options, Overrides, Partial, Probe, PromptForm, Question, Source,
    Start, User,
};
use crate::app::repository::{self, NOT_EXAMINED};
use crate::config::{Adapter, FileLayer, Layer, Origin, PromptMode, Setting, Settings};
use crate::error::UserError;
use crate::git::Repository;
use crate::nearest::nearest;
use crate::plugin::{self, Chosen};
use crate::process::{self, Invocation, StartError, runtime};
use crate::run::start_error;
use crate::transcript;
use crate::trust;
use crate::ui::out;

/// Why an agent is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run it: code of the repository runs, and consent was asked for.
    Run,
    /// To show what a run would do: nothing of the repository runs that this user has not run here before.
    Look,
}

/// All agents that can be chosen here.
pub(crate) fn catalog(workspace: &Path, file: &FileLayer) -> Catalog {
    let beside = file.path.as_deref().and_then(Path::parent);
    let mut catalog = Catalog::load(workspace, beside, &transcript::names());
    if file.of_orchestrator {
        catalog.prefer(&["claude", "kiro", "gemini", "codex", "amp"]);
    }
    if let Some(order) = &file.layer.agent_priority {
        catalog.prefer(&order.value.iter().map(String::as_str).collect::<Vec<_>>());
    }
    catalog
}

/// The settings of a run here: the user's words over what the configuration of another loop says.
pub(crate) fn settle(said: Layer, file: &FileLayer, workspace: &Path) -> Result<Settings, UserError> {
    let foreign = plugin::settings::layer(&said.clone().settle(), &catalog(workspace, file), workspace)?;
    Ok(said.over(foreign).settle())
}

/// The agent that the settings ask for. With `auto` the machine is searched.
pub(crate) fn choose(
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
    purpose: Purpose,
) -> Result<Chosen, UserError> {
    let chosen = find(settings, file, workspace, purpose)?;
    let variables = &chosen.agent.definition.environment;
    crate::redact::learn(variables.set.clone().into_iter().chain(variables.set_as_root.clone()));
    Ok(chosen)
}

fn find(settings: &Settings, file: &FileLayer, workspace: &Path, purpose: Purpose) -> Result<Chosen, UserError> {
    let wishes = |name: &str| options(settings, &file.adapter(name), workspace);
    let catalog = catalog(workspace, file);
    if let Some(found) = plugin::settings::find(settings, &catalog, workspace)? {
        if !settings.extra_args.value.is_empty() {
            let origin = &settings.extra_args.origin;
            return Err(UserError::usage(format!(
                "extra arguments do not work with a driver or agent script (from {origin})"
            ))
            .hint("it builds its own command line"));
        }
        let may_load = purpose == Purpose::Run || trust::known(&[found.item(workspace)?]);
        let options = wishes(&found.name);
        let mut chosen = plugin::settings::choose(found, settings, options, &catalog, workspace, may_load)?;
        if !may_load {
            chosen.notices.push(NOT_EXAMINED.to_owned());
        }
        return Ok(chosen);
    }
    if let Some(chosen) = plugin::settings::claude_for_driver(settings, wishes("claude"), &catalog, workspace)? {
        return Ok(chosen);
    }
    if let Some(chosen) = plugin::wrapper::choose(settings, wishes(plugin::wrapper::NAME), workspace)? {
        return Ok(chosen);
    }
    let asked = &settings.agent.origin;
    let mut notices = [catalog.warnings(), strangers(&catalog, file)].concat();
    let custom = |argv: &[String], prompt, origin: &Origin, notices| {
        let agent = agent::custom(argv, prompt, wishes("custom"))?;
        one_program(&agent, origin, workspace)?;
        Ok(Chosen { agent, source: None, why: format!("from {origin}"), notices, loaded: None })
    };
    match (settings.custom_command(), settings.agent.value.as_str()) {
        (Some(Setting { value: argv, origin: Origin::Flag(flag) }), _) => {
            custom(&argv, PromptForm::default(), &Origin::Flag(flag), notices)
        }
        (command, "custom") => {
            let prompt = custom_prompt(settings, &mut notices);
            custom(&command.map(|command| command.value).unwrap_or_default(), prompt, asked, notices)
        }
        (command, name) => {
            notices.extend(
                command.map(|command| {
                    format!("`cli.command` (from {}) is used only with `agent: custom`", command.origin)
                }),
            );
            if name == "auto" {
                return automatic(&catalog, settings, file, workspace, notices, purpose);
            }
            let entry = catalog.find(name).map_err(|error| match asked {
                Origin::Flag(_) => error,
                origin => UserError { message: said_by(&error.message, origin), ..error },
            })?;
            let (agent, found) = agent::locate(&entry.definition, wishes(name), workspace);
            match found {
                Ok(_) => Ok(chosen(agent, entry, format!("from {asked}"), notices)),
                Err(StartError::NotFound { .. }) => Err(agent::not_installed(&agent, &asked.to_string())),
                Err(error) => Err(start_error(&error)),
            }
        }
    }
}

/// A message with its origin behind its first line: what follows shows a place.
fn said_by(message: &str, origin: &Origin) -> String {
    match message.split_once('\n') {
        Some((first, rest)) => format!("{first} (from {origin})\n{rest}"),
        None => format!("{message} (from {origin})"),
    }
}

/// `cli.command` names one program. Several words there are the usual slip, and "not found" would not say so.
fn one_program(agent: &Agent, origin: &Origin, workspace: &Path) -> Result<(), UserError> {
    let program = agent.program.to_string_lossy();
    let (Origin::File { .. } | Origin::Environment(_), Some((first, rest))) =
        (origin, program.trim().split_once(char::is_whitespace))
    else {
        return Ok(());
    };
    match process::check(&Invocation::new(&agent.program, workspace)) {
        Err(StartError::NotFound { .. }) => {
            Err(UserError::agent(format!("the agent's command was not found: `{program}`"))
                .hint("`cli.command` is one program; put its arguments into `cli.args`")
                .hint(format!(
                    "write `command: {first}` and `args: [{}]`",
                    rest.split_whitespace().collect::<Vec<_>>().join(", ")
                )))
        }
        _ => Ok(()),
    }
}

/// What the user wants of one agent.
pub(crate) fn options(settings: &Settings, adapter: &Adapter, workspace: &Path) -> Options {
    let asked =
        [("model", &settings.model.origin), ("effort", &settings.effort.origin), ("tools", &settings.tools.origin)];
    let asked = asked.into_iter().filter(|(_, origin)| matches!(origin, Origin::File { .. } | Origin::Environment(_)));
    Options {
        asked: asked.map(|(wish, origin)| (wish, origin.to_string())).collect(),
        model: settings.model.value.clone(),
        effort: settings.effort.value.clone(),
        tools: settings.tools.value.clone(),
        permissions: settings.permissions.value.or_else(|| said(adapter.permissions.as_ref()).flatten()),
        overrides: Overrides {
            command: said(adapter.command.as_ref()).flatten().map(|command| command.0),
            // An empty list says nothing: no agent works alone without arguments.
            args: said(adapter.args.as_ref()).flatten().filter(|args| !args.is_empty()),
            extra_args: [said(adapter.extra_args.as_ref()).unwrap_or_default(), settings.extra_args.value.clone()]
                .concat(),
            environment: said(adapter.env.as_ref()).unwrap_or_default().0,
        },
        partial: match said(adapter.partial.as_ref()) {
            Some(true) => Partial::On,
            _ => Partial::Off,
        },
        user: User::current(),
        status_blocks: false,
        git_directories: git_directories(workspace),
    }
}

/// What an agent must write to commit, where the git directory is outside. Of a worktree these are parts beside hooks and configuration.
fn git_directories(workspace: &Path) -> Vec<PathBuf> {
    let Some(repository) = Repository::around(workspace) else { return Vec::new() };
    // One that does not belong to the worktree is not given to an agent.
    let outside = repository.directories_outside(workspace).unwrap_or_default();
    let [own, common] = outside.as_slice() else { return outside };
    if own == common {
        return vec![own.clone()];
    }
    let parts = ["objects", "refs", "logs"].map(|name| common.join(name));
    std::iter::once(own.clone()).chain(parts).filter(|path| path.is_dir()).collect()
}

/// The value without its origin, where something is said.
fn said<T: Clone>(setting: Option<&Setting<T>>) -> Option<T> {
    setting.map(|setting| setting.value.clone())
}

/// How a custom agent takes its prompt. A flag is before an argument, so that it alone says that there is one.
fn custom_prompt(settings: &Settings, notices: &mut Vec<String>) -> PromptForm {
    let flag = &settings.prompt_flag;
    match (settings.prompt_mode.value, &flag.value) {
        (Some(PromptMode::Arg), _) | (None, Some(_)) => {
            PromptForm { by: By::Argument, after: flag.value.iter().cloned().collect() }
        }
        (Some(PromptMode::Stdin), Some(_)) => {
            let (flag, mode) = (&flag.origin, &settings.prompt_mode.origin);
            notices.push(format!(
                "`cli.prompt_flag` (from {flag}) is not used: `cli.prompt_mode` is `stdin` (from {mode})"
            ));
            PromptForm::default()
        }
        (_, None) => PromptForm::default(),
    }
}

/// Why `auto` does not even look for an agent.
pub(crate) fn passed_over(entry: &Entry, file: &FileLayer) -> Option<String> {
    match (entry.definition.auto, file.adapter(&entry.id).enabled) {
        (Auto::No, _) => Some("only by name".to_owned()),
        (Auto::Yes, Some(Setting { value: false, origin })) => Some(format!("disabled by {origin}")),
        (Auto::Yes, _) => None,
    }
}

/// What to find out about an agent. A command that only looks leaves out what the repository would put into its
/// environment.
pub(crate) fn question(
    entry: &Entry,
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
    purpose: Purpose,
) -> Question {
    let adapter = file.adapter(&entry.id);
    let (adapter, start) = match purpose {
        Purpose::Run => (adapter, Start::InWorkspace),
        Purpose::Look => {
            let adapter = Adapter { env: None, ..adapter };
            let start = repository::may_start(entry, settings, &adapter, workspace);
            (adapter, start)
        }
    };
    Question { definition: (*entry.definition).clone(), options: options(settings, &adapter, workspace), start }
}

/// The first that is installed and enabled.
fn automatic(
    catalog: &Catalog,
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
    mut notices: Vec<String>,
    purpose: Purpose,
) -> Result<Chosen, UserError> {
    let asked: Vec<&Entry> = catalog.entries().iter().filter(|entry| passed_over(entry, file).is_none()).collect();
    let questions = asked.iter().map(|entry| question(entry, settings, file, workspace, purpose)).collect();
    match runtime()?.block_on(agent::first(questions, workspace, still_waiting)) {
        Ok((index, probes)) => {
            let entry = asked[index];
            let why = first_installed(catalog, file, &asked, &probes, index);
            let wishes = options(settings, &file.adapter(&entry.id), workspace);
            let (agent, found) = agent::locate(&entry.definition, wishes, workspace);
            if probes.get(index).is_some_and(|probe| probe.state == Installation::NotExamined) {
                notices.push(NOT_EXAMINED.to_owned());
            }
            found.map_err(|error| start_error(&error))?;
            Ok(chosen(agent, entry, why, notices))
        }
        Err(probes) => Err(none_installed(catalog, file, &asked, &probes)),
    }
}

/// Says who is waited for, so that nobody wonders.
pub(crate) fn still_waiting(names: &[&str]) {
    let (names, most) = (names.join(", "), agent::PATIENCE.as_secs());
    out::tell(format_args!("waiting for the version of {names} (at most {most} s)"));
}

/// Why `auto` took this one: it came before all others that could be taken.
fn first_installed(catalog: &Catalog, file: &FileLayer, asked: &[&Entry], probes: &[Probe], index: usize) -> String {
    let taken = &asked[index].definition.id;
    let before = catalog.entries().iter().take_while(|entry| entry.id != *taken);
    let before: Vec<String> =
        before.map(|entry| format!("{} {}", entry.id, why_not(entry, file, asked, probes))).collect();
    match before.as_slice() {
        [] => "`auto`: the first in the list".to_owned(),
        before => format!("`auto`: the first one installed; {}", before.join(", ")),
    }
}

/// Why `auto` did not take an agent.
fn why_not(entry: &Entry, file: &FileLayer, asked: &[&Entry], probes: &[Probe]) -> String {
    let index = asked.iter().position(|known| known.definition.id == entry.definition.id);
    match (passed_over(entry, file), index.and_then(|at| probes.get(at)).map(|probe| &probe.state)) {
        (Some(reason), _) => reason,
        (None, Some(Installation::Broken(reason))) => reason.clone(),
        (None, _) => "not installed".to_owned(),
    }
}

/// Every agent that was looked for, with its install line.
fn none_installed(catalog: &Catalog, file: &FileLayer, asked: &[&Entry], probes: &[Probe]) -> UserError {
    let mut message = "no agent found; ralph looked for:".to_owned();
    for entry in catalog.entries().iter().filter(|entry| entry.definition.auto == Auto::Yes) {
        let definition = &entry.definition;
        let state = why_not(entry, file, asked, probes);
        let install = definition.install.line.as_ref().or(definition.install.link.as_ref());
        let install = install.map_or_else(String::new, |line| format!("; install: {line}"));
        let _ = write!(message, "\n  {:<9} {state}{install}", definition.id);
    }
    UserError::agent(message)
        .hint("install one of them; if it is not on PATH, set `adapters.NAME.command` in `ralph.yml`")
        .hint("try `--agent demo`, which needs no installation")
        .hint("or run any command: `--agent-cmd './my-agent.sh'`")
}

/// Sections under `adapters` that belong to no agent: a slip there would change nothing, silently.
fn strangers(catalog: &Catalog, file: &FileLayer) -> Vec<String> {
    let known = || catalog.names().into_iter().chain(["custom"]);
    let strangers = file.adapters.iter().map(|(name, _)| name).filter(|name| !known().any(|known| known == *name));
    let told = strangers.map(|name| {
        let meant = nearest(name, known()).map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        format!("`adapters.{name}` in the configuration names an unknown agent{meant}")
    });
    told.collect()
}

fn chosen(agent: Agent, entry: &Entry, why: String, mut notices: Vec<String>) -> Chosen {
    let definition = &entry.definition;
    let auth = agent::auth(definition);
    let matters = |when| match when {
        When::Always => true,
        When::Root => agent.options.user == User::Root,
        When::Auth => auth == agent::Auth::Unknown,
    };
    let pitfalls = definition.pitfalls.iter().filter(|pitfall| matters(pitfall.when));
    if let Source::File(path) = &entry.source {
        notices.push(format!("agent `{}` is defined by `{}`", definition.id, path.display()));
    }
    notices.extend(pitfalls.map(|pitfall| pitfall.message.clone()));
    Chosen { agent, source: Some(entry.source.clone()), why, notices, loaded: None }
}
