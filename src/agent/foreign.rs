//! Agents that are bash files of another loop: which file, which contract, and what its configuration says.
//!
//! Plain data. What a file really defines is seen only when it is sourced, in a shell of its own.

use std::path::{Path, PathBuf};

use super::definition::{self, Definition, SessionForm};
use super::{Agent, Options};
use crate::error::UserError;

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
    pub const fn word(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Script => "script",
        }
    }

    /// The functions that a file must define.
    pub const fn required(self) -> &'static [&'static str] {
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

    /// Where its files are.
    pub const fn directories(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &DRIVER_DIRECTORIES,
            Self::Script => &SCRIPT_DIRECTORIES,
        }
    }

    /// The functions it requires that are not there.
    pub fn missing(self, functions: &[String]) -> Vec<&'static str> {
        let is_missing = |name: &&&str| !functions.iter().any(|known| known == **name);
        self.required().iter().filter(is_missing).copied().collect()
    }

    /// Which contract a file follows, by the functions it defines.
    pub fn of(functions: &[String]) -> Result<Self, String> {
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
pub struct Foreign {
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

impl Foreign {
    /// The agent for the loop. What it is called and can do is learned when the file is loaded.
    pub fn agent(self, name: &str, options: Options) -> Agent {
        let mut definition: Definition = definition::of_command(name);
        name.clone_into(&mut definition.id);
        // Whether its sessions go on, the driver says itself.
        definition.session.resume = (self.contract == Contract::Driver).then(SessionForm::default);
        Agent { definition, options, program: name.into(), leading: Vec::new(), foreign: Some(self) }
    }

    /// The directory of the loop that the file was written for: the one above `drivers` or `agents`.
    pub fn home(&self) -> PathBuf {
        let above = self.path.parent().and_then(Path::parent).filter(|above| !above.as_os_str().is_empty());
        above.map_or_else(|| PathBuf::from("."), Path::to_owned)
    }
}

/// The file of a name, or what is wrong with the name. `None`: there is no such file.
pub fn find(contract: Contract, name: &str, workspace: &Path) -> Result<Option<PathBuf>, UserError> {
    let strange = contract == Contract::Driver && (name.contains('/') || name.contains(".."));
    if strange || name.is_empty() {
        return Err(UserError::usage(format!("`{name}` is no name of a {}", contract.word()))
            .hint("a name has no `/` and no `..`; a file is given by its path: `--agent ./path/to/file.sh`"));
    }
    let candidates = contract.directories().iter().map(|directory| Path::new(directory).join(format!("{name}.sh")));
    Ok(candidates.into_iter().find(|path| workspace.join(path).is_file()))
}

/// Every file in the places of a contract, with its name; the first of a name wins.
pub fn list(contract: Contract, workspace: &Path) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for directory in contract.directories() {
        let Ok(listing) = std::fs::read_dir(workspace.join(directory)) else { continue };
        let mut names: Vec<String> = listing
            .flatten()
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".sh").map(str::to_owned))
            .collect();
        names.sort();
        for name in names {
            if !found.iter().any(|(known, _)| *known == name) {
                let path = Path::new(directory).join(format!("{name}.sh"));
                found.push((name, path));
            }
        }
    }
    found
}

/// A name that no file has: what there is instead.
pub fn no_such(contract: Contract, name: &str, workspace: &Path) -> UserError {
    let word = contract.word();
    let names: Vec<String> = list(contract, workspace).into_iter().map(|(name, _)| name).collect();
    let places = contract.directories().iter().map(|directory| format!("`{directory}/{name}.sh`"));
    let error =
        UserError::usage(format!("there is no {word} `{name}`; looked for {}", places.collect::<Vec<_>>().join(", ")));
    match names.as_slice() {
        [] => error.hint(format!("write one: `ralph agents new --{word} {name}`")),
        names => error.hint(format!("there are: {}", names.join(", "))),
    }
}

/// Functions that a file must define and does not.
pub fn lacking(contract: Contract, path: &Path, missing: &[&str]) -> UserError {
    UserError::agent(format!("{} `{}` lacks {}", contract.word(), path.display(), missing.join(", ")))
        .hint(format!("see what the contract asks for: `ralph agents check {}`", path.display()))
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

    #[test]
    fn files_are_found_in_order_and_names_stay_in_their_directories() {
        let place = tempfile::tempdir().unwrap();
        for file in ["drivers/a.sh", "ralph/drivers/a.sh", "drivers/b.sh", "drivers/notes.txt", ".ralph/agents/c.sh"] {
            let path = place.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |contract, name| find(contract, name, place.path()).unwrap();
        assert_eq!(found(Contract::Driver, "a"), Some("ralph/drivers/a.sh".into()));
        assert_eq!(found(Contract::Driver, "b"), Some("drivers/b.sh".into()));
        assert_eq!(found(Contract::Script, "c"), Some(".ralph/agents/c.sh".into()));
        assert_eq!(found(Contract::Script, "a"), None);
        for name in ["../a", "x/a", "..", ""] {
            assert!(find(Contract::Driver, name, place.path()).is_err(), "{name}");
        }
        let names: Vec<String> = list(Contract::Driver, place.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
        let error = no_such(Contract::Driver, "z", place.path());
        assert!(error.message.contains("`.ralph/drivers/z.sh`") && error.hints[0].contains("a, b"), "{error:?}");
    }
}
