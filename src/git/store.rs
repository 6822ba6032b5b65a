//! A git directory of ralph's own beside a repository: it reads the repository's objects and writes only to itself. It is private,
//! knows no filters, hooks or remotes, and is removed when it is dropped.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::command::{self, GitError, PATIENCE, Place, Printed, is_object_id};
use super::objects::Id;
use super::repository::{Head, Repository};
use super::{files, index};
use crate::journal::disk::{Disk as _, RealDisk};

/// The directory of a run that holds its stores.
const DIRECTORY: &str = "snapshots";
/// The rules of a small store about untracked files.
const EXCLUDE: &str = "exclude";
pub(super) const MOST_INDEX: u64 = 1024 * 1024 * 1024;

/// A git directory that is ralph's own.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    top: PathBuf,
    /// Of a store that is made for each run: with as few files as git needs.
    small: Option<Small>,
}

/// What a small store has elsewhere.
#[derive(Debug)]
struct Small {
    /// Where objects are written.
    objects: PathBuf,
    /// Where the repository has its own.
    theirs: OsString,
    /// The setting that names the rules about untracked files; none where it cannot be written as text.
    excludes: Option<String>,
}

/// What the repository's index said when the store was made.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    pub(super) submodules: Vec<Vec<u8>>,
    pub(super) left_out: Vec<Vec<u8>>,
    /// Files that are skipped elsewhere are committed here, or may be.
    pub(super) has_skipped: bool,
    /// Trees that the repository has stored.
    pub(super) trees: HashSet<Id>,
}

/// Where the stores of a run are.
pub(super) fn place(run: &Path) -> PathBuf {
    run.join(DIRECTORY)
}

/// Removes what a killed run has left: objects may hold secrets.
pub(crate) fn remove_leftovers(run: &Path) {
    let _ = std::fs::remove_dir_all(place(run));
}

