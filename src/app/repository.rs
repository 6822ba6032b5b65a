//! What a run would execute that comes from the repository: drivers, scripts, agent files, and the commands that
//! configuration files name. It reads; it starts nothing.

use std::path::Path;

use crate::agent::{self, Catalog, Entry, Source, Start};
use crate::app::agent_choice::settings_for;
use crate::app::choose::{catalog, options, passed_over};
use crate::app::gates;
use crate::app::planning::hook_lines;
use crate::config::{Adapter, CommandLine, FileLayer, Origin, Setting, Settings, ShellLine};
use crate::error::UserError;
use crate::plugin;
use crate::run::hats::AgentChoice;
use crate::transcript::Choice;
use crate::trust::{self, Item};

/// What a command says of something that it would have to run to know more.
pub(crate) const NOT_EXAMINED: &str =
    "not checked, because it would run code of this repository; `ralph doctor --plugins` checks it";

/// Asks for consent where the user wants that, before anything of the repository runs.
pub(crate) fn consent(settings: &Settings, file: &FileLayer, workspace: &Path) -> Result<(), UserError> {
    trust::consent(&of_run(settings, file, workspace)?, settings)
}

/// Everything that a run would execute.
fn of_run(settings: &Settings, file: &FileLayer, workspace: &Path) -> Result<Vec<Item>, UserError> {
    let command =
        |key: &str, text: &str, origin: &Origin| of_origin(Item::command(key, text, text, origin, workspace), origin);
    let mut items = Vec::new();
    let checks = settings.verify.value.checks.iter();
    items.extend(checks.map(|check| command("verify", &check.command, &settings.verify.origin)));
    if let Setting { value: Some(ShellLine(argv)), origin } = &settings.notify_command {
        items.push(command("notify.command", &argv.join(" "), origin));
    }
    if let Setting { value: Some(setup), origin } = &settings.worktree_setup {
        items.push(command("worktree.setup", &setup.0, origin));
    }
    for (moment, line) in hook_lines(settings) {
        if let Some(ShellLine(argv)) = &line.value {
            items.push(command(moment.key(), &argv.join(" "), &line.origin));
        }
    }
    for (name, line) in &settings.commands.value.0 {
        items.push(command(&format!("commands.{name}"), line, &settings.commands.origin));
    }
    if let Setting { value: Choice::Command(argv), origin } = &settings.transcript {
        items.push(command("transcript.command", &argv.join(" "), origin));
    }
    if !settings.extra_args.value.is_empty() {
        items.push(command("cli.extra_args", &settings.extra_args.value.join(" "), &settings.extra_args.origin));
    }
    let catalog = catalog(workspace, file);
    items.extend(of_agent(settings, file, &catalog, workspace)?);
    let fallback = settings.fallback.value.iter().map(|name| (AgentChoice::named(name), &settings.fallback.origin));
    let fallback =
        fallback.chain(settings.rotate.value.iter().map(|name| (AgentChoice::named(name), &settings.rotate.origin)));
    let of_hats = settings.hats.value.choices.iter().map(|hat| (hat.value.1.clone(), &hat.origin));
    for (choice, origin) in fallback.chain(of_hats).chain(gates::named_judges(settings)) {
        if !choice.args.is_empty() {
            items.push(command("hats.args", &choice.args.join(" "), origin));
        }
        items.extend(of_agent(&settings_for(&choice, origin, settings), file, &catalog, workspace)?);
    }
    items.dedup();
    Ok(items)
}

/// What the agent that the settings name would execute; with `auto`, every agent that it would ask for a version.
pub(crate) fn of_agent(
    settings: &Settings,
    file: &FileLayer,
    catalog: &Catalog,
    workspace: &Path,
) -> Result<Vec<Item>, UserError> {
    if let Some(found) = plugin::settings::find(settings, catalog, workspace)? {
        let mut items = vec![found.item(workspace)?];
        items.extend(of_adapter(&found.name, &file.adapter(&found.name), workspace));
        return Ok(items);
    }
    let mut items = Vec::new();
    if let Some((argv, origin)) = plugin::wrapper::command(settings, workspace)? {
        items.extend(of_command("claude_command", &argv, &origin, workspace)?);
        items.extend(of_adapter(plugin::wrapper::NAME, &file.adapter(plugin::wrapper::NAME), workspace));
        return Ok(items);
    }
    let name = match settings.agent.value.as_str() {
        // The default driver that no file has.
        "driver:claude-code" => "claude",
        name => name,
    };
    match settings.custom_command() {
        Some(Setting { value: argv, origin }) if name == "custom" || matches!(origin, Origin::Flag(_)) => {
            items.extend(of_command("cli.command", &argv, &origin, workspace)?);
            items.extend(of_adapter("custom", &file.adapter("custom"), workspace));
        }
        _ if name == "auto" => {
            for entry in catalog.entries().iter().filter(|entry| passed_over(entry, file).is_none()) {
                items.extend(of_entry(entry, settings, file, workspace)?);
            }
        }
        _ => {
            if let Ok(entry) = catalog.find(name) {
                items.extend(of_entry(entry, settings, file, workspace)?);
            }
        }
    }
    Ok(items)
}

