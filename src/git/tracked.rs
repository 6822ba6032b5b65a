//! One repository with ralph's own index beside it. The index holds the work tree as it was last seen, so that one `git status` names
//! everything that is different since then, whatever was staged, committed or hidden meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::command::{GitError, is_object_id};
use super::commits::{MOST_COMMITS, commits};
use super::direct::Stored;
use super::files;
use super::objects::Id;
use super::own_index::Trees;
use super::patch::Changed;
use super::repository::{Head, Repository, rule};
use super::snapshots::{Difference, Effort};
use super::status::Status;
use super::store::{Indexed, Store};
use super::watch::Watch;

/// A file larger than this is known by size and times only.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// More new files than this at once are a build directory that nobody has ignored.
const MOST_NEW: usize = 20_000;
/// A directory with this many new files, and no other ones, is left out then.
const BUILD_DIRECTORY: usize = 5_000;

/// What may be stored in one run, over all repositories, and what was not looked at.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) bytes_left: u64,
    pub(super) notices: Vec<String>,
}

/// A repository and how it was last seen.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) repository: Repository,
    pub(super) store: Store,
    pub(super) head: Head,
    /// The work tree as it is now.
    pub(super) now: Seen,
    /// As it was when the store was made.
    pub(super) first: Seen,
    /// As the last iteration left it.
    pub(super) last: String,
    /// Files that were not committed when the store was made.
    pub(super) uncommitted: usize,
    rules: Vec<u8>,
    /// Files that ralph itself writes.
    pub(super) own: Vec<PathBuf>,
    /// Directories and files that are not watched.
    skipped: Vec<PathBuf>,
    watch: Watching,
    /// Where changes must not hide: files with ignore rules that were themselves ignored at the start.
    hidden_rules: Option<BTreeMap<PathBuf, u64>>,
    /// Why the last look failed: what is known is old then.
    unseen: Option<String>,
    /// Files are stored byte for byte.
    pub(super) stores_plainly: bool,
    /// The trees of the directories in the index.
    pub(super) trees: Trees,
    /// Trees that the repository has stored.
    pub(super) stored_trees: HashSet<Id>,
}

/// What tells of touched paths.
#[derive(Debug)]
enum Watching {
    On(Watch),
    /// It begins with the next look.
    Off,
    /// It cannot be had here.
    Never,
}

/// A work tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its files, as a tree of git.
    pub(super) tree: String,
    /// Files that are not in the tree, by size and times.
    pub(super) apart: BTreeMap<PathBuf, u64>,
}

#[derive(Debug)]
pub(super) struct Look {
    pub(super) head_before: Head,
    pub(super) before: Seen,
    /// Files with another content than before.
    pub(super) files: BTreeSet<PathBuf>,
    /// Repositories in this one.
    pub(super) nested: Vec<PathBuf>,
    /// The same files with their contents, where they are known.
    pub(super) changes: Option<Vec<Changed>>,
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

impl Tracked {
    /// Begins to track a repository, and names the repositories inside it. `skipped` are directories and files, seen from its top,
    /// that nobody looks at unless they are committed; `own` are files that ralph writes. `objects` is where objects are kept longer
    /// than the run.
    pub(super) async fn open(
        repository: Repository,
        directory: PathBuf,
        objects: Option<PathBuf>,
        skipped: &[PathBuf],
        own: Vec<PathBuf>,
        limits: &mut Limits,
    ) -> Result<(Self, Vec<PathBuf>), GitError> {
        let failed = |error: io::Error| GitError::Failed(format!("cannot write snapshots: {error}"));
        repository.check()?;
        let head = repository.head().await;
        let store = Store::small(directory, &repository, objects.as_deref()).map_err(failed)?;
        store.set_head(&head).map_err(failed)?;
        let Indexed { submodules, left_out, has_skipped, trees: stored_trees } =
            store.take_index(&repository, &head, skipped).await;
        let mut rules = repository.exclude_rules();
        skipped.iter().chain(&own).for_each(|path| rules.extend(rule(path)));
        store.exclude(&rules).map_err(failed)?;
        let (now, first, last) = (Seen::default(), Seen::default(), String::new());
        // Committed files in a skipped directory count, and nothing would tell of them.
        let watch = if has_skipped { Watching::Never } else { Watching::Off };
        let skipped = skipped.iter().chain(&own).cloned().collect();
        let mut tracked = Self {
            stores_plainly: repository.stores_plainly(),
            trees: Trees::default(),
            stored_trees,
            repository,
            store,
            head,
            now,
            first,
            last,
            uncommitted: 0,
            rules,
            own,
            skipped,
            watch,
            hidden_rules: None,
            unseen: None,
        };
        let missing: BTreeSet<&[u8]> = submodules.iter().chain(&left_out).map(Vec::as_slice).collect();
        let mut look = tracked.look_except(&missing, Effort::Full, limits).await?;
        tracked.first = tracked.now.clone();
        tracked.last.clone_from(&tracked.now.tree);
        look.nested.extend(submodules.iter().map(|path| tracked.repository.top.join(path_of(path))));
        Ok((tracked, look.nested))
    }

