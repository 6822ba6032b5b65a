//! Files of a directory that is in no repository, known by size and times. Nothing is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::files;

/// Files beyond this are not looked at.
pub(super) const MOST_FILES: usize = 20_000;

/// The files at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    pub(super) files: BTreeMap<PathBuf, u64>,
    /// There were more files than are looked at.
    pub(super) cut: bool,
    /// At least one directory could be read.
    pub(super) seen: bool,
}

impl Plain {
    /// Looks at all files that are not `skipped`.
    pub(super) fn look(workspace: &Path, skipped: impl Fn(&Path) -> bool) -> Self {
        let mut plain = Self::default();
        let mut directories = vec![workspace.to_owned()];
        let mut entries_left = 2 * MOST_FILES;
        while let Some(directory) = directories.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            plain.seen = true;
            for entry in entries.flatten() {
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                let Ok(relative) = path.strip_prefix(workspace) else { continue };
                if skipped(relative) {
                    continue;
                }
                if entries_left == 0 || plain.files.len() == MOST_FILES {
                    plain.cut = true;
                    return plain;
                }
                entries_left -= 1;
                if kind.is_dir() {
                    directories.push(path);
                } else if let Ok(metadata) = entry.metadata() {
                    plain.files.insert(relative.to_owned(), files::stat_print(&metadata));
                }
            }
        }
        plain
    }

    /// Files that are different now.
    pub(super) fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        let differs = |(path, print): &(&PathBuf, &u64)| before.files.get(*path) != Some(print);
        let now = self.files.iter().filter(differs).map(|(path, _)| path);
        now.chain(before.files.keys().filter(|path| !self.files.contains_key(*path)))
    }
}
