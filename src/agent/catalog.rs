//! All agents ralph knows: built in, then the user's, then the project's. A later file wins by name.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::definition::{self, Definition};
use crate::error::{UserError, io_reason};
use crate::nearest::nearest;
use crate::user_file;
use crate::yaml;

/// The built-in agents, in the order in which `auto` looks for them. A file is read when its agent is first used: a run needs one of
/// them, and reading all takes longer than the rest of a start.
macro_rules! built_in {
    ($($name:literal)*) => {
        static BUILT_IN: [(&str, LazyLock<Definition>); [$($name),*].len()] = [$((
            $name,
            LazyLock::new(|| definition::built_in(
                concat!($name, ".yml"),
                include_str!(concat!("../../agents/", $name, ".yml")),
            )),
        ),)*];
    };
}

built_in! {
    "claude" "codex" "copilot" "cursor" "opencode" "gemini" "amp" "kiro"
    "agy" "cline" "pi" "qwen" "goose" "droid" "kimi" "kilo" "auggie" "crush" "aider"
    "demo"
}

/// A larger file is not an agent file.
const LARGEST: u64 = 256 * 1024;

/// Where a definition came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Part of this program.
    BuiltIn,
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

/// A definition that was read, or will be when it is used.
#[derive(Clone, Debug)]
pub enum Read {
    BuiltIn(&'static LazyLock<Definition>),
    File(Arc<Definition>),
}

impl Deref for Read {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        match self {
            Self::BuiltIn(definition) => definition,
            Self::File(definition) => definition,
        }
    }
}

/// One agent of the catalog.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name for `--agent`.
    pub id: String,
    pub definition: Read,
    /// Where that is written.
    pub source: Source,
}

/// An agent file that cannot be used.
#[derive(Clone, Debug)]
struct Broken {
    /// The name it would be chosen by, as far as that can be seen.
    id: String,
    path: PathBuf,
    error: UserError,
}

/// All agents, in the order in which `auto` looks for them.
#[derive(Clone, Debug)]
pub struct Catalog {
    entries: Vec<Entry>,
    broken: Vec<Broken>,
    doubles: Vec<String>,
    /// Files of other users.
    ignored: Vec<String>,
}

impl Catalog {
    /// The built-in agents.
    pub fn built_in() -> Self {
        let entries = BUILT_IN.iter().map(|(id, definition)| Entry {
            id: (*id).to_owned(),
            definition: Read::BuiltIn(definition),
            source: Source::BuiltIn,
        });
        Self { entries: entries.collect(), broken: Vec::new(), doubles: Vec::new(), ignored: Vec::new() }
    }

    /// The built-in agents; then those of the user; then those beside the configuration, of each parent directory and
    /// of the workspace, so that the nearest wins. `dialects` are the words that `dialect` may be.
    pub(crate) fn load(workspace: &Path, beside: Option<&Path>, dialects: &[&str]) -> Self {
        let mut catalog = Self::built_in();
        let mut places: Vec<PathBuf> = user_file::own_ancestors(workspace).collect();
        places.extend(beside.map(Path::to_owned).filter(|place| !places.contains(place)));
        let projects = places.into_iter().rev().map(|place| place.join(".ralph").join("agents"));
        for directory in user_directory().into_iter().chain(projects) {
            catalog.add(&directory, dialects);
        }
        catalog
    }

