//! Files that others run or obey later: hooks, configuration, ralph's own settings. They are compared after each iteration,
//! because Landlock cannot take a part out of a directory that may be changed.
//!
//! Restoring follows no link and writes nothing but what was read at the start.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::user_file;

const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 1024 * 1024;
const MOST_JSON: u64 = 64 * 1024 * 1024;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathState {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// Too large to be kept, or not a plain file: known by its size, its number and its time.
    Other(u64, u64, i64),
    Directory,
    Link(PathBuf),
    /// What is under one key of a JSON file, wherever the key is, by its place.
    Values {
        key: String,
        values: BTreeMap<String, Value>,
    },
}

/// The files that are watched, as they were.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    roots: Vec<PathBuf>,
    /// JSON files that an agent writes all the time, and the key in each that can name commands.
    keys: Vec<(PathBuf, String)>,
    before: BTreeMap<PathBuf, PathState>,
}

/// Something that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub path: PathBuf,
    /// `added`, `changed` or `removed`.
    pub how: &'static str,
}

impl Watch {
    /// Remembers what is there now.
    pub(crate) fn new(roots: Vec<PathBuf>, keys: Vec<(PathBuf, String)>) -> Self {
        let mut watch = Self { roots, keys, before: BTreeMap::new() };
        watch.accept();
        watch
    }

    fn look(&self) -> BTreeMap<PathBuf, PathState> {
        let mut found = BTreeMap::new();
        for root in &self.roots {
            add(root, &mut found, root.file_name().is_some_and(|name| name == ".git"));
        }
        for (path, key) in &self.keys {
            // A file without the key is like one that is not there: the agent makes it when it starts.
            if let Some(values) = values(path, key).filter(|values| !values.is_empty()) {
                found.insert(path.clone(), PathState::Values { key: key.clone(), values });
            }
        }
        found
    }

    /// What has changed since.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let now = self.look();
        let change = |path: &PathBuf, how| Change { path: path.clone(), how };
        let gone = self.before.iter().filter_map(|(path, before)| match now.get(path) {
            None => Some(change(path, "removed")),
            Some(now) if now != before => Some(change(path, "changed")),
            Some(_) => None,
        });
        let new = now.keys().filter(|path| !self.before.contains_key(*path)).map(|path| change(path, "added"));
        let mut changes: Vec<Change> = gone.chain(new).collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }

    /// From now on, this is how it should be.
    pub(crate) fn accept(&mut self) {
        self.before = self.look();
    }

    /// Makes everything as it was; what could not be restored is returned.
    pub(crate) fn restore(&self, changes: &[Change]) -> Vec<PathBuf> {
        let mut failed = Vec::new();
        // Parents come before what is in them.
        for change in changes {
            let key = self.keys.iter().find(|(path, _)| *path == change.path).map(|(_, key)| key);
            let restored = match (self.before.get(&change.path), key) {
                (None, Some(key)) => put_values(&change.path, key, &BTreeMap::new()),
                (None, None) => remove(&change.path),
                (Some(before), _) => put(&change.path, before),
            };
            if restored.is_err() {
                failed.push(change.path.clone());
            }
        }
        failed
    }
}

