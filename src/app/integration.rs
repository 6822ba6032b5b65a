//! Puts the work of a branch on top of another one: rebase, run the checks on the result, fast-forward. The base branch moves in one step,
//! and only to a commit that passed. `ralph merge` uses it, and so can whatever merges many branches.

use std::path::{Path, PathBuf};

use crate::error::UserError;
use crate::git::{CheckedOut, GitError, Rebased, Refused, Shape, Try, Writer};
use crate::journal::CheckResult;
use crate::run::verify::{self, Check};

/// How often it begins again when the base branch moves meanwhile.
const TRIES: u32 = 5;

/// What is merged, and how.
pub(crate) struct Integration<'a> {
    /// The repository.
    pub writer: &'a Writer,
    /// The branch that is moved. It may be checked out somewhere; that checkout follows.
    pub base: &'a str,
    /// The newest commit of the work.
    pub tip: &'a str,
    pub shape: Shape,
    pub checks: &'a [Check],
    /// A clean checkout of the tip, in which checks can run when nothing had to be rebased.
    pub workspace: Option<&'a Path>,
    /// Where a worktree for the checks can be made. What an interrupted try left there is removed.
    pub scratch: PathBuf,
    /// The working directory below the top of the worktree.
    pub below: PathBuf,
    /// Whether an earlier try may have been interrupted.
    pub tried: Try,
}

/// What came of it. Only `Merged` has changed anything.
#[derive(Debug)]
pub(crate) enum Integrated {
    /// The base branch has the work: this is its newest commit.
    Merged {
        commit: String,
        checks: Vec<CheckResult>,
    },
    Conflict {
        commit: String,
        files: Vec<String>,
    },
    /// Merge commits are not replayed.
    HasMerges,
    /// A check failed on the result.
    Red {
        checks: Vec<CheckResult>,
    },
    /// The checkout of the base branch has changes in the same files, or cannot be updated.
    InTheWay {
        checkout: PathBuf,
        refused: Refused,
    },
}

impl Integration<'_> {
    /// Merges. `before` is called with the commit that the base branch is about to be moved to; `prepare` readies a worktree for
    /// the checks.
    pub(crate) async fn run(
        &self,
        before: impl Fn(&str) -> Result<(), UserError>,
        prepare: impl AsyncFn(&Path) -> Result<(), UserError>,
    ) -> Result<Integrated, UserError> {
        let cannot = |error: GitError| UserError::failed(format!("cannot merge into `{}`: {error}", self.base));
        let name = format!("refs/heads/{}", self.base);
        for _ in 0..TRIES {
            let onto = self.writer.repository.branch(self.base);
            let onto = onto.ok_or_else(|| UserError::usage(format!("the branch `{}` does not exist", self.base)))?;
            let result = match self.writer.rebase(self.tip, &onto, &self.shape).await.map_err(cannot)? {
                Rebased::Commit(commit) => commit,
                Rebased::Conflict { commit, files } => return Ok(Integrated::Conflict { commit, files }),
                Rebased::HasMerges => return Ok(Integrated::HasMerges),
            };
            if result == onto {
                return Ok(Integrated::Merged { commit: result, checks: Vec::new() });
            }
            let checks = self.check(&result, &prepare).await?;
            if checks.iter().any(|check| !check.passed) {
                return Ok(Integrated::Red { checks });
            }
            before(&result)?;
            let checkout = self.writer.checkout_of(self.base).await;
            let follower = checkout.map(Writer::open).transpose().map_err(cannot)?;
            if let Some(follower) = &follower
                && let Err(refused) = follower.advance(&onto, &result, self.tried).await
            {
                return Ok(Integrated::InTheWay { checkout: follower.repository.top.clone(), refused });
            }
            match self.writer.update_ref(&name, Some(&result), Some(&onto), "merge a run").await {
                Ok(()) => return Ok(Integrated::Merged { commit: result, checks }),
                Err(error) => {
                    if let Some(follower) = &follower {
                        // Someone else moved the branch: put its checkout back and start over.
                        let _ = follower.advance(&result, &onto, Try::Again).await;
                    }
                    if self.writer.repository.branch(self.base).as_deref() == Some(onto.as_str()) {
                        return Err(cannot(error));
                    }
                }
            }
        }
        Err(UserError::failed(format!("the branch `{}` moves all the time; nothing was merged", self.base)))
    }

    async fn check(
        &self,
        result: &str,
        prepare: &impl AsyncFn(&Path) -> Result<(), UserError>,
    ) -> Result<Vec<CheckResult>, UserError> {
        if self.checks.is_empty() {
            return Ok(Vec::new());
        }
        let cannot = |error: GitError| UserError::failed(format!("cannot check out the result: {error}"));
        let same = self.writer.tree_of(result).await.map_err(cannot)?
            == self.writer.tree_of(self.tip).await.map_err(cannot)?;
        if let Some(workspace) = self.workspace.filter(|_| same) {
            return Ok(verify::alone(self.checks, workspace).await);
        }
        if let Some(reason) = self.writer.reason_against(result).await.map_err(cannot)? {
            return Err(UserError::failed(format!("cannot run the checks on the result: {reason}")));
        }
        self.writer.remove_worktree(&self.scratch).map_err(cannot)?;
        self.writer.add_worktree(&self.scratch, result, CheckedOut::Commit).await.map_err(cannot)?;
        let workspace = self.scratch.join(&self.below);
        let prepared = prepare(&self.scratch).await;
        let checks = match prepared {
            Ok(()) => Ok(verify::alone(self.checks, &workspace).await),
            Err(error) => Err(error),
        };
        self.writer.remove_worktree(&self.scratch).map_err(cannot)?;
        checks
    }
}