    /// Adds the files of a directory, if there is one. A file that cannot be used is no problem for those who do not ask
    /// for its agent.
    pub(crate) fn add(&mut self, directory: &Path, dialects: &[&str]) {
        let Ok(listing) = std::fs::read_dir(directory) else { return };
        let is_agent =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
        let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).filter(is_agent).collect();
        paths.sort();
        let mut here: Vec<(String, PathBuf)> = Vec::new();
        for path in paths {
            if let Err(reason) = user_file::usable(&path) {
                self.ignored.push(reason);
                continue;
            }
            let name = path.display().to_string();
            let text = text(&path);
            let definition = text.clone().and_then(|text| {
                let definition = definition::read(&name, &text)?;
                check_dialect(&definition, &name, dialects)?;
                Ok(definition)
            });
            let id = match (&definition, &text) {
                (Ok(definition), _) => definition.id.clone(),
                (Err(_), Ok(text)) => yaml::text_at(text, "id").unwrap_or_else(|| stem(&path)),
                (Err(_), Err(_)) => stem(&path),
            };
            if let Some((_, other)) = here.iter().find(|(known, _)| *known == id) {
                let other = other.display();
                self.doubles.push(format!("`{other}` and `{name}` both define agent `{id}`; the second one is used"));
            }
            here.push((id.clone(), path.clone()));
            self.broken.retain(|broken| broken.id != id);
            match definition {
                Ok(definition) => {
                    let definition = Read::File(Arc::new(definition));
                    let entry = Entry { id, definition, source: Source::File(path) };
                    match self.entries.iter_mut().find(|known| known.id == entry.id) {
                        Some(known) => *known = entry,
                        None => self.entries.push(entry),
                    }
                }
                Err(error) => {
                    // What the file meant to replace is not what the user wants either.
                    self.entries.retain(|known| known.id != id);
                    self.broken.push(Broken { id, path, error });
                }
            }
        }
    }

    /// Puts these agents first, in this order.
    pub(crate) fn prefer(&mut self, names: &[&str]) {
        let place = |entry: &Entry| names.iter().position(|name| *name == entry.id);
        self.entries.sort_by_key(|entry| place(entry).unwrap_or(names.len()));
    }

    /// Files that were left out, and names that are defined twice.
    pub fn warnings(&self) -> Vec<String> {
        let broken = self.broken.iter().map(|Broken { id, path, error }| {
            let reason = error.message.lines().next().unwrap_or_default();
            let reason = reason.trim_start_matches(&format!("`{}`: ", path.display()));
            format!("agent `{id}` is skipped: `{}`: {reason}", path.display())
        });
        broken.chain(self.doubles.iter().chain(&self.ignored).cloned()).collect()
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.id.as_str()).collect()
    }

    /// An agent by its name.
    pub(crate) fn find(&self, name: &str) -> Result<&Entry, UserError> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.id == name) {
            return Ok(entry);
        }
        if let Some(broken) = self.broken.iter().find(|broken| broken.id == name) {
            return Err(broken.error.clone());
        }
        match name {
            "auto" => {
                return Err(UserError::usage("`auto` is not an agent: it picks the first one that is installed")
                    .hint("`ralph agents` shows which one that is"));
            }
            "custom" => return Err(super::custom::no_command()),
            "acp" | "kiro-acp" => {
                return Err(UserError::usage(format!("ralph does not use the Agent Client Protocol (`{name}`)")).hint(
                    "name the agent itself, which ralph runs by its command line: `agent: codex`, `agent: kiro`",
                ));
            }
            _ => {}
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

/// True for an agent file of the user, which no repository can change.
pub(crate) fn is_users(path: &Path) -> bool {
    user_directory().is_some_and(|directory| path.starts_with(directory))
}

/// What a file is about when it does not say so itself.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn check_dialect(definition: &Definition, name: &str, dialects: &[&str]) -> Result<(), UserError> {
    let dialect = definition.dialect.as_str();
    if dialects.contains(&dialect) {
        return Ok(());
    }
    let error = UserError::usage(format!("`{name}`: unknown dialect `{dialect}`"));
    Err(match nearest(dialect, dialects.iter().copied()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("known: {}", dialects.join(", "))),
    })
}

fn text(path: &Path) -> Result<String, UserError> {
    let problem = |what: &str| UserError::usage(format!("cannot read the agent file `{}`: {what}", path.display()));
    let bytes = user_file::read(path, LARGEST).map_err(|error| problem(&io_reason(&error)))?;
    String::from_utf8(bytes).map_err(|_| problem("it is not UTF-8"))
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
