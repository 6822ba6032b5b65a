//! Which dialect an iteration is read with. Deterministic: the first of flag, environment, configuration
//! that says something other than `auto`; else the agent's own dialect; else plain.

use super::{DIALECTS, Dialect, PLANNED, dialect};

/// What somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// Whatever fits the agent.
    #[default]
    Auto,
    /// A dialect by name.
    Named(String),
    /// A command that reads raw lines and prints RTF1.
    Command(Vec<String>),
}

impl From<&str> for Choice {
    fn from(name: &str) -> Self {
        if name == "auto" { Self::Auto } else { Self::Named(name.to_owned()) }
    }
}

/// What will read the output.
#[derive(Clone)]
pub enum Selected {
    /// A built-in adapter.
    Dialect(&'static Dialect),
    /// An external one.
    Command(Vec<String>),
}

impl std::fmt::Debug for Selected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dialect(dialect) => formatter.write_str(dialect.name),
            Self::Command(argv) => write!(formatter, "{argv:?}"),
        }
    }
}

/// A name that is no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownDialect {
    /// Nobody knows it.
    #[error("unknown transcript `{0}`")]
    Unknown(String),
    /// Known, but this version cannot read it.
    #[error("transcript `{0}` is known but not built yet")]
    Planned(String),
}

/// Selects by the choices in order of precedence, then by the agent's own dialect.
pub fn select(choices: &[Choice], agent: Option<&str>) -> Result<Selected, UnknownDialect> {
    for choice in choices {
        match choice {
            Choice::Auto => {}
            Choice::Named(name) => return named(name).map(Selected::Dialect),
            Choice::Command(argv) => return Ok(Selected::Command(argv.clone())),
        }
    }
    named(agent.unwrap_or("plain")).map(Selected::Dialect)
}

/// A dialect by name, or why there is none.
pub fn named(name: &str) -> Result<&'static Dialect, UnknownDialect> {
    dialect(name).ok_or_else(|| {
        if PLANNED.contains(&name) {
            UnknownDialect::Planned(name.to_owned())
        } else {
            UnknownDialect::Unknown(name.to_owned())
        }
    })
}

/// All names, for messages and help.
pub fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(DIALECTS.iter().map(|dialect| dialect.name)).collect()
}
