//! Where a value came from: it travels with the value, so that every message can say it.

use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The default of the contract of a driver or an agent script.
    Contract(&'static str),
    /// A configuration file.
    File {
        path: PathBuf,
        line: usize,
    },
    /// An environment variable.
    Environment(&'static str),
    Flag(&'static str),
    /// Where the value came from when the run started, in words.
    Saved(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Contract(name) => write!(formatter, "the {name} contract"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(name) => write!(formatter, "environment variable `{name}`"),
            Self::Flag(name) => write!(formatter, "`{name}`"),
            Self::Saved(origin) => formatter.write_str(origin),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value of this origin.
    pub(crate) const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
