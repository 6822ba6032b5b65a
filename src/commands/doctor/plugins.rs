//! The drivers and agent scripts of the repository: what their text shows, what their checks say where those may run, and
//! whether the command behind them is new enough.

use std::path::{Path, PathBuf};

use super::{Check, Kind, Part};
use crate::agent::{self, Catalog, Contract, Installation, Options, Question, Start, User, definition};
use crate::app::choose::{Purpose, still_waiting};
use crate::app::repository::NOT_EXAMINED;
use crate::commands::plugins;
use crate::config::Settings;
use crate::error::UserError;
use crate::plugin::conformance::{Examined, Grade, Point};
use crate::plugin::{self, by_text, files};
use crate::process::runtime;
use crate::trust::{self, Item};

/// All of them, or the one that is named.
pub(super) fn parts(
    named: Option<&str>,
    settings: &Settings,
    catalog: &Catalog,
    workspace: &Path,
    purpose: Purpose,
) -> Result<Vec<Part>, UserError> {
    let chosen = plugin::settings::find(settings, catalog, workspace)?;
    let listed = [Contract::Driver, Contract::Script].into_iter();
    let listed =
        listed.flat_map(|contract| files::list(contract, workspace).into_iter().map(move |file| (contract, file)));
    let listed = listed.map(|(contract, (name, path))| (contract, name, path));
    let mut all: Vec<(Contract, String, PathBuf)> = listed.collect();
    if let Some(chosen) = &chosen
        && !all.iter().any(|(_, _, path)| *path == chosen.path)
    {
        all.push((chosen.contract(workspace)?, chosen.name.clone(), chosen.path.clone()));
    }
    let is_chosen = |path: &Path| chosen.as_ref().is_some_and(|chosen| chosen.path == path);
    all.retain(|(_, _, path)| named.is_none() || is_chosen(path));
    let items = all.iter().map(|(contract, _, path)| Item::file(contract.word(), path, workspace));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    if purpose == Purpose::Run {
        trust::consent(&items, settings)?;
    }
    let mut parts = Vec::new();
    for ((contract, name, path), item) in all.into_iter().zip(items) {
        let may_run = purpose == Purpose::Run || trust::known(&[item]);
        let known = if may_run {
            plugins::examine(contract, &name, &path, settings, workspace)?
        } else {
            by_text::examine(contract, &path, workspace)?
        };
        let mut checks: Vec<Check> = known.points.iter().map(|point| check(point, &path)).collect();
        checks.extend(version(&known, catalog, workspace, may_run)?);
        if !may_run {
            checks.push(Check::note("plug-in", NOT_EXAMINED));
        }
        let (kind, why) = if is_chosen(&path) { (Kind::Chosen, ", selected") } else { (Kind::Other, "") };
        let title = format!("{name} ({} `{}`){why}", contract.word(), path.display());
        parts.push(Part { name: format!("{}:{name}", contract.word()), title, kind, checks });
    }
    Ok(parts)
}

fn check(point: &Point, path: &Path) -> Check {
    let text = point.text.clone();
    match point.grade {
        Grade::Good => Check::fine("plug-in", text),
        Grade::Note => Check::note("plug-in", text),
        Grade::Bad => Check::wrong("plug-in", text)
            .advice(format!("test it point by point: `ralph agents check {}`", path.display())),
    }
}

/// The version of the command beside the oldest that the plug-in wants. Only a command that ralph knows is asked, by its
/// name; any other, and a path that the text gives, only where the plug-in itself may run.
fn version(known: &Examined, catalog: &Catalog, workspace: &Path, may_run: bool) -> Result<Option<Check>, UserError> {
    let (Some(cli), Some(minimum)) = (&known.cli, &known.minimum) else { return Ok(None) };
    let wanted = format!("the driver needs {minimum} or newer (`driver_min_version`)");
    let command = Path::new(cli).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entry = catalog.entries().iter().find(|entry| entry.definition.commands.contains(&command));
    let mut definition = match entry {
        Some(entry) if may_run || !cli.contains('/') => (*entry.definition).clone(),
        _ if may_run => definition::of_command(cli),
        _ => return Ok(Some(Check::fine("version", wanted))),
    };
    definition.commands = vec![cli.clone()];
    definition.version.minimum = Some(minimum.clone());
    let install = definition.install.line.clone();
    let start = if may_run { Start::InWorkspace } else { Start::Outside };
    let start = match agent::found_inside(cli, workspace) {
        Some(_) if !may_run => Start::No,
        _ => start,
    };
    let versions = definition.version.clone();
    let question = Question { definition, options: Options { user: User::current(), ..Options::default() }, start };
    let probes = runtime()?.block_on(agent::probe_all(vec![question], workspace, still_waiting));
    Ok(Some(match probes.into_iter().next().map(|probe| probe.state) {
        Some(Installation::Installed { version: Some(version) })
            if versions.knows(&version) == agent::Known::TooOld =>
        {
            let advice = install.map_or_else(|| "update it".to_owned(), |line| format!("update it: {line}"));
            Check::note("version", format!("`{cli}` is {version}; {wanted}")).advice(advice)
        }
        Some(Installation::Installed { version: Some(version) }) => {
            Check::fine("version", format!("`{cli}` is {version}; {wanted}"))
        }
        _ => Check::fine("version", wanted),
    }))
}
