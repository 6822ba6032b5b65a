//! The wall around everything an agent starts: what it may do, decided here and enforced by `process/wall`.
//!
//! Options and data become rules (`policy.rs`); hosts are judged by a proxy (`proxy.rs`); changes to what runs outside are
//! found (`tamper.rs`); what was refused is explained (`explain.rs`). It must never say that something is stopped which
//! this machine does not stop.

mod data;
mod denial;
mod explain;
mod head;
pub(crate) mod hosts;
mod options;
mod policy;
mod proxy;
mod refusals;
mod tamper;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

pub(crate) use data::real;
pub(crate) use denial::complaints;
pub(crate) use explain::describe_machine;
pub(crate) use options::Options;
pub(crate) use options::{Backend, Environment, Mode, Network, Tamper};
pub(crate) use policy::Sandbox;
pub(crate) use tamper::Watch;

use crate::error::UserError;
use crate::git::Repository;
use crate::process::wall::{self, Machine};
use crate::process::{Needs, PrivateDirectory};

/// An agent that is known by name: its programs, its id and what it needs.
#[derive(Clone, Debug)]
pub(crate) struct KnownAgent {
    pub id: String,
    pub commands: Vec<String>,
    pub needs: Needs,
    /// Files with its login.
    pub logins: Vec<String>,
}

/// Whether missing directories may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Look,
    Run,
}

/// A wall, and what the user should know about it.
#[derive(Debug)]
pub(crate) struct Built {
    pub sandbox: Option<Arc<Sandbox>>,
    pub notices: Vec<String>,
}

/// Builds the wall for a workspace; nothing is behind it yet.
pub(crate) fn build(
    options: Options,
    agents: impl FnOnce() -> Vec<KnownAgent>,
    workspace: &Path,
    purpose: Purpose,
) -> Result<Built, UserError> {
    if options.mode == Mode::Off {
        return Ok(Built { sandbox: None, notices: Vec::new() });
    }
    let agents = agents();
    let machine = wall::machine();
    let backend = match choose(&machine, options.backend) {
        Ok(backend) => backend,
        Err(reason) if options.required => {
            return Err(UserError::usage(format!("the sandbox is not available: {reason}"))
                .hint("run without it: `--sandbox=off`; or allow that where it is not available: `sandbox.required: false`")
                .hint("see what this machine offers: `ralph sandbox explain`"));
        }
        Err(reason) => {
            let notice = format!("WITHOUT A SANDBOX (`sandbox.required: false`): {reason}");
            return Ok(Built { sandbox: None, notices: vec![notice] });
        }
    };
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let workspace = real(workspace);
    check_workspace(&workspace, home.as_deref())?;
    let mut notices = Vec::new();
    let repository = Repository::around(&workspace);
    let (mut outside, mut protected) = (Vec::new(), Vec::new());
    if let Some(repository) = &repository {
        match repository.directories_outside(&workspace) {
            Ok(directories) => outside = directories,
            Err(directory) => notices.push(format!(
                "sandbox: the git directory `{}` does not name this work tree, so the agent cannot write to it; \
                 add it to `sandbox.write` if it is yours",
                directory.display()
            )),
        }
        protected.extend(repository.runs());
    }
    protected.extend(own_files(&workspace));
    let temporary = PrivateDirectory::new()
        .map_err(|error| UserError::usage(format!("cannot make a temporary directory for the sandbox: {error}")))?;
    let logins = agents.iter().flat_map(|agent| &agent.logins);
    let logins = logins.filter_map(|text| data::path(text, home.as_deref(), &|name| std::env::var_os(name))).collect();
    let sandbox = Sandbox {
        options,
        backend,
        home: home.as_deref().map(real),
        repository: outside,
        protected: protected.iter().map(|path| real(path)).collect(),
        logins,
        temporary,
        proxies: Mutex::new(HashMap::new()),
        refusals: refusals::Refusals::default(),
        makes: purpose == Purpose::Run,
        agents,
        usual: OnceLock::new(),
        cached: OnceLock::new(),
        workspace,
    };
    let hidden = sandbox.hidden(&[]);
    if let Some(place) = hidden.iter().find(|hidden| sandbox.workspace.starts_with(hidden)) {
        return Err(UserError::usage(format!("the workspace is in `{}`, which the sandbox hides", place.display()))
            .hint("work in another directory, add it to `sandbox.write`, or use `--sandbox=off`"));
    }
    notices.splice(0..0, sandbox.first_lines(&machine));
    Ok(Built { sandbox: Some(Arc::new(sandbox)), notices })
}

