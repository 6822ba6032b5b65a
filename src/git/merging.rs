//! Rebases a branch without a work tree: commits are replayed as objects, so that a conflict leaves nothing behind.

use super::command::{GitError, version};
use super::files_at::path_of;
use super::writer::{Author, Writer};

/// What becomes of the commits of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// They stay as they are, one by one.
    Commits,
    /// One commit with this message.
    Squashed(String),
}

/// What came of it. Nothing but objects was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rebased {
    /// The base with the work on top; the base itself when it has the work already.
    Commit(String),
    /// A commit does not apply.
    Conflict { commit: String, files: Vec<String> },
    /// Merge commits cannot be replayed one by one.
    HasMerges,
}

impl Writer {
    /// Puts the work of a branch on top of a commit.
    pub(crate) async fn rebase(&self, tip: &str, onto: &str, shape: &Shape) -> Result<Rebased, GitError> {
        if self.is_ancestor(tip, onto).await? {
            return Ok(Rebased::Commit(onto.to_owned()));
        }
        match shape {
            Shape::Commits if self.is_ancestor(onto, tip).await? => Ok(Rebased::Commit(tip.to_owned())),
            Shape::Commits => self.replay(tip, onto).await,
            Shape::Squashed(message) => self.squash(tip, onto, message).await,
        }
    }

    async fn squash(&self, tip: &str, onto: &str, message: &str) -> Result<Rebased, GitError> {
        let base = self.object(&["merge-base", "--end-of-options", onto, tip], Vec::new()).await?;
        match self.merged_tree(&base, onto, tip).await? {
            Err(files) => Ok(Rebased::Conflict { commit: tip.to_owned(), files }),
            Ok(tree) if tree == self.tree_of(onto).await? => Ok(Rebased::Commit(onto.to_owned())),
            Ok(tree) => self.commit_tree(&tree, &[onto], message, None).await.map(Rebased::Commit),
        }
    }

    async fn replay(&self, tip: &str, onto: &str) -> Result<Rebased, GitError> {
        let range = format!("{onto}..{tip}");
        let printed = self.git(&["rev-list", "--reverse", "--topo-order", "--parents", &range], Vec::new()).await?;
        let lines = String::from_utf8_lossy(&printed.bytes).into_owned();
        let commits: Vec<Vec<&str>> = lines.lines().map(|line| line.split(' ').collect()).collect();
        if commits.iter().any(|commit| commit.len() > 2) {
            return Ok(Rebased::HasMerges);
        }
        let mut on_top = onto.to_owned();
        for commit in &commits {
            let (commit, parent) = match commit[..] {
                [commit, parent] => (commit, parent.to_owned()),
                [commit] => (commit, self.commit_tree(&self.empty_tree().await?, &[], "nothing", None).await?),
                _ => continue,
            };
            let tree = match self.merged_tree(&parent, &on_top, commit).await? {
                Ok(tree) => tree,
                Err(files) => return Ok(Rebased::Conflict { commit: commit.to_owned(), files }),
            };
            let was_empty = self.tree_of(commit).await? == self.tree_of(&parent).await?;
            if tree == self.tree_of(&on_top).await? && !was_empty {
                // Its change is there already.
                continue;
            }
            let (author, message) = self.author_and_message(commit).await?;
            on_top = self.commit_tree(&tree, &[&on_top], &message, Some(&author)).await?;
        }
        Ok(Rebased::Commit(on_top))
    }

    /// The tree of a three-way merge of commits, or the files that conflict.
    async fn merged_tree(&self, base: &str, one: &str, other: &str) -> Result<Result<String, Vec<String>>, GitError> {
        // git finds the base of two commits that have it as their parent. Older versions (before 2.40) cannot be told a base.
        let (one, other) = (self.tree_of(one).await?, self.tree_of(other).await?);
        let one = self.commit_tree(&one, &[base], "one side", None).await?;
        let other = self.commit_tree(&other, &[base], "other side", None).await?;
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", &one, &other];
        let (clean, printed) = match self.ask(&args).await {
            Ok(answer) => answer,
            Err(error) => return Err(too_old().await.unwrap_or(error)),
        };
        let mut parts = printed.bytes.split(|&byte| byte == 0).filter(|part| !part.is_empty());
        let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).trim().to_owned();
        if clean {
            return Ok(Ok(tree));
        }
        Ok(Err(parts.map(|path| path_of(path).to_string_lossy().into_owned()).collect()))
    }

    async fn author_and_message(&self, commit: &str) -> Result<(Author, String), GitError> {
        let form = "--format=%an%x00%ae%x00%aI%x00%B";
        let text = self.git(&["log", "-1", form, "--end-of-options", commit], Vec::new()).await?;
        let text = String::from_utf8_lossy(&text.bytes).into_owned();
        let mut parts = text.splitn(4, '\0').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        let author = Author { name: next(), email: next(), date: next() };
        Ok((author, next()))
    }
}

/// Words for a git that cannot merge without a work tree.
async fn too_old() -> Option<GitError> {
    let here = version().await.ok()?;
    is_too_old(&here).then(|| GitError::Failed(format!("a rebase needs git 2.38 or newer, and this is {here}")))
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("git version ").split('.').map_while(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(first), Some(second)) if (first, second) < (2, 38))
}

#[cfg(test)]
mod tests {
    use super::is_too_old;

    #[test]
    fn a_git_that_cannot_rebase_is_known_by_its_version() {
        for (version, old) in [
            ("git version 2.34.1", true),
            ("git version 2.38.0", false),
            ("git version 2.47.3 (Apple Git-1)", false),
            ("?", false),
        ] {
            assert_eq!(is_too_old(version), old, "{version}");
        }
    }
}
