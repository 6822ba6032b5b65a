//! Fetches from and pushes to another repository for a fleet: a cache that workers fetch into, and branches that are only moved from the
//! value that was last seen there.

use std::io;
use std::path::Path;

use super::command::{GitError, is_object_id};
use super::repository::Repository;
use super::writer::Writer;

/// Where fetched branches are kept in the repository, so that the next fetch does not download them again.
const KNOWN: &str = "refs/ralph/fetched";

/// Why a push did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PushError {
    /// The branch has another value than the one that was expected.
    #[error("the branch was changed by someone else")]
    Moved,
    #[error("{0}")]
    Git(#[from] GitError),
}

/// An address that git may be given: a path, `user@host:path`, or one of the usual protocols. Never an option, never a secret.
pub(crate) fn is_address(url: &str) -> Result<(), &'static str> {
    if url.is_empty() || url.len() > 1000 || url.starts_with('-') {
        return Err("it is not the address of a repository");
    }
    if url.chars().any(|character| character.is_control() || character.is_whitespace()) {
        return Err("it has blanks or control characters");
    }
    if url.contains("::") {
        return Err("it names a helper program");
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        if !["https", "http", "ssh", "git", "file"].contains(&scheme) {
            return Err("its protocol is not one of https, http, ssh, git, file");
        }
        let user = rest.split('/').next().unwrap_or_default().rsplit_once('@').map(|(user, _)| user);
        let may_name_user = scheme == "ssh";
        return match user {
            Some(user) if user.contains(':') || !may_name_user => {
                Err("it has a user name or a password in it, and secrets do not travel")
            }
            _ => Ok(()),
        };
    }
    let is_remote = url.split_once(':').is_some_and(|(host, path)| {
        host.contains('@') && !host.contains('/') && !host.starts_with('-') && !path.is_empty()
    });
    if url.starts_with('/') || is_remote { Ok(()) } else { Err("it is neither an absolute path nor an address") }
}

