//! The agents as they are installed: version, flags, login, and what people run into.

use std::path::{Path, PathBuf};

use super::{Check, Kind, Part, plugins};
use crate::agent::definition::When;
use crate::agent::{
    self, Agent, Auth, Definition, Entry, Flags, Installation, Known, Probe, Question, Source, Start, Turn, User,
};
use crate::app::choose::{self, Purpose, passed_over, question, still_waiting};
use crate::app::repository::{self, NOT_EXAMINED};
use crate::config::{FileLayer, Settings};
use crate::error::UserError;
use crate::plugin;
use crate::process;
use crate::process::runtime;
use crate::run::start_error;
use crate::trust;

pub(crate) struct AgentChecks {
    /// What is wrong with agent files.
    pub warnings: Vec<String>,
    /// The agents that are there, and the one that is wanted.
    pub parts: Vec<Part>,
    pub missing: Vec<String>,
}

/// Looks at all agents, or at the one that is named.
pub(super) fn look(
    named: Option<&str>,
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
    purpose: Purpose,
) -> Result<AgentChecks, UserError> {
    let catalog = choose::catalog(workspace, file);
    let mut plugins = plugins::parts(named, settings, &catalog, workspace, purpose)?;
    if named.is_some() && !plugins.is_empty() {
        return Ok(AgentChecks { warnings: catalog.warnings(), parts: plugins, missing: Vec::new() });
    }
    // The built-in agent that does the work of a driver without a file.
    let built_in = plugin::settings::lacks_driver_file(settings, workspace).then_some("claude");
    let named = named.map(|name| built_in.unwrap_or(name));
    let wanted = named.or(built_in).unwrap_or(settings.agent.value.as_str());
    let is_command = |name: &str| ["custom", plugin::wrapper::NAME].contains(&name);
    let entries: Vec<&Entry> = match named {
        Some(name) if !is_command(name) && name != "auto" => vec![catalog.find(name)?],
        _ => catalog.entries().iter().collect(),
    };
    if purpose == Purpose::Run {
        let items = entries.iter().map(|entry| repository::of_entry(entry, settings, file, workspace));
        trust::consent(&items.collect::<Result<Vec<_>, _>>()?.concat(), settings)?;
    }
    let questions = entries.iter().map(|entry| question(entry, settings, file, workspace, purpose));
    let questions: Vec<Question> = questions.collect();
    let starts: Vec<Start> = questions.iter().map(|question| question.start).collect();
    let runtime = runtime()?;
    let probes = runtime.block_on(agent::probe_all(questions, workspace, still_waiting));
    let installed = |probe: &Probe| matches!(probe.state, Installation::Installed { .. } | Installation::NotExamined);
    let first = || {
        let candidates =
            entries.iter().zip(&probes).filter(|(entry, probe)| installed(probe) && passed_over(entry, file).is_none());
        candidates.map(|(entry, _)| entry.id.as_str()).next()
    };
    let chosen = match wanted {
        _ if plugins.iter().any(|part| part.kind == Kind::Chosen) => None,
        "auto" => first(),
        wanted => Some(wanted),
    };
    let mut found = AgentChecks { warnings: catalog.warnings(), parts: Vec::new(), missing: Vec::new() };
    let asked = entries.iter().zip(&probes).zip(starts).filter_map(|((entry, probe), start)| {
        let path = probe.path.clone().filter(|_| matches!(probe.state, Installation::Installed { .. }))?;
        let options = question(entry, settings, file, workspace, purpose).options;
        let (agent, _) = agent::locate(&entry.definition, options, workspace);
        Some((agent, path, start))
    });
    let shown = runtime.block_on(helps(asked.collect(), workspace));
    for (entry, probe) in entries.iter().zip(&probes) {
        let Definition { id, name, .. } = &*entry.definition;
        let is_chosen = chosen == Some(id.as_str());
        if probe.state == Installation::Missing && !is_chosen {
            found.missing.push(id.clone());
            continue;
        }
        let (kind, why) = match (is_chosen, wanted) {
            (true, "auto") => (Kind::Chosen, ", picked by `auto`"),
            (true, _) => (Kind::Chosen, ", selected"),
            (false, _) => (Kind::Other, ""),
        };
        let flags = shown.iter().find(|(of, _)| of == id).map(|(_, flags)| flags);
        let mut checks = checks(entry, probe, flags);
        if is_chosen && built_in.is_some() {
            let chosen = choose::choose(settings, file, workspace, Purpose::Look).ok();
            let notices = chosen.into_iter().flat_map(|chosen| chosen.notices);
            checks.extend(notices.map(|notice| Check::note("driver", notice)));
        }
        found.parts.push(Part { name: id.clone(), title: format!("{id} ({name}){why}"), kind, checks });
    }
    found.parts.append(&mut plugins);
    if found.parts.iter().any(|part| part.kind == Kind::Chosen) {
        // An agent or a plug-in is chosen.
    } else if is_command(wanted) {
        found.parts.insert(0, command(wanted, settings, file, workspace));
    } else if chosen.is_none() {
        let check = Check::wrong("program", "no agent found")
            .advice("`ralph agents` lists the agents ralph knows; `--agent demo` needs no installation");
        found.parts.insert(
            0,
            Part { name: "auto".to_owned(), title: "auto".to_owned(), kind: Kind::Chosen, checks: vec![check] },
        );
    } else if let (Some(name), None) = (chosen, chosen.and_then(|name| catalog.find(name).ok())) {
        // An unknown name: the message of a run says it best.
        catalog.find(name)?;
    }
    // What matters comes first.
    found.parts.sort_by_key(|part| part.kind != Kind::Chosen);
    Ok(found)
}

