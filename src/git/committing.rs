//! Commits what an iteration left uncommitted: unsigned, without hooks, and without files that must not be committed.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::command::GitError;
use super::files_at::{Changed, Entry};
use super::writer::Writer;

/// What was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The new commit; `None` when there was nothing to commit.
    pub(crate) commit: Option<String>,
    /// Files that were left out, and why.
    pub(crate) refused: Vec<(PathBuf, String)>,
}

impl Writer {
    /// Commits the difference between HEAD and a tree. `reason_against` says why a file must not be committed.
    pub(crate) async fn commit(
        &self,
        tree: &str,
        message: &str,
        reason_against: impl Fn(&Path, &[u8]) -> Option<String>,
    ) -> Result<Committed, GitError> {
        let head = self.head().await;
        let base = match &head.commit {
            Some(commit) => self.tree_of(commit).await?,
            None => self.empty_tree().await?,
        };
        let mut committed = Committed::default();
        let mut changed: Vec<Changed> = Vec::new();
        for change in self.changed(&base, tree).await? {
            if change.from.as_ref().is_some_and(|(mode, _)| mode == "160000") {
                // A snapshot has no entry for a submodule, whatever it is: ralph commits none.
                continue;
            }
            match self.reason_to_refuse(&change, &reason_against).await? {
                Some(reason) => committed.refused.push((change.path, reason)),
                None => changed.push(change),
            }
        }
        let paths: Vec<&PathBuf> = changed.iter().map(|change| &change.path).collect();
        if let Some((path, filter)) = self.filter_of(&paths, tree).await? {
            let what = format!("`{}` is converted by the filter `{filter}`, and ralph runs no filters", path.display());
            return Err(GitError::Failed(what));
        }
        if changed.is_empty() {
            return Ok(committed);
        }
        // The objects must be in the repository itself: what is on disk is added, and must be what was looked at.
        let plain = Self::open(self.repository.clone())?;
        let (index, top) = (plain.scratch("commit"), self.repository.top.as_path());
        plain.git_on(&index, top, &["read-tree", &base], Vec::new()).await?;
        let listed: Vec<u8> = changed.iter().flat_map(|it| [it.path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        let add = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        plain.git_on(&index, top, &add, listed).await?;
        let added = plain.entries(&index).await?;
        if let Some(other) = changed.iter().find(|it| added.get(&it.path) != it.to.as_ref()) {
            return Err(GitError::Failed(format!("`{}` was changed meanwhile", other.path.display())));
        }
        let entries: Vec<(&PathBuf, Option<&Entry>)> = changed.iter().map(|it| (&it.path, it.to.as_ref())).collect();
        let tree = plain.tree_of_index(&index).await?;
        let parents: Vec<&str> = head.commit.as_deref().into_iter().collect();
        let commit = self.commit_tree(&tree, &parents, message, None).await?;
        let lock = self.lock_index()?;
        let users = self.scratch("users");
        match self.index_bytes() {
            Some(bytes) => std::fs::write(&users, bytes).map_err(|error| GitError::Failed(error.to_string()))?,
            None => drop(std::fs::remove_file(&users)),
        }
        self.put(&users, entries.iter().copied()).await?;
        let _ = self.git_on(&users, &self.repository.top, &["update-index", "-q", "--refresh"], Vec::new()).await;
        let bytes = std::fs::read(&users).map_err(|error| GitError::Failed(error.to_string()))?;
        // The branch first: an index that is ahead of it would look like staged work of the user's.
        let name = head.branch.as_ref().map_or_else(|| "HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        self.update_ref(&name, Some(&commit), head.commit.as_deref(), "commit an iteration").await?;
        self.replace_index(&lock, Some(&bytes))?;
        committed.commit = Some(commit);
        Ok(committed)
    }

    async fn reason_to_refuse(
        &self,
        change: &Changed,
        reason_against: &impl Fn(&Path, &[u8]) -> Option<String>,
    ) -> Result<Option<String>, GitError> {
        if change.path.components().any(|part| part.as_os_str() == ".ralph") {
            return Ok(Some("`.ralph` is not committed".to_owned()));
        }
        let Some((_, id)) = &change.to else { return Ok(None) };
        let content = self.git(&["cat-file", "blob", id], Vec::new()).await?;
        Ok(reason_against(&change.path, &content.bytes))
    }
}