/// `shallow`: what is in a directory does not count.
fn add(path: &Path, found: &mut BTreeMap<PathBuf, PathState>, shallow: bool) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if found.len() >= MOST_FILES {
        return;
    }
    let other = || PathState::Other(metadata.len(), metadata.ino(), metadata.ctime_nsec());
    if metadata.is_symlink() {
        found.insert(path.to_owned(), PathState::Link(std::fs::read_link(path).unwrap_or_default()));
    } else if metadata.is_dir() {
        found.insert(path.to_owned(), PathState::Directory);
        let Ok(entries) = std::fs::read_dir(path) else { return };
        entries.flatten().filter(|_| !shallow).for_each(|entry| add(&entry.path(), found, false));
    } else if metadata.is_file() && metadata.len() <= MOST_BYTES {
        let file = user_file::read(path, MOST_BYTES);
        let mode = metadata.mode() & 0o7777;
        found.insert(path.to_owned(), file.map_or_else(|_| other(), |bytes| PathState::File { bytes, mode }));
    } else {
        found.insert(path.to_owned(), other());
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

fn put(path: &Path, before: &PathState) -> std::io::Result<()> {
    // A parent that became a link was changed itself, and is restored before this.
    let parent = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
    if parent.symlink_metadata()?.is_symlink() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    match before {
        PathState::Directory if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) => Ok(()),
        PathState::Directory => {
            remove(path)?;
            std::fs::create_dir(path)
        }
        PathState::Link(target) => {
            remove(path)?;
            std::os::unix::fs::symlink(target, path)
        }
        PathState::File { bytes, mode } => {
            remove(path)?;
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(*mode).open(path)?;
            file.write_all(bytes)?;
            file.set_permissions(std::fs::Permissions::from_mode(*mode))
        }
        PathState::Values { key, values } => put_values(path, key, values),
        PathState::Other(..) => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

/// The values of a key in a JSON file, by their places.
fn values(path: &Path, key: &str) -> Option<BTreeMap<String, Value>> {
    let json: Value = serde_json::from_slice(&user_file::read(path, MOST_JSON).ok()?).ok()?;
    let mut found = BTreeMap::new();
    let mut waiting = vec![(String::new(), &json)];
    while let Some((place, value)) = waiting.pop() {
        for (name, below) in value.as_object().into_iter().flatten() {
            let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            if name == key {
                found.insert(place, below.clone());
            } else {
                waiting.push((place, below));
            }
        }
    }
    Some(found)
}

/// Puts the values of a key back, and removes those that were not there. The rest of the file stays.
fn put_values(path: &Path, key: &str, before: &BTreeMap<String, Value>) -> std::io::Result<()> {
    let mut json: Value = serde_json::from_slice(&user_file::read(path, MOST_JSON)?)?;
    let now = values(path, key).unwrap_or_default();
    for place in now.keys().chain(before.keys()) {
        let (parent, _) = place.rsplit_once('/').unwrap_or_default();
        let parent = json.pointer_mut(parent).and_then(Value::as_object_mut).ok_or(std::io::ErrorKind::NotFound)?;
        match before.get(place) {
            Some(value) => parent.insert(key.to_owned(), value.clone()),
            None => parent.remove(key),
        };
    }
    let directory = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
    user_file::replace(directory, path, &serde_json::to_string_pretty(&json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_settings_are_as_they_were_after_restoring() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("hooks")).unwrap();
        std::fs::write(root.join("hooks/pre-commit"), "#!/bin/sh\n").unwrap();
        std::fs::write(root.join("config"), "[core]\n").unwrap();
        let watch = Watch::new(vec![root.join("hooks"), root.join("config"), root.join("missing")], Vec::new());
        assert_eq!(watch.changes(), []);
        std::fs::remove_file(root.join("hooks/pre-commit")).unwrap();
        std::fs::write(root.join("hooks/post-commit"), "evil").unwrap();
        std::fs::write(root.join("missing"), "evil").unwrap();
        std::fs::remove_file(root.join("config")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("config")).unwrap();
        let changes = watch.changes();
        let told: Vec<(&str, &str)> =
            changes.iter().map(|change| (change.path.file_name().unwrap().to_str().unwrap(), change.how)).collect();
        let expected =
            [("config", "changed"), ("post-commit", "added"), ("pre-commit", "removed"), ("missing", "added")];
        assert_eq!(told, expected);
        assert!(watch.restore(&changes).is_empty());
        assert_eq!(watch.changes(), []);
        assert_eq!(std::fs::read_to_string(root.join("config")).unwrap(), "[core]\n");
    }

    #[test]
    fn a_directory_that_became_a_link_is_restored_and_nothing_behind_the_link_is_touched() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for directory in ["hooks", "elsewhere"] {
            std::fs::create_dir(root.join(directory)).unwrap();
            std::fs::write(root.join(directory).join("file"), directory).unwrap();
        }
        let watch = Watch::new(vec![root.join("hooks")], Vec::new());
        std::fs::remove_dir_all(root.join("hooks")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("hooks")).unwrap();
        assert!(watch.restore(&watch.changes()).is_empty());
        assert_eq!(watch.changes(), []);
        assert_eq!(std::fs::read_to_string(root.join("elsewhere/file")).unwrap(), "elsewhere");
    }

    #[test]
    fn mode_bits_count() {
        let place = tempfile::tempdir().unwrap();
        let hook = place.path().join("hook.sample");
        std::fs::write(&hook, "x").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o644)).unwrap();
        let watch = Watch::new(vec![hook.clone()], Vec::new());
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(watch.changes(), [Change { path: hook, how: "changed" }]);
    }

    #[test]
    fn of_a_file_that_the_agent_writes_only_one_key_counts() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("state.json");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write(r#"{"starts":1,"mcpServers":{"a":{"command":"ls"}},"projects":{"/p~q":{"seen":1}}}"#);
        let watch = Watch::new(Vec::new(), vec![(file.clone(), "mcpServers".to_owned())]);
        write(r#"{"starts":2,"mcpServers":{"a":{"command":"ls"}},"projects":{"/p~q":{"seen":2}}}"#);
        assert_eq!(watch.changes(), []);
        write(
            r#"{"starts":3,"mcpServers":{"a":{"command":"evil"}},"projects":{"/p~q":{"seen":3,"mcpServers":{"b":{}}}}}"#,
        );
        let changes = watch.changes();
        assert_eq!(changes, [Change { path: file.clone(), how: "changed" }]);
        assert!(watch.restore(&changes).is_empty());
        assert_eq!(watch.changes(), []);
        let now: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let expected: Value =
            serde_json::from_str(r#"{"starts":3,"mcpServers":{"a":{"command":"ls"}},"projects":{"/p~q":{"seen":3}}}"#)
                .unwrap();
        assert_eq!(now, expected);
    }
}
