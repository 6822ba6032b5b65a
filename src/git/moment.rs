//! A work tree at one moment (files, index, HEAD) as objects, and the way back to it: what `ralph undo` uses.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command::{GitError, is_object_id};
use super::files_at::{Refused, Try};
use super::snapshots::own_files;
use super::tracked::{Limits, Tracked};
use super::writer::Writer;

/// Where saved states are, in the user's repository.
const REFS: &str = "refs/ralph/undo";

/// A work tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Its files, untracked ones included, ignored ones not.
    pub(crate) tree: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// The index, byte for byte, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    /// Another branch with its commit, which an undo was about to move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<(String, String)>,
    /// Files that are not in the tree: too large, or not readable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) apart: Vec<PathBuf>,
}

impl Writer {
    /// The work tree as it is now, as objects of the repository.
    pub(crate) async fn capture(&self, workspace: &Path) -> Result<Moment, GitError> {
        let (skipped, own) = own_files(workspace, &self.repository.top);
        let mut limits = Limits { bytes_left: u64::MAX, notices: Vec::new() };
        let (place, objects) = (self.scratch("capture"), Some(self.repository.objects()));
        let opened = Tracked::open(self.repository.clone(), place, objects, &skipped, own, &mut limits).await;
        let (tracked, _) = opened?;
        let index = match self.index_bytes() {
            Some(bytes) => Some(self.object(&["hash-object", "-w", "--stdin"], bytes).await?),
            None => None,
        };
        let apart = tracked.now.apart.keys().cloned().collect();
        let (head, branch) = (tracked.head.commit.clone(), tracked.head.branch.clone());
        Ok(Moment { tree: tracked.now.tree.clone(), head, branch, index, other: None, apart })
    }

    /// A clean checkout of a branch.
    pub(crate) async fn clean_moment(&self, commit: &str, branch: Option<&str>) -> Result<Moment, GitError> {
        let index = self.scratch("clean");
        let _ = std::fs::remove_file(&index);
        self.git_on(&index, &self.repository.top, &["read-tree", commit], Vec::new()).await?;
        let bytes = std::fs::read(&index).map_err(|error| GitError::Failed(error.to_string()))?;
        let index = Some(self.object(&["hash-object", "-w", "--stdin"], bytes).await?);
        let (head, branch) = (Some(commit.to_owned()), branch.map(str::to_owned));
        Ok(Moment { tree: self.tree_of(commit).await?, head, branch, index, other: None, apart: Vec::new() })
    }

    /// Keeps a moment under `refs/ralph/undo/`, and gives the name of the ref.
    pub(crate) async fn save(&self, moment: &Moment, name: &str) -> Result<String, GitError> {
        let mut parents: Vec<String> = moment.head.iter().cloned().collect();
        // What is staged must not be collected either.
        let staged = self.scratch("staged");
        if let (Some(index), Some(bytes)) = (&moment.index, self.index_bytes()) {
            std::fs::write(&staged, bytes).map_err(|error| GitError::Failed(error.to_string()))?;
            let entry = format!("100644 blob {index}\tindex\n");
            let tree = self.object(&["mktree"], entry.into_bytes()).await?;
            parents.push(self.commit_tree(&tree, &[], "index", None).await?);
            if let Ok(tree) = self.tree_of_index(&staged).await {
                parents.push(self.commit_tree(&tree, &[], "staged", None).await?);
            }
        }
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let message = serde_json::to_string(moment).map_err(|error| GitError::Failed(error.to_string()))?;
        let commit = self.commit_tree(&moment.tree, &parents, &message, None).await?;
        let name = format!("{REFS}/{name}");
        self.update_ref(&name, Some(&commit), None, "save the state before an undo").await?;
        Ok(name)
    }

    /// A moment that was kept.
    pub(crate) async fn saved(&self, name: &str) -> Result<Moment, GitError> {
        let commit = self.repository.resolve(name, 5).filter(|_| name.starts_with(REFS));
        let commit = commit.ok_or_else(|| GitError::Failed(format!("`{name}` does not exist")))?;
        let text = self.line(&["log", "-1", "--format=%B", &commit], Vec::new()).await?;
        let moment: Moment = serde_json::from_str(&text).map_err(|error| GitError::Failed(error.to_string()))?;
        moment.checked()
    }

    /// Forgets the saved moments whose names begin so.
    pub(crate) async fn forget(&self, beginning: &str) -> Result<(), GitError> {
        for name in self.repository.refs_below(&format!("{REFS}/{beginning}")) {
            if let Some(commit) = self.repository.resolve(&name, 5) {
                self.update_ref(&name, None, Some(&commit), "").await?;
            }
        }
        Ok(())
    }

    /// Makes the work tree as it was at a moment. `now` is how it is.
    pub(crate) async fn go_to(&self, now: &Moment, moment: &Moment, why: &str) -> Result<usize, Refused> {
        let lock = self.lock_index()?;
        let count = self.change_files(&now.tree, &moment.tree, Try::First).await?;
        let index = match &moment.index {
            Some(id) => Some(self.git(&["cat-file", "blob", id], Vec::new()).await?.bytes),
            None => None,
        };
        self.replace_index(&lock, index.as_deref())?;
        if let Some((branch, commit)) = &moment.other {
            let name = format!("refs/heads/{branch}");
            let there = self.repository.resolve(&name, 5);
            self.update_ref(&name, Some(commit), there.as_deref(), why).await?;
        }
        if let Some(branch) = &moment.branch {
            let name = format!("refs/heads/{branch}");
            let there = self.repository.resolve(&name, 5);
            if there != moment.head {
                self.update_ref(&name, moment.head.as_deref(), there.as_deref(), why).await?;
            }
            if now.branch.as_ref() != Some(branch) {
                self.set_branch(branch, why).await?;
            }
        } else if let Some(head) = &moment.head
            && (now.branch.is_some() || now.head.as_ref() != Some(head))
        {
            self.detach(head, why).await?;
        }
        Ok(count)
    }
}

impl Moment {
    /// What a file says may be anything.
    pub(crate) fn checked(self) -> Result<Self, GitError> {
        let ids = [Some(&self.tree), self.head.as_ref(), self.index.as_ref()];
        let usual = |name: &str| !name.starts_with('-') && !name.contains("..");
        let branch = self.branch.as_deref().is_none_or(usual);
        let other = self.other.as_ref().is_none_or(|(name, id)| usual(name) && is_object_id(id));
        if branch && other && ids.into_iter().flatten().all(|id| is_object_id(id)) {
            return Ok(self);
        }
        Err(GitError::Failed("the saved state is damaged".to_owned()))
    }
}
