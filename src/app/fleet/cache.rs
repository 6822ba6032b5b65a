//! A worker's copy of a repository: fetched into, never worked in. Each task gets a worktree of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::batch::fleet::submitted::Submitted;
use crate::git::{self, GitError, PushError, Writer};
use crate::journal::State;

/// How often a branch that others move is tried.
const TRIES: u32 = 5;

pub(crate) struct Cache {
    pub top: PathBuf,
    url: String,
}

/// Where a task begins on this worker.
pub(crate) struct Beginning {
    /// The commit that the work continues from.
    pub commit: String,
    /// What the branch is there now; `None`: it does not exist.
    pub remote: Option<String>,
}

/// Where the worktrees of a copy are.
pub(crate) fn worktrees(state: &State, top: &Path) -> PathBuf {
    state.path().join("worktrees").join(state.store(top).path().file_name().unwrap_or_default())
}

/// Removes what a worker that was killed has left: worktrees, branches and records of tasks. Others have the tasks.
pub(crate) async fn clear(directory: &Path, state: &State) {
    for copy in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Some(Ok(writer)) = git::Repository::at(&copy.path()).map(Writer::open) else { continue };
        for worktree in std::fs::read_dir(worktrees(state, &copy.path())).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir_all(state.store(&worktree.path()).path());
            let _ = writer.remove_worktree(&worktree.path());
        }
        writer.remove_batch_branches().await;
    }
}

impl Cache {
    pub(crate) fn open(directory: &Path, url: &str) -> Result<Self, GitError> {
        let hash = Sha256::digest(url.as_bytes()).iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let name = url.rsplit(['/', ':']).next().unwrap_or_default();
        let usual = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-' || *letter == '_';
        let name: String = name.trim_end_matches(".git").chars().filter(usual).take(40).collect();
        let top = directory.join(format!("{name}-{hash}"));
        git::new_cache(&top).map_err(|error| GitError::Failed(format!("cannot make `{}`: {error}", top.display())))?;
        Ok(Self { top, url: url.to_owned() })
    }

    pub(crate) fn writer(&self) -> Result<Writer, GitError> {
        let gone = || GitError::Failed(format!("the copy in `{}` is gone", self.top.display()));
        Writer::open(git::Repository::at(&self.top).ok_or_else(gone)?)
    }

    /// The newest commit of a branch in this copy.
    pub(crate) fn branch(&self, branch: &str) -> Option<String> {
        git::Repository::at(&self.top)?.branch(branch)
    }

    /// Fetches what a task needs. With `take_over` the branch there is moved first, so that a worker that had the task before and
    /// comes back cannot push any more.
    pub(crate) async fn begin(&self, task: &Submitted, take_over: Option<u32>) -> Result<Beginning, GitError> {
        let (writer, branch) = (self.writer()?, task.branch());
        for _ in 0..TRIES {
            let remote = writer.remote_branch(&self.url, &branch).await?;
            if let Some(commit) = &remote
                && !writer.has_commit(commit).await
                && writer.fetch_branch(&self.url, &branch).await? != *commit
            {
                // It was moved in this moment.
                continue;
            }
            let start = match (&remote, &task.repair) {
                (Some(remote), Some(repair)) if *remote == repair.carrier => repair.tip.clone(),
                (Some(remote), _) => remote.clone(),
                (None, Some(repair)) => repair.tip.clone(),
                (None, None) => task.base.clone(),
            };
            self.need(&writer, &start).await?;
            if let Some(repair) = &task.repair
                && self.need(&writer, &repair.target_commit).await.is_ok()
            {
                // The agent is asked to merge it, by its name.
                let name = format!("refs/heads/{}", repair.target);
                let old = writer.repository.branch(&repair.target);
                if old.as_ref() != Some(&repair.target_commit) {
                    let new = Some(repair.target_commit.as_str());
                    let _ = writer.update_ref(&name, new, old.as_deref(), "fetch the target of a batch").await;
                }
            }
            let Some(number) = take_over else { return Ok(Beginning { commit: start, remote }) };
            let message = format!("Continue on another worker\n\nRalph-Lease: {number}\n");
            let commit = writer.same_files(&[&start], &message).await?;
            match writer.push_branch(&self.url, &branch, remote.as_deref(), Some(&commit)).await {
                Ok(()) => return Ok(Beginning { remote: Some(commit.clone()), commit }),
                Err(PushError::Moved) => {}
                Err(PushError::Git(error)) => return Err(error),
            }
        }
        Err(GitError::Failed(format!("others keep moving the branch `{branch}`")))
    }

    /// A commit that must be here.
    async fn need(&self, writer: &Writer, commit: &str) -> Result<(), GitError> {
        if writer.has_commit(commit).await {
            return Ok(());
        }
        writer.fetch_branches(&self.url).await?;
        if !writer.has_commit(commit).await {
            writer.fetch_commit(&self.url, commit).await?;
        }
        if writer.has_commit(commit).await {
            return Ok(());
        }
        Err(GitError::Failed(format!("the repository has no commit {commit}")))
    }

    /// Pushes the work of a task, only if the branch there is what this worker left.
    pub(crate) async fn push(&self, branch: &str, expected: Option<&str>, commit: &str) -> Result<(), PushError> {
        self.writer()?.push_branch(&self.url, branch, expected, Some(commit)).await
    }
}
