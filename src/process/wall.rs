//! The wall around a command: what it may write, read, reach and use up, decided elsewhere and enforced here.
//!
//! Everything that is started is inside, once a wall is raised, except what says that it is ralph's own. It must never
//! start a command outside because something about the wall failed.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};

use super::mark::Mark;
use super::{Invocation, StartError};

#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod bubblewrap;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod confine;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod landlock;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod limits;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod mounts;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod seccomp;
#[cfg(any(not(target_os = "linux"), ralph_portable))]
mod unavailable;

#[cfg(all(target_os = "linux", not(ralph_portable)))]
pub use bubblewrap::inside_main;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
pub(super) use confine::Prepared;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
pub(crate) use confine::machine;
#[cfg(any(not(target_os = "linux"), ralph_portable))]
pub(super) use unavailable::Prepared;
#[cfg(any(not(target_os = "linux"), ralph_portable))]
pub use unavailable::inside_main;
#[cfg(any(not(target_os = "linux"), ralph_portable))]
pub(crate) use unavailable::machine;

/// Where a command runs while a wall is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind the wall, with what it needs beside what every command may do.
    Inside(Needs),
    /// It is ralph's own, and runs nothing that an agent can write.
    Outside,
}

impl Default for Place {
    fn default() -> Self {
        Self::Inside(Needs::default())
    }
}

/// What one command needs beside what every command may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files and directories that it writes; missing directories are made.
    pub write: Vec<PathBuf>,
    /// Files below those that can name commands: read-only where that can be had.
    pub settings: Vec<PathBuf>,
    /// Hosts that it talks to.
    pub hosts: Vec<String>,
    /// Variables that it reads.
    pub variables: Vec<String>,
    /// It starts an agent: the one that `RALPH_AGENT` names.
    pub of_agent: bool,
}

/// Decides what a command may do.
pub(crate) trait Wall: Send + Sync {
    /// The rules for one command; an error means that it is not started.
    fn rules(&self, invocation: &Invocation, needs: &Needs) -> Result<Rules, String>;
}

static WALL: RwLock<Option<Arc<dyn Wall>>> = RwLock::new(None);

/// Puts everything that this process starts from now on behind a wall, instead of the one before.
pub(crate) fn raise(wall: Arc<dyn Wall>) {
    *WALL.write().unwrap_or_else(PoisonError::into_inner) = Some(wall);
}

/// Nothing more is started behind the wall, and its temporary directory is removed.
pub(crate) fn lower() {
    *WALL.write().unwrap_or_else(PoisonError::into_inner) = None;
}

fn raised() -> Option<Arc<dyn Wall>> {
    WALL.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The wall of an invocation, ready to be entered; none where there is no wall for it.
pub(super) fn prepare(invocation: &Invocation, mark: Mark) -> Result<Option<Arc<Prepared>>, StartError> {
    let (Place::Inside(needs), Some(wall)) = (&invocation.place, raised()) else { return Ok(None) };
    let prepared = wall.rules(invocation, needs).and_then(|rules| Prepared::new(&rules, invocation, mark));
    let refused = |reason| StartError::NoWall { program: invocation.program.clone(), reason };
    prepared.map(|prepared| Some(Arc::new(prepared))).map_err(refused)
}

/// What one command may do. Paths are absolute and without links.
#[cfg_attr(any(not(target_os = "linux"), ralph_portable), allow(dead_code))]
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub backend: Backend,
    /// Everything below may be changed.
    pub write: Vec<PathBuf>,
    /// Everything below may be read and executed.
    pub read: Vec<PathBuf>,
    /// What must not be read, wherever it is below the others.
    pub hidden: Vec<PathBuf>,
    /// What is below `write` and must not be changed; only bubblewrap can do that.
    pub read_only: Vec<PathBuf>,
    /// Directories with sockets that it may connect to.
    pub sockets: Vec<PathBuf>,
    /// Its own temporary directory.
    pub temporary: PathBuf,
    pub network: Network,
    pub limits: Limits,
    /// The only variables that are inherited; all of them when `None`. A trailing `*` keeps every name that begins so.
    pub keep: Option<Vec<String>>,
    /// Variables to set, over those of the invocation.
    pub set: Vec<(OsString, OsString)>,
}

/// What builds the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Landlock and seccomp in the process itself.
    Landlock,
    /// Namespaces and mounts around it, with Landlock's scopes and seccomp.
    Bubblewrap,
}

/// What it may reach.
#[cfg_attr(any(not(target_os = "linux"), ralph_portable), allow(dead_code))]
#[derive(Clone, Debug)]
pub(crate) enum Network {
    All,
    None,
    /// Only a proxy on this port of the loopback interface. Where the command has a network of its own, its listening
    /// socket is sent through one of these.
    Proxy {
        port: u16,
        sockets: Sender<UnixStream>,
    },
}

/// What it may use up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// In bytes.
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
}

/// What this machine has to build a wall with.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The version of Landlock's interface; 0 for none.
    pub landlock: u32,
    pub seccomp: bool,
    /// The path of bubblewrap, or why it cannot be used.
    pub bubblewrap: Result<PathBuf, String>,
    /// Whether a control group can bound processes, and memory.
    pub counts_processes: bool,
    pub counts_memory: bool,
}
