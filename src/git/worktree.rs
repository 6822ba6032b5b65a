//! Adds and removes work trees of a user's repository. git's own command would run the repository's filters while it writes the files, so
//! the few administrative files are written here (gitrepository-layout), and the files with a git directory of ralph's own.

use std::io;
use std::path::{Path, PathBuf};

use super::command::GitError;
use super::files;
use super::files_at::path_of;
use super::repository::Repository;
use super::writer::Writer;
use crate::journal::disk::step;

/// What a new work tree has checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedOut<'a> {
    Branch(&'a str),
    /// A commit and no branch.
    Commit,
}

impl Writer {
    /// Why files of this commit cannot be written to a work tree as the user's git would.
    pub(crate) async fn reason_against(&self, commit: &str) -> Result<Option<String>, GitError> {
        let args = ["ls-tree", "-r", "-z", "--format=%(objectmode) %(path)", "--end-of-options", commit];
        let printed = self.git(&args, Vec::new()).await?;
        if printed.cut {
            return Ok(Some("it has too many files to check for filters".to_owned()));
        }
        let mut paths = Vec::new();
        let mut has_attributes = false;
        for line in printed.bytes.split(|&byte| byte == 0).filter(|line| line.len() > 7) {
            let path = path_of(&line[7..]);
            if line.starts_with(b"160000") {
                return Ok(Some(format!("`{}` is a submodule, which a new worktree would not have", path.display())));
            }
            has_attributes |= path.ends_with(".gitattributes");
            paths.push(path);
        }
        let info = files::read(&self.repository.common.join("info/attributes"), 1024 * 1024).unwrap_or_default();
        if memchr::memmem::find(&info, b"filter=").is_some() {
            return Ok(Some("`.git/info/attributes` names filters, and ralph runs no filters".to_owned()));
        }
        if !has_attributes {
            return Ok(None);
        }
        let listed: Vec<&PathBuf> = paths.iter().collect();
        let found = self.filter_of(&listed, commit).await?;
        Ok(found.map(|(path, filter)| match filter.as_str() {
            "lfs" => format!("`{}` is stored with Git LFS, and ralph runs no filters", path.display()),
            _ => format!("`{}` is converted by the filter `{filter}`, and ralph runs no filters", path.display()),
        }))
    }

    /// Adds a work tree. There must be nothing at its place; what an interrupted try left is removed by [`remove_worktree`].
    pub(crate) async fn add_worktree(
        &self,
        path: &Path,
        commit: &str,
        what: CheckedOut<'_>,
    ) -> Result<Repository, GitError> {
        let failed = |error: io::Error| GitError::Failed(format!("cannot make `{}`: {error}", path.display()));
        std::fs::create_dir(path).map_err(failed)?;
        step();
        let administration = self.new_administration(path).map_err(failed)?;
        step();
        let head = match what {
            CheckedOut::Branch(branch) => format!("ref: refs/heads/{branch}\n"),
            CheckedOut::Commit => format!("{commit}\n"),
        };
        let written = [
            ("gitdir", format!("{}\n", path.join(".git").display())),
            ("commondir", "../..\n".to_owned()),
            ("HEAD", head),
        ];
        for (name, text) in written {
            std::fs::write(administration.join(name), text).map_err(failed)?;
            step();
        }
        std::fs::write(path.join(".git"), format!("gitdir: {}\n", administration.display())).map_err(failed)?;
        step();
        self.git_on(&administration.join("index"), path, &["read-tree", "--reset", "-u", commit], Vec::new()).await?;
        Repository::at(path).ok_or_else(|| GitError::Failed(format!("`{}` is no worktree", path.display())))
    }

    fn new_administration(&self, path: &Path) -> io::Result<PathBuf> {
        let all = std::path::absolute(self.repository.common.join("worktrees"))?;
        std::fs::create_dir_all(&all)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for number in 0..1000 {
            let name = if number == 0 { name.clone() } else { format!("{name}{number}") };
            match std::fs::create_dir(all.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| all.join(name)),
            }
        }
        Err(io::Error::other("no free name under `.git/worktrees`"))
    }

    /// Removes a work tree with everything in it, as far as it is there.
    pub(crate) fn remove_worktree(&self, path: &Path) -> Result<(), GitError> {
        let failed = |error: io::Error| GitError::Failed(format!("cannot remove `{}`: {error}", path.display()));
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => step(),
        }
        let all = std::fs::read_dir(self.repository.common.join("worktrees")).into_iter().flatten().flatten();
        for entry in all {
            let link = files::text(&entry.path().join("gitdir"));
            if link.is_some_and(|link| Path::new(&link).parent() == Some(path)) {
                std::fs::remove_dir_all(entry.path()).map_err(failed)?;
                step();
            }
        }
        // Git removes the directory with the last one too.
        let _ = std::fs::remove_dir(self.repository.common.join("worktrees"));
        Ok(())
    }

    /// A repository by the same objects and refs, at the work tree that has a branch checked out.
    pub(crate) async fn checkout_of(&self, branch: &str) -> Option<Repository> {
        for checkout in self.repository.checkouts() {
            if checkout.head().await.branch.as_deref() == Some(branch) {
                return Some(checkout);
            }
        }
        None
    }
}

impl Writer {
    /// True for a worktree whose files were still being written when ralph was killed.
    pub(crate) fn is_half_made(&self) -> bool {
        self.repository.directory != self.repository.common && !self.index().exists()
    }

    /// True for a text that git takes as the name of a branch.
    pub(crate) async fn is_branch_name(&self, name: &str) -> bool {
        let full = format!("refs/heads/{name}");
        !name.starts_with('-') && name != "HEAD" && self.git(&["check-ref-format", &full], Vec::new()).await.is_ok()
    }
}