    /// Looks at the work tree, and makes the index and the tree as it is now.
    pub(super) async fn look(&mut self, effort: Effort, limits: &mut Limits) -> Result<Look, GitError> {
        let look = self.look_except(&BTreeSet::new(), effort, limits).await;
        self.unseen = look.as_ref().err().map(ToString::to_string);
        if look.is_err() {
            self.look_at_everything();
        }
        look
    }

    /// True when the last look failed.
    pub(super) const fn is_unseen(&self) -> bool {
        self.unseen.is_some()
    }

    /// Takes over a commit that ralph itself has made of the files as they are.
    pub(super) async fn see_head(&mut self) -> Result<(), GitError> {
        self.head = self.repository.head().await;
        self.store.set_head(&self.head).map_err(|error| GitError::Failed(error.to_string()))
    }

    /// What was touched so far is not known any more.
    pub(super) fn look_at_everything(&mut self) {
        if matches!(self.watch, Watching::On(_)) {
            self.watch = Watching::Off;
        }
    }

    /// Paths that may have changed since the last look; `None`: all of them.
    fn touched(&mut self) -> Option<BTreeSet<PathBuf>> {
        if let Watching::On(watch) = &mut self.watch {
            if let Some(paths) = watch.touched() {
                return Some(paths);
            }
            self.watch = Watching::Off;
        }
        if matches!(self.watch, Watching::Off) {
            self.watch = Watch::start(&self.repository.top, &self.skipped).map_or(Watching::Never, Watching::On);
        }
        None
    }

