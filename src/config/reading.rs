//! One file while it is read: what a value's reader needs to say where a mistake is.

use std::path::{Path, PathBuf};

use super::legacy;
use super::origin::{Origin, Setting};
use super::value::SettingValue;
use crate::error::UserError;
use crate::yaml::{self, Entry, Node, Place, Value};

pub(crate) struct Reading<'a> {
    path: &'a Path,
    /// What paths in it are relative to.
    base: &'a Path,
    name: String,
    text: &'a str,
    /// What the user should know, though the file can be used.
    pub warnings: Vec<String>,
    /// Keys of another program, with their lines.
    unused: Vec<(usize, String)>,
    /// Keys that mean nothing.
    unknown: Vec<Unknown>,
    foreign: bool,
}

struct Unknown {
    key: String,
    message: String,
    place: Place,
}

/// Sections that protect the user. A misspelt key there is an error even in a file of another program.
const SAFETY: [&str; 5] = ["verify", "limits", "permission", "allowed_paths", "sandbox"];

impl<'a> Reading<'a> {
    /// Begins to read a file; paths in it are relative to `base`.
    pub(crate) fn new(path: &'a Path, base: &'a Path, text: &'a str) -> Self {
        let name = path.display().to_string();
        Self { path, base, name, text, warnings: Vec::new(), unused: Vec::new(), unknown: Vec::new(), foreign: false }
    }

    /// The file as the user knows it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The value of a key with its place.
    pub(crate) fn setting<T: SettingValue>(&mut self, node: &Node, key: &str) -> Result<Setting<T>, UserError> {
        let origin = self.origin(node);
        Ok(Setting::new(T::read(self, node, key)?, origin))
    }

    /// Where a value is.
    pub(crate) fn origin(&self, node: &Node) -> Origin {
        Origin::File { path: self.path.to_owned(), line: node.place.line }
    }

    /// The entries of a mapping; `form` says what should be there.
    pub(crate) fn entries<'n>(&self, node: &'n Node, key: &str, form: &str) -> Result<&'n [Entry], UserError> {
        match &node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.expected(node, key, form)),
        }
    }

    /// A path that the file names.
    pub(crate) fn beside(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// A key that means nothing, and the one that may have been meant.
    pub(crate) fn unknown(&mut self, key: &str, entry: &Entry, meant: Option<&str>) {
        if legacy::is_unused(key) {
            self.unused.push((entry.place.line, key.to_owned()));
            return;
        }
        let advice = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let message = format!("unknown key `{key}`{advice}");
        self.unknown.push(Unknown { key: key.to_owned(), message, place: entry.place });
    }

    /// The file was written for another program, which has keys that ralph does not use.
    pub(crate) fn is_foreign(&mut self) {
        self.foreign = true;
    }

    /// What the user should know. An unknown key is an error in a file of ralph's own; in one of another program only
    /// where it would switch off what protects the user.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, UserError> {
        let foreign = self.foreign || !self.unused.is_empty();
        for Unknown { key, message, place } in &self.unknown {
            if !foreign || SAFETY.contains(&key.split(['.', '[']).next().unwrap_or_default()) {
                return Err(yaml::pointing(&self.name, self.text, *place, message));
            }
            let excerpt = yaml::excerpt(&self.name, self.text, *place);
            self.warnings.push(format!("{message}\n{excerpt}"));
        }
        if !self.unused.is_empty() {
            self.unused.sort();
            let keys = self.unused.iter().map(|(line, key)| format!("`{key}` (line {line})"));
            let (name, keys) = (&self.name, keys.collect::<Vec<_>>().join(", "));
            self.warnings.push(format!("these keys of ralph-orchestrator in `{name}` do nothing here: {keys}; see `docs/coming-from.md#ralph-orchestrator`"));
        }
        Ok(self.warnings)
    }

    /// The value has another type than it must have.
    pub(crate) fn expected(&self, node: &Node, key: &str, form: &str) -> UserError {
        self.wrong(node, &format!("`{key}` must be {form}, found {}", node.value.kind()))
    }

    /// The value has the right type and is still wrong.
    pub(crate) fn wrong(&self, node: &Node, message: &str) -> UserError {
        yaml::pointing(&self.name, self.text, node.place, message)
    }
}
