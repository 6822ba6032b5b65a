//! `ralph.yml`: found here or in a parent directory, read into a layer, with a message for each mistake.
//!
//! It knows no key: those are in the tables.

use std::path::{Path, PathBuf};

use super::adapter::{self, Adapter};
use super::command::PromptMode;
use super::legacy;
use super::origin::{Origin, Setting};
use super::reading::Reading;
use super::settings::Layer;
use super::value::OneLine;
use crate::error::{UserError, io_reason};
use crate::nearest::nearest;
use crate::redact;
use crate::user_file;
use crate::yaml::{self, Entry, Value};

/// The names the file may have.
const NAMES: [&str; 2] = ["ralph.yml", "ralph.yaml"];

/// A larger file is not a configuration.
const LARGEST: u64 = 1024 * 1024;

/// What a file says, and what to warn about.
#[derive(Debug, Default)]
pub(crate) struct FileLayer {
    pub path: Option<PathBuf>,
    pub layer: Layer,
    /// `adapters.NAME`: settings of one agent.
    pub adapters: Vec<(String, Adapter)>,
    /// It is written for ralph-orchestrator: what it leaves out has that program's default.
    pub of_orchestrator: bool,
    /// Unknown keys and the like.
    pub warnings: Vec<String>,
}

impl FileLayer {
    /// For a task of a worker: what the repository says about the wall around its own code, and about the machine, does not count.
    pub(crate) fn under_policy_of(&mut self, own: Layer) {
        self.layer = Layer {
            sandbox_mode: own.sandbox_mode,
            sandbox_backend: own.sandbox_backend,
            sandbox_write: own.sandbox_write,
            sandbox_read: own.sandbox_read,
            sandbox_hide: own.sandbox_hide,
            sandbox_network: own.sandbox_network,
            sandbox_env: own.sandbox_env,
            sandbox_memory: own.sandbox_memory,
            sandbox_processes: own.sandbox_processes,
            sandbox_open_files: own.sandbox_open_files,
            sandbox_tamper: own.sandbox_tamper,
            sandbox_required: own.sandbox_required,
            journal_directory: None,
            worktree_dir: None,
            ..std::mem::take(&mut self.layer)
        };
    }

    /// The settings of this agent.
    pub(crate) fn adapter(&self, name: &str) -> Adapter {
        self.adapters.iter().find(|(known, _)| known == name).map(|(_, adapter)| adapter.clone()).unwrap_or_default()
    }
}

/// The nearest `ralph.yml` at or above a directory. The search ends at a directory of another user.
pub(crate) fn find(directory: &Path) -> Option<PathBuf> {
    search(directory).0
}

/// The same, and the files of other users that were passed over.
fn search(directory: &Path) -> (Option<PathBuf>, Vec<String>) {
    let mut ignored = Vec::new();
    let places = user_file::own_ancestors(directory).flat_map(|parent| NAMES.map(|name| parent.join(name)));
    for path in places {
        match user_file::usable(&path) {
            Ok(true) => return (Some(path), ignored),
            Ok(false) => {}
            Err(reason) => ignored.push(format!("{reason}; to use it, give `--config {}`", path.display())),
        }
    }
    (None, ignored)
}

/// What the given file says, or the nearest one; nothing when there is none.
pub(crate) fn nearest_file(given: Option<PathBuf>, directory: &Path) -> Result<FileLayer, UserError> {
    if let Some(path) = given {
        return read(&path);
    }
    let (path, ignored) = search(directory);
    let mut file = path.map_or_else(|| Ok(FileLayer::default()), |path| read(&path))?;
    file.warnings.extend(ignored);
    Ok(file)
}

/// The user's own file, which no repository can change; empty when there is none.
pub(crate) fn own_file() -> Result<FileLayer, UserError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let own = home.map(|home| home.join("ralph/ralph.yml")).filter(|path| path.is_file());
    own.map_or_else(|| Ok(FileLayer::default()), |path| read(&path))
}

pub(crate) fn read(path: &Path) -> Result<FileLayer, UserError> {
    let name = path.display();
    let unreadable = |error: &std::io::Error| {
        UserError::usage(format!("cannot read `{name}`: {}", io_reason(error)))
            .hint("give `--config FILE`, or remove it")
    };
    let bytes = user_file::read(path, LARGEST).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        UserError::usage(format!("`{name}` is not UTF-8: byte {at} is wrong")).hint("save the file as UTF-8")
    })?;
    read_text(path, &text)
}