    async fn look_except(
        &mut self,
        missing: &BTreeSet<&[u8]>,
        effort: Effort,
        limits: &mut Limits,
    ) -> Result<Look, GitError> {
        self.repository.check()?;
        let head = self.repository.head().await;
        if head.commit != self.head.commit {
            self.store.set_head(&head).map_err(|error| GitError::Failed(error.to_string()))?;
        }
        // Before git looks: what is touched meanwhile is seen next time.
        let touched = self.touched().filter(|_| effort == Effort::Touched);
        if let Some(before) = touched.as_ref().and_then(|touched| self.only_known_files(touched, limits)) {
            return self.look_at_known_files(before, head, limits).await;
        }
        let mut answer = self.status(touched.as_ref(), limits).await?;
        if Status::read(&answer).new > MOST_NEW && self.leave_out_build_directories(&answer, limits).await? {
            answer = self.status(touched.as_ref(), limits).await?;
        }
        let mut status = Status::read(&answer);
        if status.new > MOST_NEW {
            let left = status.new - MOST_NEW;
            status.changed.truncate(status.changed.len() - left);
            limits.notices.push(format!("{left} new files are not watched: more than {MOST_NEW} at once"));
        }
        if self.now.tree.is_empty() {
            let counted = |(path, gone): &&(&[u8], bool)| !(*gone && missing.contains(path));
            self.uncommitted = status.uncommitted.iter().filter(counted).count();
        }
        let is_untouched = |path: &Path| {
            touched.as_ref().is_some_and(|touched| !path.ancestors().any(|parent| touched.contains(parent)))
        };
        let mut apart = self.now.apart.clone();
        apart.retain(|path, _| is_untouched(path));
        let mut stored = Vec::new();
        for path in status.changed.iter().map(|path| path_of(path)).filter(|path| !self.own.contains(path)) {
            match std::fs::symlink_metadata(self.repository.top.join(&path)) {
                Ok(metadata) if metadata.is_dir() || metadata.is_symlink() => stored.push(path),
                Ok(metadata) => match self.reason_against(&path, &metadata, limits) {
                    None => {
                        limits.bytes_left -= metadata.len();
                        stored.push(path);
                    }
                    Some(reason) => {
                        if !self.now.apart.contains_key(&path) {
                            limits.notices.push(format!("not in diffs: `{}` ({reason})", path.display()));
                        }
                        apart.insert(path, files::stat_print(&metadata));
                    }
                },
                Err(_) => stored.push(path),
            }
        }
        let is_same = stored.is_empty() && !self.now.tree.is_empty();
        let (tree, changes) = if is_same { (self.now.tree.clone(), None) } else { self.store_files(&stored).await? };
        let mut changed: BTreeSet<PathBuf> = BTreeSet::new();
        if tree != self.now.tree {
            changed.extend(stored);
        }
        let differs = |one: &BTreeMap<PathBuf, u64>, other: &BTreeMap<PathBuf, u64>| {
            one.iter()
                .filter(|(path, print)| other.get(*path) != Some(print))
                .map(|(path, _)| path.clone())
                .collect::<Vec<_>>()
        };
        changed.extend(differs(&apart, &self.now.apart));
        changed.extend(differs(&self.now.apart, &apart));
        Ok(Look {
            head_before: std::mem::replace(&mut self.head, head),
            before: std::mem::replace(&mut self.now, Seen { tree, apart }),
            files: changed,
            nested: status.nested.iter().map(|path| self.repository.top.join(path_of(path))).collect(),
            changes,
        })
    }

    /// What git says of all paths, or of some.
    async fn status(&self, paths: Option<&BTreeSet<PathBuf>>, limits: &mut Limits) -> Result<Vec<u8>, GitError> {
        if paths.is_some_and(BTreeSet::is_empty) {
            return Ok(Vec::new());
        }
        let form = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
        ];
        // A name that is not UTF-8 is not handed on: all are looked at then.
        let paths: Option<Vec<&str>> = paths.into_iter().flatten().map(|path| path.to_str()).collect();
        let args = [&form[..], &paths.unwrap_or_default()].concat();
        let mut answer = self.store.git(&args, Vec::new()).await?;
        if answer.cut {
            let whole = answer.bytes.iter().rposition(|&byte| byte == 0).map_or(0, |end| end + 1);
            answer.bytes.truncate(whole);
            limits.notices.push("not all changed files are watched: there are too many".to_owned());
        }
        Ok(answer.bytes)
    }

    /// Why a file does not go into the tree.
    pub(super) fn reason_against(&self, path: &Path, metadata: &std::fs::Metadata, limits: &Limits) -> Option<String> {
        if !metadata.is_file() {
            return Some("not a regular file".to_owned());
        }
        if metadata.len() > MOST_BYTES {
            return Some(format!("{} MiB", metadata.len() / (1024 * 1024)));
        }
        if metadata.len() > limits.bytes_left {
            return Some("the run has stored too much already".to_owned());
        }
        (!files::is_readable(&self.repository.top.join(path))).then(|| "cannot be read".to_owned())
    }

    /// Puts files as they are now into the index, and gives its tree. The changes are known where git was not needed for that.
    async fn store_files(&mut self, paths: &[PathBuf]) -> Result<(String, Option<Vec<Changed>>), GitError> {
        if let Some(Stored { tree, changes }) = self.store_directly(paths) {
            return Ok((tree, Some(changes)));
        }
        self.update_index(paths).await?;
        Ok((self.write_tree().await?, None))
    }