impl Sandbox {
    /// Puts everything that this process starts from now on behind this wall.
    pub(crate) fn raise(self: &Arc<Self>) {
        wall::raise(Arc::clone(self) as Arc<dyn wall::Wall>);
    }

    /// Nothing more is started: removes the temporary directory. The wall itself stays as long as this process.
    pub(crate) fn close(&self) {
        self.temporary.remove();
    }
}

/// The backend that is used, or why none can be.
pub(crate) fn choose(machine: &Machine, wanted: Backend) -> Result<wall::Backend, String> {
    let landlock = if machine.landlock == 0 {
        Err("this kernel has no Landlock".to_owned())
    } else if machine.seccomp {
        Ok(wall::Backend::Landlock)
    } else {
        Err("this kernel has no seccomp filters".to_owned())
    };
    let bubblewrap = match &machine.bubblewrap {
        Ok(_) if machine.seccomp => Ok(wall::Backend::Bubblewrap),
        Ok(_) => Err("this kernel has no seccomp filters".to_owned()),
        Err(reason) => Err(reason.clone()),
    };
    match (wanted, landlock, bubblewrap) {
        (Backend::Landlock, landlock, _) => landlock,
        (Backend::Bubblewrap, _, bubblewrap) => bubblewrap,
        (Backend::Auto, _, Ok(stronger)) => Ok(stronger),
        (Backend::Auto, Ok(weaker), Err(_)) => Ok(weaker),
        (Backend::Auto, Err(one), Err(other)) => Err(format!("{one}, and {other}")),
    }
}

/// A wall around the whole home directory would protect nothing.
fn check_workspace(workspace: &Path, home: Option<&Path>) -> Result<(), UserError> {
    let home = home.map(real);
    let holds_home = home.as_ref().is_some_and(|home| home.starts_with(workspace));
    if !holds_home && workspace != Path::new("/") {
        return Ok(());
    }
    let what = if home.as_deref() == Some(workspace) { "is" } else { "contains" };
    Err(UserError::usage(format!("the workspace `{}` {what} your home directory", workspace.display()))
        .hint("the agent could change everything in it: work in a directory of the project")
        .hint("or run without the sandbox: `--sandbox=off`"))
}

/// ralph's own files in a workspace: settings, and plug-ins that a later run executes. Under the contracts of other loops an
/// agent keeps notes in `.ralph`, so there only what is executed counts.
fn own_files(workspace: &Path) -> Vec<PathBuf> {
    let mut names = vec!["ralph.yml", "ralph.yaml", ".ralphrc", ".ralphex/config"];
    let other_loop = [".ralphrc", ".ralph/.ralphrc", ".ralph/fix_plan.md", ".ralph/plan.md", ".ralph/config"];
    if other_loop.iter().any(|name| workspace.join(name).exists()) {
        names.extend([
            ".ralph/agents",
            ".ralph/drivers",
            ".ralph/prompts",
            ".ralph/lib",
            ".ralph/.ralphrc",
            ".ralph/config",
        ]);
    } else {
        names.push(".ralph");
    }
    names.into_iter().map(|name| workspace.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(landlock: u32, seccomp: bool, bubblewrap: bool) -> Machine {
        let bubblewrap = if bubblewrap { Ok("/usr/bin/bwrap".into()) } else { Err("no `bwrap`".to_owned()) };
        Machine { landlock, seccomp, bubblewrap, counts_processes: false, counts_memory: false }
    }

    #[test]
    fn the_stronger_backend_that_works_is_taken_and_nothing_is_no_wall() {
        use wall::Backend::{Bubblewrap, Landlock};
        assert_eq!(choose(&machine(6, true, true), Backend::Auto), Ok(Bubblewrap));
        assert_eq!(choose(&machine(6, true, false), Backend::Auto), Ok(Landlock));
        assert_eq!(choose(&machine(0, true, true), Backend::Auto), Ok(Bubblewrap));
        assert_eq!(choose(&machine(6, true, true), Backend::Landlock), Ok(Landlock));
        assert!(choose(&machine(0, true, false), Backend::Auto).is_err());
        assert!(choose(&machine(6, false, true), Backend::Auto).is_err());
        assert!(choose(&machine(6, true, false), Backend::Bubblewrap).is_err());
    }

    #[test]
    fn the_home_directory_is_no_workspace() {
        let home = Path::new("/home/someone");
        assert!(check_workspace(home, Some(home)).is_err() && check_workspace(Path::new("/home"), Some(home)).is_err());
        assert!(check_workspace(Path::new("/"), None).is_err());
        assert!(check_workspace(Path::new("/home/someone/project"), Some(home)).is_ok());
    }
}
