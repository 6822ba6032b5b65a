//! All agents ralph knows: built in, then the user's, then the project's. A later file wins by name.

use std::path::{Path, PathBuf};

use super::definition::{self, Definition};
use crate::error::{UserError, io_reason};
use crate::nearest::nearest;

/// The built-in files, in the order in which `auto` looks for them.
macro_rules! built_in {
    ($($name:literal)*) => {
        const BUILT_IN: &[(&str, &str)] = &[$((concat!($name, ".yml"), include_str!(concat!("../../agents/", $name, ".yml"))),)*];
    };
}

built_in! {
    "claude" "kiro" "gemini" "codex" "amp"
    "opencode" "copilot" "cursor" "cline" "pi" "qwen" "goose" "droid" "aider"
    "demo"
}

/// A larger file is not an agent file.
const LARGEST: u64 = 256 * 1024;

/// Where a definition came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Part of this program.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => formatter.write_str("built in"),
            Self::File(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// One agent of the catalog.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is.
    pub definition: Definition,
    /// Where that is written.
    pub source: Source,
}

/// All agents, in the order in which `auto` looks for them.
#[derive(Clone, Debug)]
pub struct Catalog {
    entries: Vec<Entry>,
}

impl Catalog {
    /// The built-in agents.
    pub fn built_in() -> Result<Self, UserError> {
        let entries = BUILT_IN
            .iter()
            .map(|(name, text)| Ok(Entry { definition: definition::read(name, text)?, source: Source::BuiltIn }));
        Ok(Self { entries: entries.collect::<Result<_, UserError>>()? })
    }

    /// The built-in agents, and those of the user and of the project at `workspace`.
    pub fn load(workspace: &Path) -> Result<Self, UserError> {
        let mut catalog = Self::built_in()?;
        for directory in user_directory().into_iter().chain([workspace.join(".ralph").join("agents")]) {
            catalog.add(&directory)?;
        }
        Ok(catalog)
    }

    /// Adds the files of a directory, if there is one.
    pub fn add(&mut self, directory: &Path) -> Result<(), UserError> {
        let Ok(listing) = std::fs::read_dir(directory) else { return Ok(()) };
        let is_agent =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
        let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).filter(is_agent).collect();
        paths.sort();
        for path in paths {
            let definition = definition::read(&path.display().to_string(), &text(&path)?)?;
            let entry = Entry { definition, source: Source::File(path) };
            match self.entries.iter_mut().find(|known| known.definition.id == entry.definition.id) {
                Some(known) => *known = entry,
                None => self.entries.push(entry),
            }
        }
        Ok(())
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All names.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.definition.id.as_str()).collect()
    }

    /// An agent by its name.
    pub fn find(&self, name: &str) -> Result<&Entry, UserError> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.definition.id == name) {
            return Ok(entry);
        }
        let error = UserError::usage(format!("unknown agent `{name}`"));
        let error = match nearest(name, self.names().into_iter().chain(["auto", "custom"])) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error.hint(format!("known agents: {}", self.names().join(", "))),
        };
        Err(error.hint("any other command works with `--agent-cmd 'COMMAND'`"))
    }
}

/// Where a user keeps agents for all projects.
fn user_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("ralph").join("agents"))
}

fn text(path: &Path) -> Result<String, UserError> {
    let problem = |what: &str| UserError::usage(format!("cannot read the agent file `{}`: {what}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| problem(&io_reason(&error)))?;
    if metadata.len() > LARGEST {
        return Err(problem(&format!("it has {} bytes, more than an agent file can have", metadata.len())));
    }
    let bytes = std::fs::read(path).map_err(|error| problem(&io_reason(&error)))?;
    String::from_utf8(bytes).map_err(|_| problem("it is not UTF-8"))
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