    /// Lets git put files as they are now into the index.
    pub(super) async fn update_index(&mut self, paths: &[PathBuf]) -> Result<(), GitError> {
        self.trees.clear();
        let (beyond, there): (Vec<&PathBuf>, _) =
            paths.iter().partition(|path| is_beyond_symlink(&self.repository.top, path));
        let listed = |paths: &[&PathBuf], before: &[u8]| -> Vec<u8> {
            paths.iter().flat_map(|path| [before, path.as_os_str().as_bytes(), b"\0"].concat()).collect()
        };
        if !beyond.is_empty() {
            // git does not look behind a symbolic link, not even to see that the file is gone.
            let zeros = "0".repeat(2 * self.repository.id_length());
            let removed = listed(&beyond, format!("0 {zeros}\t").as_bytes());
            self.store.git(&["update-index", "-z", "--index-info"], removed).await?;
        }
        if !there.is_empty() {
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            self.store.git(&update, listed(&there, b"")).await?;
        }
        Ok(())
    }

    /// The tree of the index.
    pub(super) async fn write_tree(&self) -> Result<String, GitError> {
        let printed = self.store.git(&["write-tree", "--missing-ok"], Vec::new()).await?;
        let tree = String::from_utf8_lossy(&printed.bytes).trim().to_owned();
        if is_object_id(&tree) { Ok(tree) } else { Err(GitError::Failed("`git write-tree` gave no tree".to_owned())) }
    }

    /// Leaves out directories with very many new files and nothing else. True when there are some.
    async fn leave_out_build_directories(&mut self, answer: &[u8], limits: &mut Limits) -> Result<bool, GitError> {
        let status = Status::read(answer);
        let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
        let new = &status.changed[status.changed.len() - status.new..];
        for path in new {
            for parent in Path::new(OsStr::from_bytes(path)).ancestors().skip(1) {
                *counts.entry(parent).or_default() += 1;
            }
        }
        // In this order parents come before what is in them.
        let large = counts.into_iter().filter(|(path, count)| *count >= BUILD_DIRECTORY && path.as_os_str() != "");
        let mut left_out: Vec<&Path> = Vec::new();
        for (path, count) in large {
            let Some(name) = path.to_str().filter(|_| !left_out.iter().any(|parent| path.starts_with(parent))) else {
                continue;
            };
            if self.store.git(&["ls-files", "-z", "--", name], Vec::new()).await?.bytes.is_empty() {
                let told = format!("not watched: `{name}/` with {count} untracked files; add it to .gitignore");
                limits.notices.push(told);
                self.rules.extend(rule(path));
                left_out.push(path);
            }
        }
        self.store.exclude(&self.rules).map_err(|error| GitError::Failed(error.to_string()))?;
        Ok(!left_out.is_empty())
    }

    /// Commits that are new in HEAD, newest first, and their files.
    pub(super) async fn commits(&self, before: &Head) -> (Vec<String>, BTreeSet<PathBuf>) {
        let Some(head) = &self.head.commit else { return Default::default() };
        if let Some(found) = commits(&self.objects(), head, before.commit.as_deref()) {
            return found;
        }
        let range = before.commit.as_ref().map_or_else(|| head.clone(), |before| format!("{before}..{head}"));
        let most = format!("--max-count={MOST_COMMITS}");
        let form = ["log", "-z", &most, "--format=format:%x01%h %s", "--name-only", "--no-renames"];
        let args = [&form[..], &["--end-of-options", &range]].concat();
        let printed = self.store.git(&args, Vec::new()).await.unwrap_or_default();
        let (mut commits, mut files) = (Vec::new(), BTreeSet::new());
        for part in printed.bytes.split(|&byte| byte == 0) {
            // A commit and its first file are parted by a line break.
            let Some(commit) = part.strip_prefix(b"\x01") else {
                files.extend(Some(part).filter(|part| !part.is_empty()).map(path_of));
                continue;
            };
            let mut parts = commit.splitn(2, |&byte| byte == b'\n');
            commits.push(String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned());
            files.extend(parts.next().map(path_of));
        }
        (commits, files)
    }

