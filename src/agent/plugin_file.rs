//! A bash file of another loop as an agent: which file, which contract, which variables. Plain data.
//!
//! What the file defines is known only after it was sourced, and only `plugin/` does that.

use std::path::{Path, PathBuf};

use super::definition::{self, Definition, SessionForm};
use super::{Agent, Options};

/// The directories of drivers, in the order in which they are searched.
const DRIVER_DIRECTORIES: [&str; 3] = [".ralph/drivers", "ralph/drivers", "drivers"];
/// The directories of agent scripts, in the order in which they are searched.
const SCRIPT_DIRECTORIES: [&str; 2] = [".ralph/agents", "agents"];

/// What a bash file promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contract {
    /// `driver_*` hooks that build a command line.
    Driver,
    /// `agent_*` functions that run the agent themselves.
    Script,
}

impl Contract {
    /// The word for it, as in `driver:NAME`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Script => "script",
        }
    }

    /// The functions that a file must define.
    pub(crate) const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &[
                "driver_name",
                "driver_display_name",
                "driver_cli_binary",
                "driver_valid_tools",
                "driver_build_command",
            ],
            Self::Script => &["agent_invoke", "agent_extract_response", "agent_format_display"],
        }
    }

    pub(crate) const fn directories(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &DRIVER_DIRECTORIES,
            Self::Script => &SCRIPT_DIRECTORIES,
        }
    }

    /// The functions it requires that are not there.
    pub(crate) fn missing(self, functions: &[String]) -> Vec<&'static str> {
        let is_missing = |name: &&&str| !functions.iter().any(|known| known == **name);
        self.required().iter().filter(is_missing).copied().collect()
    }

    /// Which contract a file follows, by the functions it defines.
    pub(crate) fn of(functions: &[String]) -> Result<Self, String> {
        let both = [Self::Driver, Self::Script];
        if let Some(whole) = both.into_iter().find(|contract| contract.missing(functions).is_empty()) {
            return Ok(whole);
        }
        // One that has most of a contract is taken for a file of it: then the message is about what it lacks.
        let begun = both.into_iter().find(|contract| contract.missing(functions).len() < contract.required().len());
        match begun {
            Some(contract) => Ok(contract),
            None => Err(format!(
                "it defines neither a driver ({}) nor an agent script ({})",
                Self::Driver.required().join(", "),
                Self::Script.required().join(", ")
            )),
        }
    }
}

/// A bash file as an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFile {
    /// What it promises.
    pub contract: Contract,
    /// The file.
    pub path: PathBuf,
    /// Variables that it finds set: what its own configuration says, and what the loop promises.
    pub globals: Vec<(String, String)>,
    /// Variables that its commands see too.
    pub exports: Vec<(String, String)>,
    /// Whether the agent's output is wanted as it comes.
    pub live: Live,
    /// The program that answers for `jq`: ralph.
    pub helper: PathBuf,
}

/// Whether the agent's output is wanted as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Live {
    /// Where the driver can.
    #[default]
    Wanted,
    /// The plain command.
    Off,
}

impl PluginFile {
    /// The agent for the loop. What it is called and can do is learned when the file is loaded.
    pub(crate) fn agent(self, name: &str, options: Options) -> Agent {
        let mut definition: Definition = definition::of_command(name);
        name.clone_into(&mut definition.id);
        // Whether its sessions go on, the driver says itself.
        definition.session.resume = (self.contract == Contract::Driver).then(SessionForm::default);
        Agent { definition, options, program: name.into(), leading: Vec::new(), plugin: Some(self) }
    }

    /// The directory of the loop that the file was written for: the one above `drivers` or `agents`.
    pub(crate) fn home(&self) -> PathBuf {
        home_of(&self.path)
    }
}

/// The same from the path of the file alone.
pub(crate) fn home_of(path: &Path) -> PathBuf {
    let above = path.parent().and_then(Path::parent).filter(|above| !above.as_os_str().is_empty());
    above.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_functions_say_which_contract_it_is() {
        let driver = functions(Contract::Driver.required());
        let script = functions(Contract::Script.required());
        assert_eq!(Contract::of(&driver), Ok(Contract::Driver));
        assert_eq!(Contract::of(&script), Ok(Contract::Script));
        let begun = functions(&["driver_name", "agent_invoke", "agent_extract_response", "agent_format_display"]);
        assert_eq!(Contract::of(&begun), Ok(Contract::Script), "a whole contract beats a begun one");
        assert_eq!(Contract::of(&functions(&["driver_name", "helper"])), Ok(Contract::Driver));
        assert_eq!(Contract::Driver.missing(&functions(&["driver_name"])).len(), 4);
        let neither = Contract::of(&functions(&["main"])).unwrap_err();
        assert!(neither.contains("driver_build_command") && neither.contains("agent_invoke"), "{neither}");
    }
}