/// A repository without files, to fetch into.
pub(crate) fn new_cache(top: &Path) -> io::Result<Repository> {
    let git = top.join(".git");
    for below in ["objects/info", "objects/pack", "refs/heads"] {
        std::fs::create_dir_all(git.join(below))?;
    }
    if !git.join("HEAD").exists() {
        std::fs::write(git.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")?;
        std::fs::write(git.join("HEAD"), "ref: refs/heads/none\n")?;
    }
    Repository::at(top).ok_or_else(|| io::Error::other("it is no repository"))
}

impl Writer {
    /// The newest commits of the branches there.
    pub(crate) async fn remote_tips(&self, url: &str) -> Result<Vec<String>, GitError> {
        let printed = self.remote(&["ls-remote", "--quiet", "--heads", "--", url]).await?;
        let text = String::from_utf8_lossy(&printed.bytes).into_owned();
        let ids = text.lines().filter_map(|line| line.split('\t').next()).filter(|id| is_object_id(id));
        Ok(ids.map(str::to_owned).collect())
    }

    /// The commit of a branch there; `None` when there is no such branch.
    pub(crate) async fn remote_branch(&self, url: &str, branch: &str) -> Result<Option<String>, GitError> {
        let name = format!("refs/heads/{branch}");
        let printed = self.remote(&["ls-remote", "--quiet", "--", url, &name]).await?;
        let text = String::from_utf8_lossy(&printed.bytes).into_owned();
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let id = lines.filter(|(id, found)| *found == name && is_object_id(id)).map(|(id, _)| id.to_owned()).next();
        Ok(id)
    }

    /// True when the repository has this commit with all that it needs.
    pub(crate) async fn has_commit(&self, commit: &str) -> bool {
        self.tree_of(commit).await.is_ok()
    }

    /// Fetches a branch and gives its commit.
    pub(crate) async fn fetch_branch(&self, url: &str, branch: &str) -> Result<String, GitError> {
        self.fetch(url, &[&format!("+refs/heads/{branch}:refs/ralph/one")]).await?;
        self.object(&["rev-parse", "--verify", "refs/ralph/one^{commit}"], Vec::new()).await
    }

    /// Fetches one commit by its id, where the server allows that.
    pub(crate) async fn fetch_commit(&self, url: &str, commit: &str) -> Result<(), GitError> {
        self.fetch(url, &[&format!("+{commit}:refs/ralph/one")]).await
    }

    /// Fetches all branches but those of batches, and remembers them.
    pub(crate) async fn fetch_branches(&self, url: &str) -> Result<(), GitError> {
        self.fetch(url, &["+refs/heads/*:refs/ralph/all/*", "^refs/heads/ralph/*"]).await?;
        let printed = self.git(&["for-each-ref", "--format=%(objectname)", "refs/ralph/all"], Vec::new()).await?;
        let text = String::from_utf8_lossy(&printed.bytes).into_owned();
        for (number, id) in text.lines().filter(|id| is_object_id(id)).take(200).enumerate() {
            let name = format!("{KNOWN}/{number}");
            let old = self.repository.resolve(&name, 1);
            if old.as_deref() != Some(id) {
                // Another fetch into the same copy may be faster.
                let _ = self.update_ref(&name, Some(id), old.as_deref(), "fetch").await;
            }
        }
        Ok(())
    }

    async fn fetch(&self, url: &str, refspecs: &[&str]) -> Result<(), GitError> {
        // git asks only for what the refs of this directory do not have.
        let known = self.repository.refs_below(KNOWN).into_iter().chain(self.repository.refs_below("refs/heads"));
        let known = known.filter_map(|name| self.repository.resolve(&name, 1)).take(500).enumerate();
        let lines: Vec<String> = known.map(|(number, id)| format!("{id} refs/ralph/known/{number}\n")).collect();
        let path = self.scratch("packed-refs");
        std::fs::write(path, lines.concat()).map_err(|error| GitError::Failed(error.to_string()))?;
        let mut args =
            vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", url];
        args.extend(refspecs);
        self.remote(&args).await.map(drop)
    }

    /// Moves a branch there from one value to another; `None`: it does not exist. Nothing else there is changed.
    pub(crate) async fn push_branch(
        &self,
        url: &str,
        branch: &str,
        expected: Option<&str>,
        new: Option<&str>,
    ) -> Result<(), PushError> {
        let name = format!("refs/heads/{branch}");
        let lease = format!("--force-with-lease={name}:{}", expected.unwrap_or_default());
        let refspec = format!("{}:{name}", new.unwrap_or_default());
        let pushed = self.remote(&["push", "--quiet", "--no-verify", &lease, "--", url, &refspec]).await;
        let Err(error) = pushed else { return Ok(()) };
        match self.remote_branch(url, branch).await {
            // It arrived, and only the answer did not.
            Ok(now) if now.as_deref() == new => Ok(()),
            Ok(now) if now.as_deref() != expected => Err(PushError::Moved),
            _ => Err(error.into()),
        }
    }

    /// Removes the branches of batches from a copy.
    pub(crate) async fn remove_batch_branches(&self) {
        for name in self.repository.refs_below("refs/heads/ralph") {
            if let Some(id) = self.repository.resolve(&name, 1) {
                let _ = self.update_ref(&name, None, Some(&id), "").await;
            }
        }
    }

    /// A commit with the files of its first parent.
    pub(crate) async fn same_files(&self, parents: &[&str], message: &str) -> Result<String, GitError> {
        let tree = self.tree_of(parents.first().copied().unwrap_or_default()).await?;
        self.commit_tree(&tree, parents, message, None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_starts_no_program_and_has_no_secret() {
        for url in [
            "https://example.com/a/b.git",
            "ssh://git@example.com:22/a",
            "git@example.com:a/b.git",
            "file:///srv/a.git",
            "/srv/a.git",
        ] {
            assert_eq!(is_address(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "--upload-pack=touch /tmp/x",
            "-oProxyCommand=x@host:a",
            "ext::sh -c x",
            "ext::sh",
            "https://user:secret@example.com/a",
            "https://token@example.com/a",
            "ssh://git:secret@example.com/a",
            "/srv/a b",
            "srv/a.git",
            "fd://3",
            "https://example.com/a\n",
        ] {
            assert!(is_address(url).is_err(), "{url}");
        }
    }
}
