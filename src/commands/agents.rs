//! `ralph agents`: what is installed, what `auto` would take, and how each agent is called.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::plugins::{self, Plugin};
use crate::agent::{self, Auth, Catalog, Definition, Entry, Installation, Mode, Probe, Session, Turn};
use crate::app::appearance::{columns, palette};
use crate::app::choose::{Purpose, catalog, choose, options, passed_over, question, settle, still_waiting};
use crate::app::repository::NOT_EXAMINED;
use crate::app::warn;
use crate::app::working_directory;
use crate::cli::{Agents, AgentsAction, Show};
use crate::config::{self, FileLayer, Layer, Origin, Setting};
use crate::error::UserError;
use crate::plugin::{self, Chosen};
use crate::process;
use crate::process::runtime;
use crate::ui::table::{Align, Cell, fit, painted};
use crate::ui::{Ink, Palette, harmless, out, pretty, wrap};

/// Runs `ralph agents` or one of its subcommands.
pub(crate) fn run(args: &Agents) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    let catalog = catalog(&workspace, &file);
    warn(file.warnings.iter().chain(&catalog.warnings()));
    let mut code = 0;
    let text = match &args.action {
        Some(AgentsAction::Show(show)) => self::show(show, &catalog, &file, &workspace)?,
        Some(AgentsAction::New(new)) => plugins::new(new, &workspace)?,
        Some(AgentsAction::Check(check)) => {
            process::protect(process::own_program());
            let (report, status) = plugins::check(check, &file.layer.settle(), &workspace)?;
            code = status;
            report
        }
        None => {
            let rows = list(&catalog, &file, &workspace)?;
            warn(plugins::ignored(&workspace));
            let plugins = plugins::all(&file.layer.clone().settle(), &workspace);
            if args.json {
                pretty(&Value::Array(rows.iter().map(Row::json).chain(plugins.iter().map(Plugin::json)).collect()))
            } else {
                let cells = rows.iter().map(Row::cells).chain(plugins.iter().map(Plugin::cells));
                let used: Vec<String> = used(&file, &workspace).lines().map(harmless).collect();
                table(cells, columns().count(), palette())
                    + &used.iter().fold(String::new(), |all, line| all + line + "\n")
            }
        }
    };
    // The reader may be gone.
    let _ = if args.action.is_none() && !args.json { out::print_painted(&text) } else { out::print(&text) };
    Ok(code)
}

/// One agent as this machine has it.
struct Row<'a> {
    entry: &'a Entry,
    probe: Probe,
    auth: Auth,
    auto: Verdict,
}

/// What `auto` makes of an agent.
enum Verdict {
    Taken,
    Left(String),
}

fn list<'a>(catalog: &'a Catalog, file: &FileLayer, workspace: &Path) -> Result<Vec<Row<'a>>, UserError> {
    let settings = Layer::default().settle();
    let entries = catalog.entries().iter();
    let questions = entries.map(|entry| question(entry, &settings, file, workspace, Purpose::Look));
    process::protect(process::own_program());
    let probes = runtime()?.block_on(agent::probe_all(questions.collect(), workspace, still_waiting));
    let mut taken: Option<&str> = None;
    let rows = catalog.entries().iter().zip(probes).map(|(entry, probe)| {
        let auto = match (passed_over(entry, file), &probe.state, taken) {
            (Some(reason), ..) => Verdict::Left(reason),
            (None, Installation::Missing, _) => Verdict::Left("not installed".to_owned()),
            (None, Installation::Broken(reason), _) => Verdict::Left(reason.clone()),
            (None, Installation::Installed { .. } | Installation::NotExamined, Some(first)) => {
                Verdict::Left(format!("`{first}` is picked first"))
            }
            (None, Installation::Installed { .. } | Installation::NotExamined, None) => {
                taken = Some(&entry.id);
                Verdict::Taken
            }
        };
        Row { entry, probe, auth: agent::auth(&entry.definition), auto }
    });
    Ok(rows.collect())
}

