//! Writes to the user's repository: objects, refs, work trees. git reads nothing of its configuration for that. Objects and files are
//! made with a git directory of ralph's own; only refs are changed through the repository's directory, without its hooks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{self, GitError, Place, Printed, is_object_id};
use super::repository::{Head, Repository};
use super::store::Store;
use crate::journal::disk::step;
use crate::process;

/// How long writing many files may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Says in the repository that a ralph, by its process id, changes refs.
const MARKER: &str = "ralph-refs-";
const MOST_OF_MARKER: u64 = 64 * 1024;

/// What is written here is the user's, and must survive a power cut.
const SETTINGS: &[&str] = &[
    "core.fsync=default",
    "core.sharedRepository=umask",
    "core.untrackedCache=keep",
    "index.skipHash=false",
    "core.logAllRefUpdates=true",
];

/// A repository that is written to.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) repository: Repository,
    store: Store,
    identity: (String, String),
    /// More objects that can be read.
    also: Option<PathBuf>,
}

/// Who made a commit, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Author {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) date: String,
}

impl Writer {
    pub(crate) fn open(repository: Repository) -> Result<Self, GitError> {
        repository.check()?;
        if let Some(reason) = repository.unsupported() {
            return Err(GitError::Failed(format!("cannot write to `{}`: {reason}", repository.top.display())));
        }
        let store = Store::temporary(&repository).map_err(|error| GitError::Failed(error.to_string()))?;
        let identity = repository.identity();
        Ok(Self { repository, store, identity, also: None })
    }

    /// The same, with more objects to read.
    #[must_use]
    pub(crate) fn reading(mut self, objects: PathBuf) -> Self {
        self.also = Some(objects);
        self
    }

