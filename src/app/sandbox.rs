//! The wall of a command: settings and agents become one, and everything that this process starts goes behind it.

use std::path::Path;
use std::sync::Arc;

use crate::agent::{Agent, Catalog, Definition};
use crate::app::choose::{self, Purpose};
use crate::config::{FileLayer, Settings};
use crate::error::UserError;
use crate::process::Needs;
use crate::sandbox::{self, Built, KnownAgent, Options, Sandbox};

/// Raises the wall that the settings ask for, before anything of the repository runs. What the user should know is added
/// to `notices`.
pub(crate) fn raise(
    settings: &Settings,
    catalog: &Catalog,
    workspace: &Path,
    notices: &mut Vec<String>,
) -> Result<Option<Arc<Sandbox>>, UserError> {
    let Built { sandbox, notices: told } = build(settings.sandbox(), catalog, workspace, sandbox::Purpose::Run)?;
    notices.extend(told);
    sandbox.iter().for_each(Sandbox::raise);
    Ok(sandbox)
}

/// The same around another directory than that of a run: a worktree that is set up, or in which checks run.
pub(crate) fn around(settings: &Settings, workspace: &Path) -> Result<(), UserError> {
    let catalog = choose::catalog(workspace, &FileLayer::default());
    // In a thread of its own: looking for a backend waits for programs, and the caller may be in the middle of that.
    let raised = std::thread::scope(|scope| {
        scope.spawn(|| raise(settings, &catalog, workspace, &mut Vec::new()).map(drop)).join()
    });
    raised.unwrap_or_else(|_| Err(UserError::failed("cannot raise the sandbox")))
}

/// The same for a run, or only what it would be for a look at one.
pub(crate) fn prepare(
    settings: &Settings,
    catalog: &Catalog,
    workspace: &Path,
    purpose: Purpose,
) -> Result<(Option<Arc<Sandbox>>, Vec<String>), UserError> {
    if purpose == Purpose::Look {
        let Built { sandbox, notices } = build(settings.sandbox(), catalog, workspace, sandbox::Purpose::Look)?;
        return Ok((sandbox, notices));
    }
    let mut notices = Vec::new();
    let wall = raise(settings, catalog, workspace, &mut notices)?;
    Ok((wall, notices))
}

/// A wall that nothing is behind yet.
pub(crate) fn build(
    options: Options,
    catalog: &Catalog,
    workspace: &Path,
    purpose: sandbox::Purpose,
) -> Result<Built, UserError> {
    // All agent files are read for this, so only where there is a wall.
    let agents = || catalog.entries().iter().map(|entry| known(&entry.definition)).collect();
    sandbox::build(options, agents, workspace, purpose)
}

fn known(definition: &Definition) -> KnownAgent {
    KnownAgent {
        id: definition.id.clone(),
        commands: definition.commands.clone(),
        needs: definition.needs(),
        logins: definition.auth.files.clone(),
    }
}

/// An agent's own sandbox cannot work inside another one, and is not needed there; what the user says still counts.
pub(crate) fn inside(agent: &mut Agent) {
    if agent.definition.own_sandbox && agent.options.permissions.is_none() {
        agent.options.permissions = Some(crate::agent::Permissions::Full);
    }
}

/// What an agent of the catalog needs; nothing for a name that is not there.
pub(crate) fn needs_of(name: &str, catalog: &Catalog) -> Needs {
    catalog.find(name).map(|entry| entry.definition.needs()).unwrap_or_default()
}