/// A command of a configuration file, and its program where that is in the workspace. A path that the user gives is the
/// user's; a name that is found in the workspace is not.
fn of_command(key: &str, argv: &[String], origin: &Origin, workspace: &Path) -> Result<Vec<Item>, UserError> {
    let text = argv.join(" ");
    let mut items = vec![of_origin(Item::command(key, &text, &argv.join("\0"), origin, workspace), origin)];
    if let Some(program) = argv.first()
        && let Some(path) = agent::found_inside(program, workspace)
    {
        let item = Item::file("program", &path, workspace)?;
        items.push(if program.contains('/') { of_origin(item, origin) } else { item });
    }
    Ok(items)
}

/// What a configuration file says of one agent, as far as it changes what runs. Variables count: some of them load code.
fn of_adapter(name: &str, adapter: &Adapter, workspace: &Path) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |key: &str, shown: String, text: String, origin: &Origin| {
        let item = Item::command(&format!("adapters.{name}.{key}"), &shown, &text, origin, workspace);
        items.push(of_origin(item, origin));
    };
    if let Some(Setting { value: Some(CommandLine(argv)), origin }) = &adapter.command {
        add("command", argv.join(" "), argv.join("\0"), origin);
    }
    if let Some(Setting { value: Some(args), origin }) = &adapter.args {
        add("args", args.join(" "), args.join("\0"), origin);
    }
    if let Some(Setting { value: args, origin }) = adapter.extra_args.as_ref().filter(|args| !args.value.is_empty()) {
        add("extra_args", args.join(" "), args.join("\0"), origin);
    }
    if let Some(Setting { value: variables, origin }) = adapter.env.as_ref().filter(|env| !env.value.0.is_empty()) {
        let names: Vec<&str> = variables.0.iter().map(|(name, _)| name.as_str()).collect();
        let text: Vec<String> = variables.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        add("env", names.join(" "), text.join("\0"), origin);
    }
    items
}

pub(crate) fn of_entry(
    entry: &Entry,
    settings: &Settings,
    file: &FileLayer,
    workspace: &Path,
) -> Result<Vec<Item>, UserError> {
    let adapter = file.adapter(&entry.id);
    let mut items = of_adapter(&entry.id, &adapter, workspace);
    items.extend(of_program(entry, settings, &adapter, workspace)?);
    Ok(items)
}

/// The agent file of the repository, and the program where it is in the workspace.
fn of_program(entry: &Entry, settings: &Settings, adapter: &Adapter, workspace: &Path) -> Result<Vec<Item>, UserError> {
    let mut items = Vec::new();
    if let Source::File(path) = &entry.source
        && !agent::is_users(path)
    {
        items.push(Item::file("agent file", path, workspace)?);
    }
    if let (_, Ok(path)) = agent::locate(&entry.definition, options(settings, adapter, workspace), workspace)
        && agent::is_inside(&path, workspace)
    {
        items.push(Item::file("program", &path, workspace)?);
    }
    Ok(items)
}

/// Whether an agent may be asked for its version by a command that only looks: it must be the user's own, or have run here.
pub(crate) fn may_start(entry: &Entry, settings: &Settings, adapter: &Adapter, workspace: &Path) -> Start {
    let Ok(mut items) = of_program(entry, settings, adapter, workspace) else { return Start::No };
    let command = Adapter { command: adapter.command.clone(), ..Adapter::default() };
    items.extend(of_adapter(&entry.id, &command, workspace));
    if trust::known(&items) { Start::Outside } else { Start::No }
}

/// What the user says on the command line is the user's own. What a configuration file or a saved plan says is not.
fn of_origin(item: Item, origin: &Origin) -> Item {
    match origin {
        Origin::File { .. } | Origin::Saved(_) => item,
        Origin::Flag(_) | Origin::Environment(_) | Origin::Default | Origin::Contract(_) => item.given_by_user(),
    }
}
