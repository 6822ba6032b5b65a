//! The short way to look at a work tree: only files that the index knows were touched.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::command::GitError;
use super::direct::Stored;
use super::repository::Head;
use super::tracked::{Limits, Look, Seen, Tracked, path_of};

/// More touched files than this are looked at by `git status`.
const MOST_KNOWN: usize = 256;

impl Tracked {
    /// Mode and content of the touched paths as they were last seen, when all of them are files that the index knows: git need not
    /// say then what is ignored, new or another repository.
    pub(super) fn only_known_files(
        &self,
        touched: &BTreeSet<PathBuf>,
        limits: &Limits,
    ) -> Option<BTreeMap<PathBuf, Vec<u8>>> {
        let is_plain = |path: &PathBuf| {
            let metadata = std::fs::symlink_metadata(self.repository.top.join(path));
            let is_usual = metadata.map_or_else(
                |error| error.kind() == io::ErrorKind::NotFound,
                |metadata| metadata.is_file() && self.reason_against(path, &metadata, limits).is_none(),
            );
            is_usual && !self.own.contains(path) && !self.now.apart.contains_key(path)
        };
        if touched.is_empty() || touched.len() > MOST_KNOWN || !touched.iter().all(is_plain) {
            return None;
        }
        let before = self.store.contents(touched, self.repository.id_length())?;
        (before.len() == touched.len()).then_some(before)
    }

    /// Looks at files of the index. `before` is how they were last seen.
    pub(super) async fn look_at_known_files(
        &mut self,
        before: BTreeMap<PathBuf, Vec<u8>>,
        head: Head,
        limits: &mut Limits,
    ) -> Result<Look, GitError> {
        let paths: Vec<PathBuf> = before.keys().cloned().collect();
        let (files, tree, changes) = if let Some(Stored { tree, changes }) = self.store_directly(&paths) {
            let files: BTreeSet<PathBuf> = changes.iter().map(|changed| path_of(&changed.name)).collect();
            (files, tree, Some(changes))
        } else {
            let (files, tree) = self.ask_git(paths, &before).await?;
            (files, tree, None)
        };
        let sizes = files.iter().filter_map(|path| std::fs::symlink_metadata(self.repository.top.join(path)).ok());
        limits.bytes_left = sizes.fold(limits.bytes_left, |left, metadata| left.saturating_sub(metadata.len()));
        let seen = Seen { tree, apart: self.now.apart.clone() };
        Ok(Look {
            head_before: std::mem::replace(&mut self.head, head),
            before: std::mem::replace(&mut self.now, seen),
            files,
            nested: Vec::new(),
            changes,
        })
    }

    /// The files among these that are different now, and the tree, as git stores them.
    async fn ask_git(
        &mut self,
        paths: Vec<PathBuf>,
        before: &BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<(BTreeSet<PathBuf>, String), GitError> {
        self.update_index(&paths).await?;
        let mut files: BTreeSet<PathBuf> = paths.into_iter().collect();
        let unreadable = || GitError::Failed("cannot read ralph's own index".to_owned());
        let now = self.store.contents(&files, self.repository.id_length()).ok_or_else(unreadable)?;
        files.retain(|path| before.get(path) != now.get(path));
        let tree = if files.is_empty() { self.now.tree.clone() } else { self.write_tree().await? };
        Ok((files, tree))
    }
}