/// Asks all of them for their help at the same time.
async fn helps(agents: Vec<(Agent, PathBuf, Start)>, workspace: &Path) -> Vec<(String, Flags)> {
    let mut tasks = tokio::task::JoinSet::new();
    for (agent, path, start) in agents {
        let workspace = workspace.to_owned();
        tasks.spawn(async move {
            let flags = agent::flags(&agent, &path, start, &workspace, agent::PATIENCE).await;
            (agent.id().to_owned(), flags)
        });
    }
    tasks.join_all().await
}

fn checks(entry: &Entry, probe: &Probe, flags: Option<&Flags>) -> Vec<Check> {
    let definition = &entry.definition;
    let mut checks = Vec::new();
    if let Source::File(path) = &entry.source {
        checks.push(Check::note("defined", format!("in `{}`", path.display())));
    }
    checks.push(match (&probe.state, &probe.path) {
        (Installation::Missing, _) => {
            let install = definition.install.line.as_deref().unwrap_or("see its documentation");
            Check::wrong("program", format!("`{}` was not found", definition.commands.join("`, `")))
                .advice(format!("install it: {install}"))
        }
        (Installation::Broken(reason), _) => Check::wrong("program", reason.clone()).advice(format!(
            "try it by hand: `{} {}`",
            definition.commands[0],
            definition.version.args.join(" ")
        )),
        (Installation::Installed { .. }, Some(path)) => Check::fine("program", path.display().to_string()),
        (Installation::Installed { .. }, None) => Check::fine("program", "found"),
        (Installation::NotExamined, path) => {
            let path = path.as_ref().map_or_else(String::new, |path| format!("{}; ", path.display()));
            Check::note("program", format!("{path}{NOT_EXAMINED}"))
        }
    });
    if let Installation::Installed { version } = &probe.state {
        checks.push(version_check(definition, version.as_deref()));
        checks.extend(flags.and_then(|flags| flags_check(definition, flags)));
        checks.push(login_check(definition));
        let root = User::current() == User::Root;
        let matters = |when| when == When::Always || (when == When::Root && root);
        let pitfalls = definition.pitfalls.iter().filter(|pitfall| matters(pitfall.when));
        checks.extend(pitfalls.map(|pitfall| Check::note("pitfall", pitfall.message.clone())));
    }
    checks
}

fn version_check(definition: &Definition, version: Option<&str>) -> Check {
    let known = &definition.version;
    let Some(version) = version else { return Check::note("version", "unknown: it prints none that ralph can read") };
    let tested = known.tested.as_deref().unwrap_or_default();
    match known.knows(version) {
        Known::TooOld => {
            let minimum = known.minimum.as_deref().unwrap_or_default();
            Check::wrong("version", format!("{version} is too old; ralph needs {minimum} or newer")).advice(
                definition
                    .install
                    .line
                    .as_deref()
                    .map_or_else(|| "update it".to_owned(), |line| format!("update it: {line}")),
            )
        }
        Known::Tested => Check::fine("version", format!("{version}, tested up to {tested}")),
        Known::Newer => Check::note("version", format!("{version} is newer than {tested}, the newest version tested")),
        Known::Unknown => Check::fine("version", version),
    }
}

fn flags_check(definition: &Definition, flags: &Flags) -> Option<Check> {
    let call = || [&definition.commands[..1], &definition.help.args].concat().join(" ");
    match flags {
        Flags::None => None,
        Flags::All(count) => {
            Some(Check::fine("flags", format!("all {count} flags that ralph passes are in `{}`", call())))
        }
        Flags::NoHelp(reason) => Some(Check::note("flags", format!("not checked: {reason}"))),
        Flags::Missing(missing) => {
            let id = &definition.id;
            Some(Check::wrong("flags", format!("`{}` does not show `{}`", call(), missing.join("`, `"))).advice(
                format!("an update may have renamed them; set the new ones in `adapters.{id}.args` in `ralph.yml`"),
            ))
        }
    }
}

fn login_check(definition: &Definition) -> Check {
    match agent::auth(definition) {
        Auth::Seen => Check::fine("login", "seen"),
        Auth::NotNeeded => Check::fine("login", "not needed"),
        Auth::Unknown => {
            let advice = definition.auth.login.clone().unwrap_or_else(|| "log in".to_owned());
            Check::note("login", "none found; it may be in a keyring").advice(advice)
        }
    }
}

/// Any command as an agent: all that can be seen is whether it can be started.
fn command(name: &str, settings: &Settings, file: &FileLayer, workspace: &Path) -> Part {
    let startable = choose::choose(settings, file, workspace, Purpose::Look).and_then(|chosen| {
        let invocation = chosen.agent.invocation(&Turn::new("", workspace))?;
        process::check(&invocation).map_err(|error| start_error(&error))
    });
    let check = match startable {
        Ok(path) => Check::fine("program", path.display().to_string()),
        Err(error) => match error.hints.first() {
            Some(hint) => Check::wrong("program", error.message.clone()).advice(hint.clone()),
            None => Check::wrong("program", error.message),
        },
    };
    let origin = &settings.command.origin;
    Part {
        name: name.to_owned(),
        title: format!("{name} (command from {origin}), selected"),
        kind: Kind::Chosen,
        checks: vec![check],
    }
}
