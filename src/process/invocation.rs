//! What to run: the description of a process, before there is one.
//!
//! Plain data that an agent's definition is turned into. It must never do anything by itself.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Place, PrivateFile};

/// A command, how it is connected, and how it is stopped.
#[derive(Debug)]
pub struct Invocation {
    /// A name that is looked up on `PATH`, or a path; a relative path starts at `cwd`.
    pub program: OsString,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The directory it runs in; always set, never inherited.
    pub cwd: PathBuf,
    /// What differs from the inherited environment.
    pub env: Environment,
    /// What it reads.
    pub stdin: Stdin,
    /// What its output is connected to.
    pub link: Link,
    /// How it is asked to stop; a kill always follows the last step.
    pub stop: Vec<StopStep>,
    /// What becomes of processes that are still there when the command itself has ended.
    pub leave_running: bool,
    /// Files that must exist as long as the process runs, such as a long prompt; removed with it.
    pub files: Vec<PrivateFile>,
    /// Whether it is behind the wall, where there is one.
    pub place: Place,
}

impl Invocation {
    /// A command without arguments, on pipes, with nothing to read, stopped by TERM and five seconds of grace.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Environment::default(),
            stdin: Stdin::Null,
            link: Link::Pipe,
            stop: vec![StopStep { signal: UnixSignal::Term, grace: Duration::from_secs(5) }],
            leave_running: false,
            files: Vec::new(),
            place: Place::default(),
        }
    }
}

/// Changes to the inherited environment: first `remove`, then `set`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables to add or replace.
    pub set: Vec<(OsString, OsString)>,
    /// Names to take out; a trailing `*` takes out every name that begins so, as in `CLAUDE_CODE_*`.
    pub remove: Vec<String>,
}

impl Environment {
    /// True when `name` must not be handed on.
    pub(crate) fn removes(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        self.remove.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix.as_bytes()),
            None => name == pattern.as_bytes(),
        })
    }

    /// The value that the process will see for `name`.
    pub(crate) fn value(&self, name: &str) -> Option<OsString> {
        match self.set.iter().rev().find(|(set, _)| set == name) {
            Some((_, value)) => Some(value.clone()),
            None if self.removes(OsStr::new(name)) => None,
            None => std::env::var_os(name),
        }
    }
}

/// What the process reads.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Nothing: end of file at once.
    Null,
    /// These bytes, then end of file. A process that does not read them is no error.
    Bytes(Arc<[u8]>),
    /// Whatever someone writes to the other end of this.
    From(Arc<OwnedFd>),
    /// What a person types, by [`Process::press`](super::Process::press); only on a terminal.
    Keys,
}

/// What the output of the process is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Two pipes: standard output and standard error stay apart.
    Pipe,
    /// ralph's own output: nothing of it is seen here.
    Inherited,
    /// A terminal of this size: both arrive as [`Stream::Stdout`](super::Stream::Stdout).
    Pty(Size),
}

impl Link {
    /// The size of the terminal, where there is one.
    pub(crate) const fn size(self) -> Option<Size> {
        match self {
            Self::Pipe | Self::Inherited => None,
            Self::Pty(size) => Some(size),
        }
    }
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// One step of asking a process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopStep {
    /// What is sent to its group.
    pub signal: UnixSignal,
    /// How long it may take before the next step.
    pub grace: Duration,
}

/// The Unix signals that a stop ladder can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnixSignal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP.
    Hup,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
}

impl From<UnixSignal> for rustix::process::Signal {
    fn from(signal: UnixSignal) -> Self {
        match signal {
            UnixSignal::Int => Self::INT,
            UnixSignal::Term => Self::TERM,
            UnixSignal::Hup => Self::HUP,
            UnixSignal::Quit => Self::QUIT,
            UnixSignal::Kill => Self::KILL,
        }
    }
}
