//! What the user wants of the wall: the values of the section `sandbox`.

use std::path::PathBuf;

/// How tight it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Off,
    /// Reads nearly everything, writes the workspace.
    Workspace,
    /// Reads and reaches only what it needs.
    Strict,
}

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

/// What builds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The strongest that works.
    Auto,
    Landlock,
    Bubblewrap,
}

/// What to do about changes to what runs outside later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    Warn,
    Stop,
    Restore,
}

/// What can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    All,
    None,
    /// Only these: `host`, `host:port`, `*.host`, an address, or `localhost`.
    Hosts(Vec<String>),
}

/// Which variables pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    Inherit,
    /// Only what programs need to work.
    Clean,
    /// That and these.
    Names(Vec<String>),
}

/// Everything the user says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub mode: Mode,
    pub backend: Backend,
    pub write: Vec<PathBuf>,
    pub read: Vec<PathBuf>,
    pub hide: Vec<PathBuf>,
    /// As the mode says, where it is not set.
    pub network: Option<Network>,
    pub environment: Option<Environment>,
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
    pub tamper: Tamper,
    /// Whether a run without the wall is refused.
    pub required: bool,
}

impl Options {
    /// Which variables pass.
    pub(crate) fn environment(&self) -> Environment {
        self.environment.clone().unwrap_or(match self.mode {
            Mode::Strict => Environment::Clean,
            Mode::Off | Mode::Workspace => Environment::Inherit,
        })
    }

    /// The hosts that can be reached beside those of the agent; `None` when all can.
    pub(crate) fn hosts(&self) -> Option<&[String]> {
        match (&self.network, self.mode) {
            (Some(Network::Hosts(hosts)), _) => Some(hosts),
            (None, Mode::Strict) => Some(&[]),
            (Some(Network::All | Network::None) | None, _) => None,
        }
    }
}
