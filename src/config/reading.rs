//! One file while it is read: what a value's reader needs to say where a mistake stands.

use std::path::{Path, PathBuf};

use super::legacy;
use super::origin::{Origin, Setting};
use super::value::SettingValue;
use crate::error::UserError;
use crate::yaml::{self, Entry, Node, Value};

/// A file under way.
pub struct Reading<'a> {
    path: &'a Path,
    name: String,
    text: &'a str,
    /// What the user should know, though the file can be used.
    pub warnings: Vec<String>,
    /// Keys of another program, with their lines.
    unused: Vec<(usize, String)>,
}

impl<'a> Reading<'a> {
    /// Begins to read a file.
    pub fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, name: path.display().to_string(), text, warnings: Vec::new(), unused: Vec::new() }
    }

    /// The file as the user knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of a key with its place.
    pub fn setting<T: SettingValue>(&mut self, node: &Node, key: &str) -> Result<Setting<T>, UserError> {
        let origin = Origin::File { path: self.path.to_owned(), line: node.place.line };
        Ok(Setting::new(T::read(self, node, key)?, origin))
    }

    /// The entries of a mapping; `form` says what should be there.
    pub fn entries<'n>(&self, node: &'n Node, key: &str, form: &str) -> Result<&'n [Entry], UserError> {
        match &node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.expected(node, key, form)),
        }
    }

    /// A path that the file names: relative to the directory of the file.
    pub fn beside(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// A key that means nothing, and the one that may have been meant.
    pub fn unknown(&mut self, key: &str, entry: &Entry, meant: Option<&str>) {
        if legacy::is_unused(key) {
            self.unused.push((entry.place.line, key.to_owned()));
            return;
        }
        let advice = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let excerpt = yaml::excerpt(&self.name, self.text, entry.place);
        self.warnings.push(format!("unknown key `{key}`{advice}\n{excerpt}"));
    }

    /// All that the user should know.
    pub fn into_warnings(mut self) -> Vec<String> {
        if !self.unused.is_empty() {
            self.unused.sort();
            let keys = self.unused.iter().map(|(line, key)| format!("`{key}` (line {line})"));
            let (name, keys) = (&self.name, keys.collect::<Vec<_>>().join(", "));
            self.warnings.push(format!("these keys of ralph-orchestrator in `{name}` do nothing here: {keys}"));
        }
        self.warnings
    }

    /// The value has another type than it must have.
    pub fn expected(&self, node: &Node, key: &str, form: &str) -> UserError {
        self.wrong(node, &format!("`{key}` must be {form}, found {}", node.value.kind()))
    }

    /// The value has the right type and is still wrong.
    pub fn wrong(&self, node: &Node, message: &str) -> UserError {
        yaml::pointing(&self.name, self.text, node.place, message)
    }
}