    /// Files that are not as they were first, by content.
    pub(super) async fn since_first(&self) -> Result<Vec<(PathBuf, Difference)>, GitError> {
        if let Some(error) = &self.unseen {
            return Err(GitError::Failed(error.clone()));
        }
        let mut found = Vec::new();
        if self.first.tree != self.now.tree {
            let args = [
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-renames",
                "--end-of-options",
                &self.first.tree,
                &self.now.tree,
            ];
            let printed = self.store.git(&args, Vec::new()).await?;
            let mut parts = printed.bytes.split(|&byte| byte == 0);
            while let (Some(facts), Some(path)) = (parts.next().filter(|facts| !facts.is_empty()), parts.next()) {
                let facts = String::from_utf8_lossy(facts);
                let facts: Vec<&str> = facts.trim_start_matches(':').split(' ').collect();
                let [old_mode, new_mode, old, new, _] = facts[..] else { continue };
                let content = |mode: &str, id: &str| (mode != "000000").then(|| format!("{mode} {id}"));
                let difference = Difference { before: content(old_mode, old), now: content(new_mode, new) };
                found.push((path_of(path), difference));
            }
        }
        let (mut first, mut now) = (self.first.apart.clone(), self.now.apart.clone());
        if let Some(hidden) = &self.hidden_rules {
            first.extend(hidden.clone());
            now.extend(self.find_hidden_rules().await?);
        }
        let paths: BTreeSet<&PathBuf> = first.keys().chain(now.keys()).collect();
        for path in paths.into_iter().filter(|path| first.get(*path) != now.get(*path)) {
            let content = |seen: &BTreeMap<PathBuf, u64>| seen.get(path).map(u64::to_string);
            found.push((path.clone(), Difference { before: content(&first), now: content(&now) }));
        }
        Ok(found)
    }

    /// From now on new ignore rules that hide themselves are among the differences.
    pub(super) async fn guard(&mut self) -> Result<(), GitError> {
        self.hidden_rules = Some(self.find_hidden_rules().await?);
        Ok(())
    }

    /// Ignored `.gitignore` files that hold for committed directories. A directory of its own that ignores itself, as tools make
    /// for their caches, hides nothing else.
    async fn find_hidden_rules(&self) -> Result<BTreeMap<PathBuf, u64>, GitError> {
        let printed = self.store.git(&["ls-files", "-o", "-i", "--exclude-standard", "-z"], Vec::new()).await?;
        let mut found = BTreeMap::new();
        for path in printed.bytes.split(|&byte| byte == 0).map(path_of).filter(|path| path.ends_with(".gitignore")) {
            let Some(directory) = path.parent().and_then(Path::to_str) else { continue };
            let holds = directory.is_empty()
                || !self.store.git(&["ls-files", "-z", "--", directory], Vec::new()).await?.bytes.is_empty();
            if let (true, Ok(metadata)) = (holds, self.repository.top.join(&path).symlink_metadata()) {
                found.insert(path, files::stat_print(&metadata));
            }
        }
        Ok(found)
    }

    /// The content of a file as [`Self::since_first`] names it.
    pub(super) async fn content(&self, path: &Path) -> Option<String> {
        if let Some(print) = self.now.apart.get(path) {
            return Some(print.to_string());
        }
        let printed = self.store.git(&["ls-files", "-s", "-z", "--", path.to_str()?], Vec::new()).await.ok()?;
        let facts = String::from_utf8_lossy(&printed.bytes).into_owned();
        let (mode, rest) = facts.split_once(' ')?;
        Some(format!("{mode} {}", rest.split(' ').next()?))
    }
}

pub(super) fn is_beyond_symlink(top: &Path, path: &Path) -> bool {
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    parents.into_iter().any(|parent| top.join(parent).is_symlink())
}