impl Row<'_> {
    fn version(&self) -> String {
        match &self.probe.state {
            Installation::Installed { version: Some(version) } => version.clone(),
            Installation::Installed { version: None } => "unknown".to_owned(),
            Installation::Broken(_) => "broken".to_owned(),
            Installation::Missing => "-".to_owned(),
            Installation::NotExamined => "not checked".to_owned(),
        }
    }

    fn auth(&self) -> &'static str {
        match self.auth {
            Auth::Seen => "seen",
            Auth::Unknown => "unknown",
            Auth::NotNeeded => "not needed",
        }
    }

    fn cells(&self) -> [String; 7] {
        let definition = &self.entry.definition;
        let path = self.probe.path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let auto = match &self.auto {
            Verdict::Taken if self.probe.state == Installation::NotExamined => format!("picked; {NOT_EXAMINED}"),
            Verdict::Taken => "picked".to_owned(),
            Verdict::Left(reason) if self.probe.state == Installation::NotExamined => {
                format!("no: {reason}; {NOT_EXAMINED}")
            }
            Verdict::Left(reason) => format!("no: {reason}"),
        };
        [
            definition.id.clone(),
            self.version(),
            definition.dialect.clone(),
            Some(sessions(definition).join(" ")).filter(|all| !all.is_empty()).unwrap_or_else(|| "-".to_owned()),
            self.auth().to_owned(),
            auto,
            path,
        ]
    }

    fn json(&self) -> Value {
        let definition = &self.entry.definition;
        let (state, version, problem) = match &self.probe.state {
            Installation::Installed { version } => ("installed", version.as_deref(), None),
            Installation::Missing => ("missing", None, None),
            Installation::Broken(reason) => ("broken", None, Some(reason.as_str())),
            Installation::NotExamined => ("not checked", None, Some(NOT_EXAMINED)),
        };
        let (taken, reason) = match &self.auto {
            Verdict::Taken => (true, None),
            Verdict::Left(reason) => (false, Some(reason)),
        };
        json!({
            "id": definition.id, "name": definition.name, "source": self.entry.source.to_string(),
            "state": state, "version": version, "problem": problem,
            "path": self.probe.path, "dialect": definition.dialect, "sessions": sessions(definition),
            "auth": self.auth(), "auto": {"taken": taken, "reason": reason}, "install": definition.install,
        })
    }
}

/// What an agent can do with sessions.
fn sessions(definition: &Definition) -> Vec<&'static str> {
    let session = &definition.session;
    let kinds = [("resume", &session.resume), ("fork", &session.fork), ("given", &session.given)];
    kinds.into_iter().filter(|(_, form)| form.is_some()).map(|(name, _)| name).collect()
}

fn table(rows: impl Iterator<Item = [String; 7]>, columns: usize, palette: Palette) -> String {
    let head = ["AGENT", "VERSION", "DIALECT", "SESSIONS", "AUTH", "AUTO", "PATH"];
    let mut lines: Vec<[String; 7]> = rows.collect();
    let mut legend = LEGEND.to_owned();
    if lines.iter().any(|cells| cells[5].contains(NOT_EXAMINED)) {
        legend = format!("{legend}{NOT_EXAMINED}\n");
        for cells in &mut lines {
            cells[5] = cells[5].replace(NOT_EXAMINED, "not checked");
        }
    }
    let mut cells = vec![head.map(|name| Cell { text: name.to_owned(), ink: Ink::Strong }).to_vec()];
    cells.extend(lines.into_iter().map(|line| {
        let ink = match line[5].as_str() {
            auto if auto.starts_with("picked") => Ink::Good,
            _ if line[1] == "broken" => Ink::Bad,
            _ if line[1] == "-" => Ink::Dim,
            _ => Ink::None,
        };
        line.map(|text| Cell { text: harmless(&text), ink }).to_vec()
    }));
    if fit(&mut cells, &["PATH", "SESSIONS", "DIALECT", "AUTH"], columns) {
        legend += "this terminal is too narrow for all columns; `ralph agents --json` has them all\n";
    }
    let mut text =
        painted(&[Align::Left; 7], &cells, palette).into_iter().fold(String::new(), |all, line| all + &line + "\n");
    for line in legend.lines() {
        text.extend(wrap(line, columns).into_iter().map(|row| row + "\n"));
    }
    text
}

/// Which agent a run here would use, where that is not the one that `auto` takes.
fn used(file: &FileLayer, workspace: &Path) -> String {
    match settle(config::environment().over(file.layer.clone()), file, workspace).map(|settings| settings.agent) {
        Ok(Setting { value, origin }) if value != "auto" => format!("\na run here uses `{value}` (from {origin})\n"),
        Ok(_) => String::new(),
        Err(error) => format!("\na run here would fail: {}\n", error.message),
    }
}

