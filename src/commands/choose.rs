//! Which agent a run uses: named, found by itself, or any command. Settings in, an agent that can be started out.

use std::fmt::Write as _;
use std::path::Path;

use super::{foreign, runtime, wrapper};
use crate::agent::definition::{Auto, When};
use crate::agent::{
    self, Agent, By, Catalog, Entry, Options, Overrides, Partial, Probe, PromptForm, Source, State, User,
};
use crate::config::{Adapter, FileLayer, Origin, PromptMode, Setting, Settings};
use crate::error::UserError;
use crate::nearest::nearest;
use crate::process::{self, Invocation, StartError};
use crate::run::start_error;
use crate::transcript;

/// An agent, and what to tell about it at the start.
pub struct Chosen {
    /// The agent.
    pub agent: Agent,
    /// Where its definition is written.
    pub source: Option<Source>,
    /// Why this one and no other.
    pub why: String,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// All agents that can be chosen here.
pub fn catalog(workspace: &Path, file: &FileLayer) -> Result<Catalog, UserError> {
    let beside = file.path.as_deref().and_then(Path::parent);
    Catalog::load(workspace, beside, &transcript::names())
}

/// The agent that the settings ask for. With `auto` the machine is searched.
pub fn choose(settings: &Settings, file: &FileLayer, workspace: &Path) -> Result<Chosen, UserError> {
    let wishes = |name: &str| options(settings, &file.adapter(name));
    let catalog = catalog(workspace, file)?;
    if let Some(chosen) = foreign::choose(settings, &wishes, &catalog, workspace)? {
        return Ok(chosen);
    }
    if let Some(chosen) = wrapper::choose(settings, wishes(wrapper::NAME), workspace)? {
        return Ok(chosen);
    }
    let asked = &settings.agent.origin;
    let mut notices = [catalog.warnings(), strangers(&catalog, file)].concat();
    let custom = |argv: &[String], prompt, origin: &Origin, notices| {
        let agent = agent::custom(argv, prompt, wishes("custom"))?;
        one_program(&agent, origin, workspace)?;
        Ok(Chosen { agent, source: None, why: format!("asked for by {origin}"), notices })
    };
    match (settings.custom_command(), settings.agent.value.as_str()) {
        (Some(Setting { value: argv, origin: Origin::Flag(flag) }), _) => {
            custom(&argv, PromptForm::default(), &Origin::Flag(flag), notices)
        }
        (command, "custom") => {
            custom(&command.map(|command| command.value).unwrap_or_default(), custom_prompt(settings), asked, notices)
        }
        (command, name) => {
            notices.extend(command.map(|command| {
                format!("`cli.command` (from {}) is used only with `cli.backend: custom`", command.origin)
            }));
            if name == "auto" {
                return automatic(&catalog, file, &wishes, workspace, notices);
            }
            let entry = catalog.find(name).map_err(|error| match asked {
                Origin::Flag(_) => error,
                origin => UserError { message: said_by(&error.message, origin), ..error },
            })?;
            let (agent, found) = agent::locate(&entry.definition, wishes(name), workspace);
            match found {
                Ok(_) => Ok(chosen(agent, entry, format!("asked for by {asked}"), notices)),
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
                .hint("`cli.command` is one program, and its arguments stand in `cli.args`")
                .hint(format!(
                    "write `command: {first}` and `args: [{}]`",
                    rest.split_whitespace().collect::<Vec<_>>().join(", ")
                )))
        }
        _ => Ok(()),
    }
}

/// What the user wants of one agent.
pub fn options(settings: &Settings, adapter: &Adapter) -> Options {
    let asked =
        [("model", &settings.model.origin), ("effort", &settings.effort.origin), ("tools", &settings.tools.origin)];
    let asked = asked.into_iter().filter(|(_, origin)| matches!(origin, Origin::File { .. } | Origin::Environment(_)));
    Options {
        asked: asked.map(|(wish, origin)| (wish, origin.to_string())).collect(),
        model: settings.model.value.clone(),
        effort: settings.effort.value.clone(),
        tools: settings.tools.value.clone(),
        overrides: Overrides {
            command: said(adapter.command.as_ref()).flatten().map(|command| command.0),
            // An empty list says nothing: no agent works alone without arguments.
            args: said(adapter.args.as_ref()).flatten().filter(|args| !args.is_empty()),
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
    notices: Vec<String>,
) -> Result<Chosen, UserError> {
    let asked: Vec<&Entry> = catalog.entries().iter().filter(|entry| passed_over(entry, file).is_none()).collect();
    let questions =
        asked.iter().map(|entry| (entry.definition.clone(), wishes(&entry.definition.id))).collect::<Vec<_>>();
    match runtime()?.block_on(agent::first(questions, workspace, still_waiting)) {
        Ok((index, probes)) => {
            let entry = asked[index];
            let why = first_installed(catalog, file, &asked, &probes, index);
            let (agent, found) = agent::locate(&entry.definition, wishes(&entry.definition.id), workspace);
            found.map_err(|error| start_error(&error))?;
            Ok(chosen(agent, entry, why, notices))
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

/// Why `auto` took this one: it came before all others that could be taken.
fn first_installed(catalog: &Catalog, file: &FileLayer, asked: &[&Entry], probes: &[Probe], index: usize) -> String {
    let taken = &asked[index].definition.id;
    let before = catalog.entries().iter().take_while(|entry| entry.definition.id != *taken);
    let before: Vec<String> =
        before.map(|entry| format!("{} {}", entry.definition.id, why_not(entry, file, asked, probes))).collect();
    match before.as_slice() {
        [] => "`auto`: it is the first of all".to_owned(),
        before => format!("`auto`: it is the first that is installed; {}", before.join(", ")),
    }
}

/// Why `auto` did not take an agent.
fn why_not(entry: &Entry, file: &FileLayer, asked: &[&Entry], probes: &[Probe]) -> String {
    let index = asked.iter().position(|known| known.definition.id == entry.definition.id);
    match (passed_over(entry, file), index.and_then(|at| probes.get(at)).map(|probe| &probe.state)) {
        (Some(reason), _) => reason,
        (None, Some(State::Broken(reason))) => reason.clone(),
        (None, _) => "not installed".to_owned(),
    }
}

/// Every agent that was looked for, with its install line.
fn none_installed(catalog: &Catalog, file: &FileLayer, asked: &[&Entry], probes: &[Probe]) -> UserError {
    let mut message = "no agent was found; these were looked for:".to_owned();
    for entry in catalog.entries().iter().filter(|entry| entry.definition.auto == Auto::Yes) {
        let definition = &entry.definition;
        let state = why_not(entry, file, asked, probes);
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
    Chosen { agent, source: Some(entry.source.clone()), why, notices }
}
