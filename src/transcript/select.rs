//! Which dialect an iteration is read with. Deterministic: the first of flag, environment, configuration
//! that says something other than `auto`; else the agent's own dialect; else plain.

use super::{DIALECTS, Dialect, dialect};

/// What someone asked for.
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
    /// A built-in adapter, by name.
    Dialect(&'static Dialect),
    /// The agent's own dialect, unless the output plainly speaks another.
    Auto(&'static Dialect),
    /// An external one.
    Command(Vec<String>),
}

impl Selected {
    /// The dialect's name, or the command.
    pub fn name(&self) -> String {
        match self {
            Self::Dialect(dialect) | Self::Auto(dialect) => dialect.name.to_owned(),
            Self::Command(argv) => format!("command `{}`", argv.join(" ")),
        }
    }
}

/// A name that is no dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown transcript `{0}`")]
pub struct UnknownDialect(pub String);

/// Selects by the choices in order of precedence, then by the agent's own dialect.
pub fn select(choices: &[Choice], agent: Option<&str>) -> Result<Selected, UnknownDialect> {
    for choice in choices {
        match choice {
            Choice::Auto => {}
            Choice::Named(name) => return named(name).map(Selected::Dialect),
            Choice::Command(argv) => return Ok(Selected::Command(argv.clone())),
        }
    }
    named(agent.unwrap_or("plain")).map(Selected::Auto)
}

/// A dialect by name, or why there is none.
pub(crate) fn named(name: &str) -> Result<&'static Dialect, UnknownDialect> {
    dialect(name).ok_or_else(|| UnknownDialect(name.to_owned()))
}

/// All names, for messages and help.
pub(crate) fn names() -> Vec<&'static str> {
    std::iter::once("auto").chain(DIALECTS.iter().map(|dialect| dialect.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(choices: &[Choice], agent: Option<&str>) -> String {
        match select(choices, agent) {
            Ok(selected) => selected.name(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_first_that_says_something_decides() {
        let auto = || Choice::Auto;
        let name = Choice::from;
        let command = || Choice::Command(vec!["filter".into(), "-x".into()]);
        for (choices, agent, expected) in [
            // 1. Explicitly set: flag, then environment, then configuration.
            (vec![name("rtf1"), name("plain"), auto()], Some("plain"), "rtf1"),
            (vec![auto(), name("plain"), name("rtf1")], Some("rtf1"), "plain"),
            (vec![auto(), auto(), name("rtf1")], Some("plain"), "rtf1"),
            (vec![command(), name("rtf1")], Some("plain"), "command `filter -x`"),
            // 2. and 3. The agent's own dialect.
            (vec![auto(), auto()], Some("rtf1"), "rtf1"),
            (vec![], Some("plain"), "plain"),
            (vec![name("auto")], Some("rtf1"), "rtf1"),
            // 4. Else plain.
            (vec![auto()], None, "plain"),
            (vec![], None, "plain"),
            // Never a silent fallback.
            (vec![name("nope")], Some("rtf1"), "unknown transcript `nope`"),
            (vec![auto()], Some("nope"), "unknown transcript `nope`"),
        ] {
            assert_eq!(selected(&choices, agent), expected, "{choices:?} {agent:?}");
        }
    }
}