impl Store {
    /// A store for reading the objects of a repository, in a temporary directory.
    pub(crate) fn temporary(repository: &Repository) -> io::Result<Self> {
        let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id());
        Self::create(std::env::temp_dir().join(format!("ralph-git-{chance:016x}")), repository)
    }

    /// A store for snapshots. Objects are written to a directory that lasts longer than the store, if one is given. Creating files
    /// is most of what a start costs, so there are few.
    pub(super) fn small(directory: PathBuf, repository: &Repository, objects: Option<&Path>) -> io::Result<Self> {
        RealDisk.new_directory(&directory)?;
        let own = directory.join("objects");
        let excludes = directory.join(EXCLUDE).to_str().map(|path| format!("core.excludesFile={path}"));
        if excludes.is_none() {
            RealDisk.directory(&directory.join("info"))?;
        }
        let mut theirs = quoted(&repository.objects());
        theirs.pop();
        let small = Small { objects: objects.unwrap_or(&own).to_owned(), theirs: OsString::from_vec(theirs), excludes };
        let store = Self { directory, top: repository.top.clone(), small: Some(small) };
        let directory = &store.directory;
        RealDisk.directory(&directory.join("refs"))?;
        if objects.is_none() {
            RealDisk.directory(&own)?;
        }
        if !repository.has_usual_format() {
            std::fs::write(directory.join("config"), repository.format_settings())?;
        }
        if let Some(shallow) = files::read(&repository.common.join("shallow"), 1024 * 1024) {
            std::fs::write(directory.join("shallow"), shallow)?;
        }
        Ok(store)
    }

    /// Where its objects are.
    pub(super) fn objects(&self) -> PathBuf {
        self.small.as_ref().map_or_else(|| self.directory.join("objects"), |small| small.objects.clone())
    }

    /// Where its own files are.
    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    /// Makes a store; there must be nothing at its place.
    fn create(directory: PathBuf, repository: &Repository) -> io::Result<Self> {
        RealDisk.new_directory(&directory)?;
        let store = Self { directory, top: repository.top.clone(), small: None };
        let directory = &store.directory;
        for below in ["refs", "info", "objects/info"] {
            RealDisk.directory(&directory.join(below))?;
        }
        let objects = std::path::absolute(repository.common.join("objects"))?;
        std::fs::write(directory.join("objects/info/alternates"), quoted(&objects))?;
        std::fs::write(directory.join("config"), repository.format_settings())?;
        if let Some(shallow) = files::read(&repository.common.join("shallow"), 1024 * 1024) {
            std::fs::write(directory.join("shallow"), shallow)?;
        }
        store.set_head(&Head::default())?;
        Ok(store)
    }

    /// Says what git compares the index with.
    pub(super) fn set_head(&self, head: &Head) -> io::Result<()> {
        let text = head.commit.as_deref().filter(|commit| is_object_id(commit)).unwrap_or("ref: refs/heads/none");
        std::fs::write(self.directory.join("HEAD"), format!("{text}\n"))
    }

    /// Says which untracked files are not looked at.
    pub(super) fn exclude(&self, rules: &[u8]) -> io::Result<()> {
        let is_named = self.small.as_ref().is_some_and(|small| small.excludes.is_some());
        let name = if is_named { EXCLUDE } else { "info/exclude" };
        std::fs::write(self.directory.join(name), rules)
    }

    /// Starts from the repository's own index, without what hides changes in it.
    pub(super) async fn take_index(&self, repository: &Repository, head: &Head, skipped: &[PathBuf]) -> Indexed {
        let (theirs, ours) = (repository.directory.join("index"), self.directory.join("index"));
        let read = || {
            let time = std::fs::metadata(&theirs).and_then(|metadata| metadata.modified()).ok()?;
            Some((files::read(&theirs, MOST_INDEX)?, time))
        };
        let copied = match read() {
            None if !theirs.exists() => return Indexed::default(),
            None => None,
            Some((bytes, time)) => index::copy(&bytes, repository.id_length(), skipped).map(|copied| (copied, time)),
        };
        if let Some((copied, time)) = copied
            && write_at(&ours, &copied.bytes, time).is_ok()
        {
            let index::Copied { submodules, left_out, has_skipped, trees, .. } = copied;
            return Indexed { submodules, left_out, has_skipped, trees };
        }
        // An index that cannot be copied: git makes one of the last commit and reads all files once.
        if let Some(commit) = &head.commit {
            let _ = self.git(&["read-tree", "--end-of-options", commit], Vec::new()).await;
        }
        Indexed { has_skipped: true, ..Indexed::default() }
    }

    /// Mode and content of these files in the store's own index.
    pub(super) fn contents(&self, files: &BTreeSet<PathBuf>, id_length: usize) -> Option<BTreeMap<PathBuf, Vec<u8>>> {
        index::contents(&files::read(&self.directory.join("index"), MOST_INDEX)?, id_length, files)
    }

    /// Runs git on this store.
    pub(super) async fn git(&self, args: &[&str], stdin: Vec<u8>) -> Result<Printed, GitError> {
        let result = match &self.small {
            None => command::run(&self.directory, &self.top, args, stdin).await,
            Some(Small { objects, theirs, excludes }) => {
                let variables = [
                    ("GIT_OBJECT_DIRECTORY", objects.as_os_str().to_owned()),
                    ("GIT_ALTERNATE_OBJECT_DIRECTORIES", theirs.clone()),
                ];
                let (git_directory, work_tree) = (self.directory.as_path(), self.top.as_path());
                let settings: Vec<&str> = excludes.iter().map(String::as_str).collect();
                let place =
                    Place { git_directory, work_tree, variables: &variables, settings: &settings, patience: PATIENCE };
                command::run_at(place, args, stdin).await
            }
        };
        if result.is_err() {
            // A git that was stopped leaves its lock; nobody else works on this index.
            let _ = std::fs::remove_file(self.directory.join("index.lock"));
        }
        result
    }

    /// The difference between two trees or commits as a patch. `below` is in front of every name.
    pub(crate) async fn patch(&self, before: &str, after: &str, below: &str) -> Result<String, GitError> {
        if !is_object_id(before) || !is_object_id(after) {
            return Err(GitError::Failed("not an object id".to_owned()));
        }
        let (source, target) = (format!("--src-prefix=a/{below}"), format!("--dst-prefix=b/{below}"));
        let form = ["diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color"];
        let args = [&form[..], &[&source, &target, "--end-of-options", before, after]].concat();
        let printed = self.git(&args, Vec::new()).await?;
        let mut text = String::from_utf8_lossy(&printed.bytes).into_owned();
        if printed.cut {
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            let _ = writeln!(text, "# cut: the diff is longer than {} MiB", command::MOST_OUTPUT / (1024 * 1024));
        }
        Ok(text)
    }

    /// True when one commit is the other one or comes before it.
    pub(crate) async fn is_ancestor(&self, before: &str, after: &str) -> bool {
        let args = ["merge-base", "--is-ancestor", "--end-of-options", before, after];
        is_object_id(before) && is_object_id(after) && self.git(&args, Vec::new()).await.is_ok()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The file keeps the time of the one it was copied from: git reads a file that changed in the same moment.
pub(super) fn write_at(path: &Path, bytes: &[u8], time: SystemTime) -> io::Result<()> {
    std::fs::write(path, bytes)?;
    std::fs::File::options().write(true).open(path)?.set_modified(time)
}

/// A path as `objects/info/alternates` takes it.
pub(super) fn quoted(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    let mut line = Vec::with_capacity(bytes.len() + 3);
    line.push(b'"');
    for &byte in bytes {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            _ => line.push(byte),
        }
    }
    line.extend_from_slice(b"\"\n");
    line
}
