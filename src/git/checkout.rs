//! Moves a checked-out branch forward: files, index and ref, so that whoever works in the checkout sees what `git merge --ff-only` would
//! have done. Local changes in other files stay; nothing is changed when one is in the way.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::command::GitError;
use super::files_at::{Entry, Refused, Try};
use super::index;
use super::writer::Writer;

impl Writer {
    /// Makes files and index of the work tree as in another commit. The branch is not moved.
    pub(crate) async fn advance(&self, from: &str, to: &str, tried: Try) -> Result<usize, Refused> {
        let lock = self.lock_index()?;
        let changed = self.changed(from, to).await?;
        let bytes = self.index_bytes().unwrap_or_default();
        if !bytes.is_empty()
            && index::copy(&bytes, self.repository.id_length(), &[]).is_none_or(|it| !it.left_out.is_empty())
        {
            let what = "the checkout is sparse, or its index is split, which ralph cannot update";
            return Err(GitError::Failed(what.to_owned()).into());
        }
        let copy = self.scratch("users");
        if bytes.is_empty() {
            let _ = std::fs::remove_file(&copy);
        } else {
            std::fs::write(&copy, &bytes).map_err(|error| GitError::Failed(error.to_string()))?;
        }
        let staged: BTreeMap<PathBuf, Entry> =
            if bytes.is_empty() { BTreeMap::new() } else { self.entries(&copy).await? };
        let differs = changed.iter().filter(|changed| {
            let found = staged.get(&changed.path);
            found != changed.from.as_ref() && found != changed.to.as_ref()
        });
        let in_the_way: Vec<PathBuf> = differs.map(|changed| changed.path.clone()).collect();
        if !in_the_way.is_empty() {
            return Err(Refused::InTheWay(in_the_way));
        }
        let count = self.change_files(from, to, tried).await?;
        self.put(&copy, changed.iter().map(|changed| (&changed.path, changed.to.as_ref()))).await?;
        // Only what git knows about the files; one that differs stays as it is.
        let _ = self.git_on(&copy, &self.repository.top, &["update-index", "-q", "--refresh"], Vec::new()).await;
        let bytes = std::fs::read(&copy).map_err(|error| GitError::Failed(error.to_string()))?;
        self.replace_index(&lock, Some(&bytes))?;
        Ok(count)
    }

    /// Files that are not committed, untracked ones included, ignored ones not.
    pub(crate) async fn uncommitted(&self) -> Result<Vec<PathBuf>, GitError> {
        let head = self.head().await;
        let (copy, top) = (self.scratch("status"), self.repository.top.clone());
        let failed = |error: std::io::Error| GitError::Failed(error.to_string());
        match self.index_bytes() {
            Some(bytes) => std::fs::write(&copy, bytes).map_err(failed)?,
            None => drop(std::fs::remove_file(&copy)),
        }
        let store = self.scratch("");
        std::fs::write(store.join("HEAD"), head.commit.as_deref().unwrap_or("ref: refs/heads/none").to_owned() + "\n")
            .map_err(failed)?;
        std::fs::write(store.join("info/exclude"), self.repository.exclude_rules()).map_err(failed)?;
        let args =
            ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"];
        let printed = self.git_on(&copy, &top, &args, Vec::new()).await?;
        let lines = printed.bytes.split(|&byte| byte == 0).filter_map(|line| line.get(3..));
        let mut paths: Vec<PathBuf> = lines.map(super::files_at::path_of).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}