    /// A place for files of ralph's own, which goes with the writer.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.store.path().join(name)
    }

    fn variables(&self, index: &Path) -> Vec<(&'static str, OsString)> {
        let (name, email) = &self.identity;
        let mut variables = vec![
            ("GIT_OBJECT_DIRECTORY", self.repository.objects().into()),
            ("GIT_INDEX_FILE", index.into()),
            ("GIT_AUTHOR_NAME", name.into()),
            ("GIT_AUTHOR_EMAIL", email.into()),
            ("GIT_COMMITTER_NAME", name.into()),
            ("GIT_COMMITTER_EMAIL", email.into()),
        ];
        variables.extend(self.also.iter().map(|also| ("GIT_ALTERNATE_OBJECT_DIRECTORIES", also.into())));
        variables
    }

    /// Runs git on the repository's objects, with an index of ralph's own.
    pub(super) async fn git(&self, args: &[&str], stdin: Vec<u8>) -> Result<Printed, GitError> {
        self.git_on(&self.scratch("index"), &self.repository.top, args, stdin).await
    }

    /// The same with any index and work tree.
    pub(super) async fn git_on(
        &self,
        index: &Path,
        work_tree: &Path,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Printed, GitError> {
        let variables = self.variables(index);
        let git_directory = self.store.path();
        let place = Place { git_directory, work_tree, variables: &variables, settings: SETTINGS, patience: PATIENCE };
        let done = command::run_at(place, args, stdin).await;
        if args.contains(&"-u") {
            // It wrote files of the work tree.
            step();
        }
        done
    }

    /// A question that exit code 1 answers with no.
    pub(super) async fn ask(&self, args: &[&str]) -> Result<(bool, Printed), GitError> {
        let variables = self.variables(&self.scratch("index"));
        let (git_directory, work_tree) = (self.store.path(), self.repository.top.as_path());
        let place = Place { git_directory, work_tree, variables: &variables, settings: SETTINGS, patience: PATIENCE };
        command::ask_at(place, args).await
    }

    /// The answer as one line.
    pub(super) async fn line(&self, args: &[&str], stdin: Vec<u8>) -> Result<String, GitError> {
        let printed = self.git(args, stdin).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim().to_owned())
    }

    /// Changes refs of the repository. Nothing but `update-ref` and `symbolic-ref` runs on its own directory.
    async fn refs(&self, args: &[&str]) -> Result<(), GitError> {
        let mut variables = self.variables(&self.scratch("index"));
        variables.retain(|(name, _)| !["GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"].contains(name));
        let (git_directory, work_tree) = (self.repository.directory.as_path(), self.repository.top.as_path());
        let place = Place { git_directory, work_tree, variables: &variables, settings: SETTINGS, patience: PATIENCE };
        let marker = self.repository.common.join(format!("{MARKER}{}", std::process::id()));
        let names: Vec<&str> = args.iter().filter(|arg| arg.starts_with("refs/")).copied().collect();
        // A new file: one that was planted there could be a link to anything.
        let _ = std::fs::remove_file(&marker);
        if let Ok(mut file) = std::fs::File::create_new(&marker) {
            let _ = std::io::Write::write_all(&mut file, names.join("\n").as_bytes());
        }
        step();
        let mut done = command::run_at(place, args, Vec::new()).await;
        if done.is_err() {
            self.remove_stale_locks().await;
            // Also where none was found: another ralph may just have removed it.
            done = command::run_at(place, args, Vec::new()).await;
        }
        step();
        let _ = std::fs::remove_file(&marker);
        step();
        done.map(drop)
    }

    /// A git that died with a killed ralph has left its locks. They are removed only where a marker of a dead ralph names them.
    async fn remove_stale_locks(&self) {
        let dead = |name: &str| {
            let pid = name.strip_prefix(MARKER).and_then(|pid| pid.parse().ok());
            pid.is_some_and(|pid| !process::is_alive(pid))
        };
        let entries = std::fs::read_dir(&self.repository.common).into_iter().flatten().flatten();
        let markers: Vec<PathBuf> =
            entries.filter(|entry| entry.file_name().to_str().is_some_and(dead)).map(|entry| entry.path()).collect();
        if markers.is_empty() {
            return;
        }
        // Whoever else holds one has the time to finish.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (common, own) = (&self.repository.common, &self.repository.directory);
        let mut locks = vec![common.join("packed-refs.lock"), common.join("HEAD.lock"), own.join("HEAD.lock")];
        for marker in &markers {
            let named = super::files::read(marker, MOST_OF_MARKER).unwrap_or_default();
            let refs = String::from_utf8_lossy(&named).into_owned();
            locks.extend(
                refs.lines().filter(|name| name.starts_with("refs/")).map(|name| common.join(format!("{name}.lock"))),
            );
        }
        for lock in locks {
            // Anybody can write a marker, so nothing outside of the repository is removed.
            let directory = lock.parent().and_then(|parent| parent.canonicalize().ok());
            if directory.is_some_and(|it| it.starts_with(common) || it.starts_with(own)) {
                let _ = std::fs::remove_file(lock);
            }
        }
        for marker in &markers {
            let _ = std::fs::remove_file(marker);
        }
    }

    /// Sets a ref from an old value to a new one; `None` means that it does not exist. Fails when it has another value.
    pub(crate) async fn update_ref(
        &self,
        name: &str,
        new: Option<&str>,
        old: Option<&str>,
        why: &str,
    ) -> Result<(), GitError> {
        let zeros = "0".repeat(2 * self.repository.id_length());
        let why = format!("ralph: {why}");
        match (new, old) {
            (Some(new), old) => self.refs(&["update-ref", "-m", &why, name, new, old.unwrap_or(&zeros)]).await,
            (None, Some(old)) => self.refs(&["update-ref", "-d", name, old]).await,
            (None, None) => Ok(()),
        }
    }

    /// Says which branch this work tree has checked out. Files and index are not touched.
    pub(crate) async fn set_branch(&self, branch: &str, why: &str) -> Result<(), GitError> {
        let why = format!("ralph: {why}");
        self.refs(&["symbolic-ref", "-m", &why, "HEAD", &format!("refs/heads/{branch}")]).await
    }

    /// Says that this work tree has a commit checked out and no branch.
    pub(crate) async fn detach(&self, commit: &str, why: &str) -> Result<(), GitError> {
        let why = format!("ralph: {why}");
        self.refs(&["update-ref", "--no-deref", "-m", &why, "HEAD", commit]).await
    }

    pub(crate) async fn head(&self) -> Head {
        self.repository.head().await
    }

    /// The tree of a commit.
    pub(crate) async fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.object(&["rev-parse", "--verify", "--end-of-options", &format!("{commit}^{{tree}}")], Vec::new()).await
    }

    /// The tree without any file.
    pub(crate) async fn empty_tree(&self) -> Result<String, GitError> {
        self.object(&["hash-object", "-t", "tree", "-w", "--stdin"], Vec::new()).await
    }

    pub(super) async fn object(&self, args: &[&str], stdin: Vec<u8>) -> Result<String, GitError> {
        let id = self.line(args, stdin).await?;
        if is_object_id(&id) { Ok(id) } else { Err(GitError::Failed(format!("`git {}` gave no object", args[0]))) }
    }

    /// A new commit, without hooks and unsigned.
    pub(super) async fn commit_tree(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
        author: Option<&Author>,
    ) -> Result<String, GitError> {
        let mut args = vec!["commit-tree", "--no-gpg-sign", "-F", "-"];
        for parent in parents {
            args.extend(["-p", parent]);
        }
        args.push(tree);
        let mut variables = self.variables(&self.scratch("index"));
        if let Some(Author { name, email, date }) = author {
            variables.retain(|(name, _)| !name.starts_with("GIT_AUTHOR"));
            variables.push(("GIT_AUTHOR_NAME", name.into()));
            variables.push(("GIT_AUTHOR_EMAIL", email.into()));
            variables.push(("GIT_AUTHOR_DATE", date.into()));
        }
        let (git_directory, work_tree) = (self.store.path(), self.repository.top.as_path());
        let place = Place { git_directory, work_tree, variables: &variables, settings: SETTINGS, patience: PATIENCE };
        let printed = command::run_at(place, &args, message.as_bytes().to_vec()).await?;
        let id = String::from_utf8_lossy(&printed.bytes).trim().to_owned();
        if is_object_id(&id) { Ok(id) } else { Err(GitError::Failed("`git commit-tree` gave no commit".to_owned())) }
    }

    /// True when one commit is the other one or comes before it.
    pub(crate) async fn is_ancestor(&self, before: &str, after: &str) -> Result<bool, GitError> {
        let args = ["merge-base", "--is-ancestor", "--end-of-options", before, after];
        self.ask(&args).await.map(|(yes, _)| yes)
    }

    /// Pushes a commit as a branch, with the user's own configuration of git.
    pub(crate) async fn push(&self, url: &str, commit: &str, branch: &str) -> Result<(), GitError> {
        let refspec = format!("{commit}:refs/heads/{branch}");
        self.remote(&["push", "--quiet", "--no-verify", "--", url, &refspec]).await.map(drop)
    }

    /// Talks to another repository, with the user's own configuration of git.
    pub(super) async fn remote(&self, args: &[&str]) -> Result<Printed, GitError> {
        command::remote(self.store.path(), &self.repository.objects(), args).await
    }

    /// Commits that one has and the other has not, newest first: `1a2b3c4 subject`.
    pub(crate) async fn commits_between(&self, before: &str, after: &str) -> Result<Vec<String>, GitError> {
        let range = format!("{before}..{after}");
        let args = ["log", "--max-count=200", "--format=%h %s", "--end-of-options", &range];
        let printed = self.git(&args, Vec::new()).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).lines().map(str::to_owned).collect())
    }
}