/// What the short words of the table mean.
const LEGEND: &str = "
SESSIONS: resume (continue a session), fork (continue a copy of one), given (ralph chooses the id of a new one)
AUTH: seen (a login variable or file exists), unknown (none found; it may be in a keyring)
";

fn show(args: &Show, catalog: &Catalog, file: &FileLayer, workspace: &Path) -> Result<String, UserError> {
    let named = Setting::new(args.name.clone(), Origin::Flag("NAME"));
    let said = Layer { agent: Some(named), ..Layer::default() }.over(file.layer.clone());
    let settings = settle(said, file, workspace)?;
    if let Some(found) = plugin::settings::find(&settings, catalog, workspace)? {
        return plugins::show(args, &found, &settings, file, workspace);
    }
    let is_command = ["custom", plugin::wrapper::NAME].contains(&args.name.as_str());
    let (agent, found, source) = if is_command || plugin::settings::lacks_driver_file(&settings, workspace) {
        let Chosen { agent, why, .. } = choose(&settings, file, workspace, Purpose::Look)?;
        let found = process::check(&agent.invocation(&Turn::new("", workspace))?);
        let source = if args.name == "custom" { "`cli.command` in the configuration".to_owned() } else { why };
        (agent, found, source)
    } else {
        let entry = catalog.find(&args.name)?;
        let adapter = file.adapter(&entry.id);
        let (agent, found) = agent::locate(&entry.definition, options(&settings, &adapter, workspace), workspace);
        (agent, found, entry.source.to_string())
    };
    let definition = &agent.definition;
    let words = if args.prompt.is_empty() { "PROMPT".to_owned() } else { args.prompt.join(" ") };
    let new = Turn::new(&words, workspace);
    let resume = Turn { session: Session::Resume("SESSION".to_owned()), ..new.clone() };
    let talk = Turn { mode: Mode::Interactive, ..new.clone() };
    let mut commands = vec![("new", agent.shell_line(&new)?)];
    if definition.session.resume.is_some() {
        commands.push(("resume", agent.shell_line(&resume)?));
    }
    if definition.interactive.is_some() {
        commands.push(("interactive", agent.shell_line(&talk)?));
    }
    let path = found.ok();
    if args.json {
        let commands: serde_json::Map<String, Value> =
            commands.into_iter().map(|(name, line)| (name.to_owned(), Value::String(line))).collect();
        let whole = json!({
            "source": source, "path": path, "definition": definition, "commands": commands,
        });
        return Ok(pretty(&whole));
    }
    Ok(page(definition, &source, path, &commands))
}

fn page(definition: &Definition, source: &str, path: Option<PathBuf>, commands: &[(&str, String)]) -> String {
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let listed = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(" ") };
    let assignments = |set: &std::collections::BTreeMap<String, String>| {
        set.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let stop = definition.stop.iter().map(|step| format!("{:?} {} s", step.signal, step.seconds).to_lowercase());
    let sessions = sessions(definition).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut rows = vec![
        ("agent", format!("{} ({})", definition.id, definition.name)),
        ("defined", source.to_owned()),
        ("commands", listed(&definition.commands)),
        ("program", path.map_or_else(|| "not found".to_owned(), |path| path.display().to_string())),
        ("tested", optional(&definition.version.tested)),
        ("at least", optional(&definition.version.minimum)),
        ("install", optional(&definition.install.line)),
        ("link", optional(&definition.install.link)),
        ("auth", listed(&definition.auth.variables)),
        ("login", optional(&definition.auth.login)),
        ("dialect", definition.dialect.clone()),
        ("sessions", listed(&sessions)),
        ("terminal", if definition.tty { "needed".to_owned() } else { "not needed".to_owned() }),
        ("stop", stop.chain(["kill".to_owned()]).collect::<Vec<_>>().join(", ")),
        ("sets", listed(&assignments(&definition.environment.set))),
        ("as root", listed(&assignments(&definition.environment.set_as_root))),
        ("removes", listed(&definition.environment.remove)),
    ];
    rows.extend(definition.permission_help.clone().map(|help| ("permission", help)));
    rows.extend(definition.pitfalls.iter().map(|pitfall| ("note", pitfall.message.clone())));
    let rows = rows.into_iter().map(|(name, value)| format!("{name:<11} {value}\n"));
    let commands = commands.iter().map(|(name, line)| format!("\n{name}:\n  {}\n", line.replace('\n', "\n  ")));
    rows.chain(commands).collect()
}
