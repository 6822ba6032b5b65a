//! Which agent a run uses: named, found by itself, or any command. Settings in, an agent that can be started out.

use std::fmt::Write as _;
use std::path::Path;

use super::{foreign, runtime};
use crate::agent::definition::{Auto, When};
use crate::agent::{
    self, Agent, By, Catalog, Entry, Live, Options, Overrides, Partial, Probe, PromptForm, Source, State, User,
};
use crate::config::{Adapter, FileLayer, Origin, PromptMode, Setting, Settings};
use crate::error::UserError;
use crate::nearest::nearest;
use crate::process::StartError;
use crate::run::start_error;

/// An agent, and what to tell about it at the start.
pub struct Chosen {
    /// The agent.
    pub agent: Agent,
    /// Where its definition is written.
    pub source: Option<Source>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// The agent that the settings ask for. With `auto` the machine is searched.
pub fn choose(settings: &Settings, file: &FileLayer, live: Live, workspace: &Path) -> Result<Chosen, UserError> {
    let wishes = |name: &str| options(settings, &file.adapter(name));
    if let Some(chosen) = foreign::choose(settings, &wishes, live, workspace)? {
        return Ok(chosen);
    }
    let custom = |argv: &[String], prompt| {
        let agent = agent::custom(argv, prompt, wishes("custom"))?;
        Ok(Chosen { agent, source: None, notices: Vec::new() })
    };
    match (settings.custom_command(), settings.agent.value.as_str()) {
        (Some(Setting { value: argv, origin: Origin::Flag(_) }), _) => custom(&argv, PromptForm::default()),
        (command, "custom") => {
            custom(&command.map(|command| command.value).unwrap_or_default(), custom_prompt(settings))
        }
        (_, "auto") => automatic(&Catalog::load(workspace)?, file, &wishes, workspace),
        (_, name) => {
            let catalog = Catalog::load(workspace)?;
            let entry = catalog.find(name).map_err(|error| match &settings.agent.origin {
                Origin::Flag(_) => error,
                origin => UserError { message: format!("{} (from {origin})", error.message), ..error },
            })?;
            let (agent, found) = agent::locate(&entry.definition, wishes(name), workspace);
            match found {
                Ok(_) => Ok(chosen(agent, entry, strangers(&catalog, file))),
                Err(StartError::NotFound { .. }) => {
                    Err(agent::not_installed(&agent, &settings.agent.origin.to_string()))
                }
                Err(error) => Err(start_error(&error)),
            }
        }
    }
}

/// What the user wants of one agent.
pub fn options(settings: &Settings, adapter: &Adapter) -> Options {
    Options {
        model: settings.model.value.clone(),
        effort: settings.effort.value.clone(),
        tools: settings.tools.value.clone(),
        overrides: Overrides {
            command: said(adapter.command.as_ref()).flatten().map(|command| command.0),
            args: said(adapter.args.as_ref()).flatten(),
            extra_args: said(adapter.extra_args.as_ref()).unwrap_or_default(),
            environment: said(adapter.env.as_ref()).unwrap_or_default().0,
        },
        partial: match said(adapter.partial.as_ref()) {
            Some(true) => Partial::On,
            _ => Partial::Off,
        },
        user: User::current(),
    }
}

/// The value without its origin, where something is said.
fn said<T: Clone>(setting: Option<&Setting<T>>) -> Option<T> {
    setting.map(|setting| setting.value.clone())
}

/// How a custom agent takes its prompt.
fn custom_prompt(settings: &Settings) -> PromptForm {
    match settings.prompt_mode.value {
        Some(PromptMode::Arg) => {
            PromptForm { by: By::Argument, after: settings.prompt_flag.value.iter().cloned().collect() }
        }
        _ => PromptForm::default(),
    }
}

/// Why `auto` does not even look for an agent.
pub fn passed_over(entry: &Entry, file: &FileLayer) -> Option<String> {
    match (entry.definition.auto, file.adapter(&entry.definition.id).enabled) {
        (Auto::No, _) => Some("only when it is named".to_owned()),
        (Auto::Yes, Some(Setting { value: false, origin })) => Some(format!("disabled by {origin}")),
        (Auto::Yes, _) => None,
    }
}

/// The first that is installed and enabled.
fn automatic(
    catalog: &Catalog,
    file: &FileLayer,
    wishes: &dyn Fn(&str) -> Options,
    workspace: &Path,
) -> Result<Chosen, UserError> {
    let asked: Vec<&Entry> = catalog.entries().iter().filter(|entry| passed_over(entry, file).is_none()).collect();
    let questions =
        asked.iter().map(|entry| (entry.definition.clone(), wishes(&entry.definition.id))).collect::<Vec<_>>();
    match runtime()?.block_on(agent::first(questions, workspace, still_waiting)) {
        Ok(index) => {
            let entry = asked[index];
            let (agent, found) = agent::locate(&entry.definition, wishes(&entry.definition.id), workspace);
            found.map_err(|error| start_error(&error))?;
            Ok(chosen(agent, entry, strangers(catalog, file)))
        }
        Err(probes) => Err(none_installed(catalog, file, &asked, &probes)),
    }
}

/// Says who is waited for, so that nobody wonders.
pub fn still_waiting(names: &[&str]) {
    use std::io::Write as _;
    let (names, most) = (names.join(", "), agent::PATIENCE.as_secs());
    // Nobody may be left to read it.
    let _ = writeln!(std::io::stderr(), "asking for versions: still waiting for {names} ({most} s at most)");
}

/// Every agent that was looked for, with its install line.
fn none_installed(catalog: &Catalog, file: &FileLayer, asked: &[&Entry], probes: &[Probe]) -> UserError {
    let mut message = "no agent was found; these were looked for:".to_owned();
    for entry in catalog.entries().iter().filter(|entry| entry.definition.auto == Auto::Yes) {
        let definition = &entry.definition;
        let probe = asked.iter().position(|known| known.definition.id == definition.id).and_then(|at| probes.get(at));
        let state = match (passed_over(entry, file), probe.map(|probe| &probe.state)) {
            (Some(reason), _) => reason,
            (None, Some(State::Broken(reason))) => reason.clone(),
            (None, _) => "not installed".to_owned(),
        };
        let install = definition.install.line.as_ref().or(definition.install.link.as_ref());
        let install = install.map_or_else(String::new, |line| format!("; install: {line}"));
        let _ = write!(message, "\n  {:<9} {state}{install}", definition.id);
    }
    UserError::agent(message)
        .hint("install one of them, or name it when it is not on PATH: `adapters.NAME.command` in `ralph.yml`")
        .hint("try `--agent demo`, which needs nothing installed")
        .hint("or run any command: `--agent-cmd './my-agent.sh'`")
}

/// Sections under `adapters` that belong to no agent: a slip there would change nothing, silently.
fn strangers(catalog: &Catalog, file: &FileLayer) -> Vec<String> {
    let known = || catalog.names().into_iter().chain(["custom"]);
    let strangers = file.adapters.iter().map(|(name, _)| name).filter(|name| !known().any(|known| known == *name));
    let told = strangers.map(|name| {
        let meant = nearest(name, known()).map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        format!("`adapters.{name}` in the configuration belongs to no known agent{meant}")
    });
    told.collect()
}

fn chosen(agent: Agent, entry: &Entry, mut notices: Vec<String>) -> Chosen {
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
    Chosen { agent, source: Some(entry.source.clone()), notices }
}