/// Reads the text of a file.
pub(crate) fn read_text(path: &Path, text: &str) -> Result<FileLayer, UserError> {
    read_at(path, path.parent().unwrap_or(Path::new("")), text)
}

/// Reads settings of `path` in which paths are relative to another directory.
pub(crate) fn read_at(path: &Path, base: &Path, text: &str) -> Result<FileLayer, UserError> {
    let mut reading = Reading::new(path, base, text);
    let mut file = FileLayer { path: Some(path.to_owned()), ..FileLayer::default() };
    let tree = yaml::parse(reading.name(), text)?;
    match &tree.value {
        Value::Null => reading.warnings.push(format!("`{}` is empty", reading.name())),
        Value::Map(entries) => {
            if entries.iter().any(|entry| legacy::is_flat(&entry.key)) {
                reading.is_foreign();
            }
            // A key wins over another name of it, wherever it is in the file.
            let (last, first): (Vec<&Entry>, Vec<&Entry>) =
                entries.iter().partition(|entry| legacy::is_flat(&entry.key) || legacy::has_alias(&entry.key));
            first.into_iter().chain(last).try_for_each(|entry| section(&mut reading, &mut file, "", entry))?;
            if let Some(line) = legacy::told_by(entries) {
                file.of_orchestrator = true;
                let origin = Origin::File { path: path.to_owned(), line };
                // A command that speaks Claude is not one of its backends, and takes either form.
                if file.layer.agent.as_ref().is_none_or(|agent| agent.value != "claude-command") {
                    file.layer.prompt_mode.get_or_insert_with(|| Setting::new(Some(PromptMode::Arg), origin));
                }
            }
        }
        other => {
            let message = format!("the file must be a mapping of sections, found {}", other.kind());
            return Err(reading.wrong(&tree, &message));
        }
    }
    file.warnings = reading.finish()?;
    let handed_on = file.adapters.iter().filter_map(|(_, adapter)| adapter.env.as_ref()).flat_map(|env| &env.value.0);
    redact::learn(handed_on.cloned());
    let layer = &file.layer;
    for (name, setting) in [
        ("notify.webhook", &layer.notify_webhook),
        ("notify.slack", &layer.notify_slack),
        ("notify.discord", &layer.notify_discord),
        ("notify.telegram.token", &layer.telegram_token),
    ] {
        if let Some(OneLine(value)) = setting.as_ref().and_then(|setting| setting.value.as_ref()) {
            redact::learn([(name.to_owned(), value.clone())]);
        }
    }
    Ok(file)
}

/// Reads a key, or a section of keys. `prefix` is the section it is in, with its dot.
fn section(reading: &mut Reading<'_>, file: &mut FileLayer, prefix: &str, entry: &Entry) -> Result<(), UserError> {
    let path = format!("{prefix}{}", entry.key);
    if path == adapter::SECTION {
        file.adapters = adapter::read(reading, &entry.node)?;
        return Ok(());
    }
    if Layer::KEYS.iter().any(|key| key.path == path) {
        return file.layer.read(&path, &path, reading, &entry.node);
    }
    if let Some(key) = Layer::KEYS.iter().find(|key| legacy::renamed(&path) == Some(key.path)) {
        return file.layer.read(key.path, &path, reading, &entry.node);
    }
    let inner = format!("{path}.");
    if Layer::KEYS.iter().any(|key| key.path.starts_with(&inner)) {
        return match &entry.node.value {
            Value::Null => Ok(()),
            // One word for the whole section is its mode.
            Value::Text(_) | Value::Flag(false) if Layer::KEYS.iter().any(|key| key.path == format!("{inner}mode")) => {
                file.layer.read(&format!("{inner}mode"), &path, reading, &entry.node)
            }
            _ => reading
                .entries(&entry.node, &path, "a mapping")?
                .iter()
                .try_for_each(|entry| section(reading, file, &inner, entry)),
        };
    }
    let meant = nearest(&entry.key, siblings(prefix)).map(|name| format!("{prefix}{name}"));
    reading.unknown(&path, entry, meant.as_deref());
    Ok(())
}

/// The names that are allowed in a section.
fn siblings(prefix: &str) -> impl Iterator<Item = &'static str> {
    let inside = Layer::KEYS.iter().filter_map(move |key| key.path.strip_prefix(prefix));
    let own = prefix.is_empty().then_some(adapter::SECTION);
    let aliases = legacy::ALIASES.iter().filter_map(move |(alias, _)| alias.strip_prefix(prefix));
    inside.map(|rest| rest.split('.').next().unwrap_or(rest)).chain(own).chain(aliases)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
