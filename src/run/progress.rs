//! Did anything move? Looks at the working directory before and after an iteration: HEAD, changed and untracked files,
//! or file fingerprints where there is no repository. It only reads, and never takes git's locks.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::process::{Environment, Invocation, capture};

/// Git answers within this, or is not asked.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most that git's answer may be.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;
/// Files beyond this are not looked at.
const MOST_FILES: usize = 20_000;
/// So much is read of changed files in all; beyond it they are known by size and time.
const MOST_READ: u64 = 64 * 1024 * 1024;
/// What is never progress: ralph's own directory, and where others keep what they can make again.
pub const IGNORED: [&str; 5] = [".ralph", ".git", "node_modules", "target", ".agent/events.jsonl"];

/// How the working directory was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The repositories, by their place.
    repositories: BTreeMap<PathBuf, Repository>,
    /// Files that differ from the last commit, or all files where there is no repository: path → fingerprint.
    files: BTreeMap<PathBuf, u64>,
    /// False when nothing could be seen at all.
    seen: bool,
    /// How much was read of changed files.
    #[serde(skip)]
    read: u64,
    /// What paths are told from.
    workspace: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Repository {
    head: Option<String>,
    #[serde(default)]
    branch: Option<String>,
    /// Git did not answer, so that nothing is known of it: neither its commits nor its files.
    #[serde(default)]
    unseen: bool,
}

impl Repository {
    /// Takes a line about HEAD, as `branch.oid` and `branch.head`; others tell of what is elsewhere.
    fn header(&mut self, line: &str) {
        let told = |value: &str| (!matches!(value, "(initial)" | "(detached)")).then(|| value.to_owned());
        match line.split_once(' ') {
            Some(("branch.oid", commit)) => self.head = told(commit),
            Some(("branch.head", branch)) => self.branch = told(branch),
            _ => {}
        }
    }
}

/// What differs between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Files that are different now.
    pub files: Vec<String>,
    /// Commits, newest first.
    pub commits: Vec<String>,
    /// HEAD before, of the repository of the working directory.
    pub head_before: Option<String>,
    /// HEAD after.
    pub head_after: Option<String>,
    /// The branch after.
    pub branch: Option<String>,
    /// `None`: nobody can see.
    pub moved: Option<bool>,
}

impl Snapshot {
    /// Looks at a working directory, but for one file that ralph itself writes there.
    pub async fn take(workspace: &Path, except: Option<&Path>) -> Self {
        let mut snapshot = Self::all(workspace).await;
        if let Some(file) = except {
            snapshot.files.remove(file.strip_prefix(workspace).unwrap_or(file));
        }
        snapshot
    }

    async fn all(workspace: &Path) -> Self {
        let mut snapshot = Self { workspace: workspace.to_owned(), ..Self::default() };
        if let Some(top) = repository_of(workspace).await {
            snapshot.add_repository(&top, workspace).await;
            return snapshot;
        }
        let children = repositories_below(workspace);
        for repository in &children {
            snapshot.add_repository(repository, workspace).await;
        }
        snapshot.add_files(workspace, &children);
        snapshot
    }

    /// One number for the whole of it.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (path, repository) in &self.repositories {
            (path, &repository.head).hash(&mut hasher);
        }
        self.files.hash(&mut hasher);
        hasher.finish()
    }

    /// Files and commits since an earlier moment.
    pub async fn since(&self, before: &Self) -> Change {
        let mut change = Change::default();
        if !self.seen || !before.seen {
            return change;
        }
        // What was not seen at one of the two moments cannot be compared.
        let unseen: BTreeSet<&Path> = self.unseen().chain(before.unseen()).collect();
        let is_seen = |path: &Path| !path.ancestors().any(|parent| unseen.contains(parent));
        let differs = |(path, print): &(&PathBuf, &u64)| before.files.get(*path) != Some(print);
        let mut files: Vec<PathBuf> = self.files.iter().filter(differs).map(|(path, _)| path.clone()).collect();
        let gone = before.files.keys().filter(|path| !self.files.contains_key(*path));
        files.extend(gone.cloned());
        files.retain(|path| is_seen(&self.workspace.join(path)));
        let heads = self.heads().filter(|(place, _)| is_seen(place));
        let moved = !files.is_empty() || heads.ne(before.heads().filter(|(place, _)| is_seen(place)));
        change.moved = if moved || unseen.is_empty() { Some(moved) } else { None };
        for (index, (place, now)) in self.repositories.iter().enumerate().filter(|(_, (place, _))| is_seen(place)) {
            let was = before.repositories.get(place).and_then(|repository| repository.head.clone());
            if index == 0 {
                (change.head_before, change.head_after) = (was.clone(), now.head.clone());
                change.branch.clone_from(&now.branch);
            }
            if let Some(head) = now.head.as_ref().filter(|head| Some(*head) != was.as_ref()) {
                change.commits.extend(commits(place, was.as_deref(), head).await);
                let committed = committed_files(place, was.as_deref(), head).await;
                files.extend(committed.into_iter().map(|path| shown(place, &path, &self.workspace)));
            }
        }
        files.sort();
        files.dedup();
        change.files = files.into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
        change
    }

    /// Files that are different from the last commit.
    pub fn changed(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.files.keys().map(|path| self.workspace.join(path))
    }

    fn heads(&self) -> impl Iterator<Item = (&PathBuf, &Option<String>)> {
        self.repositories.iter().map(|(place, repository)| (place, &repository.head))
    }

    fn unseen(&self) -> impl Iterator<Item = &Path> {
        self.repositories.iter().filter(|(_, repository)| repository.unseen).map(|(place, _)| place.as_path())
    }

    async fn add_repository(&mut self, top: &Path, workspace: &Path) {
        // Head, branch and files in one answer, so that they are of one moment.
        let ask = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--no-ahead-behind",
            "-z",
            "--untracked-files=all",
            "--no-renames",
        ];
        let status = git(top, &ask).await;
        self.seen |= status.is_some();
        let mut repository = Repository { unseen: status.is_none(), ..Repository::default() };
        for entry in status.unwrap_or_default().split(|&byte| byte == 0) {
            if let Some(header) = entry.strip_prefix(b"# ") {
                repository.header(&String::from_utf8_lossy(header));
                continue;
            }
            let Some((state, path)) = status_entry(entry) else { continue };
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let shown = shown(top, path, workspace);
            if self.files.len() >= MOST_FILES || is_ignored(&shown) {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            self.content(&top.join(path)).hash(&mut hasher);
            self.files.insert(shown, hasher.finish());
        }
        self.repositories.insert(top.to_owned(), repository);
    }

    /// A number for what is in a file: a touch alone is no progress.
    fn content(&mut self, path: &Path) -> u64 {
        let Ok(metadata) = std::fs::symlink_metadata(path) else { return 0 };
        let mut hasher = DefaultHasher::new();
        if metadata.is_symlink() {
            std::fs::read_link(path).ok().hash(&mut hasher);
        } else if metadata.is_file() && self.read + metadata.len() <= MOST_READ {
            self.read += metadata.len();
            std::fs::read(path).unwrap_or_default().hash(&mut hasher);
        } else {
            return size_and_time(path);
        }
        hasher.finish()
    }

    /// All files outside of the given repositories, up to the bound.
    fn add_files(&mut self, workspace: &Path, except: &[PathBuf]) {
        let mut directories = vec![workspace.to_owned()];
        let mut entries_left = 2 * MOST_FILES;
        while let Some(directory) = directories.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            self.seen = true;
            for entry in entries.flatten() {
                if entries_left == 0 {
                    return;
                }
                entries_left -= 1;
                let path = entry.path();
                let Ok(relative) = path.strip_prefix(workspace) else { continue };
                let Ok(kind) = entry.file_type() else { continue };
                if is_ignored(relative) || except.contains(&path) {
                    continue;
                }
                if kind.is_dir() {
                    directories.push(path);
                } else if self.files.len() < MOST_FILES {
                    self.files.insert(relative.to_owned(), size_and_time(&path));
                }
            }
        }
    }
}

/// A path of a repository as it is seen from the working directory; what is outside of that keeps its full name.
fn shown(top: &Path, path: &Path, workspace: &Path) -> PathBuf {
    let full = top.join(path);
    full.strip_prefix(workspace).map_or_else(|_| full.clone(), Path::to_owned)
}

fn is_ignored(path: &Path) -> bool {
    IGNORED.iter().any(|ignored| path.starts_with(ignored))
}

/// A number for a file that is not read.
fn size_and_time(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        (metadata.len(), modified).hash(&mut hasher);
    }
    hasher.finish()
}

/// The top of the repository that a directory belongs to.
async fn repository_of(directory: &Path) -> Option<PathBuf> {
    let inside = directory.ancestors().any(|parent| parent.join(".git").exists());
    if !inside {
        return None;
    }
    let said = git(directory, &["rev-parse", "--show-toplevel"]).await?;
    let said = said.strip_suffix(b"\n").unwrap_or(&said);
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(said)))
}

/// Repositories right below a directory that is none itself.
fn repositories_below(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join(".git").exists()).collect();
    found.sort();
    found
}

async fn commits(top: &Path, before: Option<&str>, head: &str) -> Vec<String> {
    let range = before.map_or_else(|| head.to_owned(), |before| format!("{before}..{head}"));
    let said = git(top, &["log", "--max-count=50", "--format=%h %s", &range]).await.unwrap_or_default();
    String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
}

async fn committed_files(top: &Path, before: Option<&str>, head: &str) -> Vec<PathBuf> {
    let said = match before {
        Some(before) => git(top, &["diff", "--name-only", "-z", "--no-renames", before, head]).await,
        None => git(top, &["ls-tree", "-r", "--name-only", "-z", head]).await,
    };
    let said = said.unwrap_or_default();
    let paths = said.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect()
}

/// State and path of a file in git's second short format: `1 XY …`, `u XY …` with fields before the path, or `? path`.
fn status_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let fields_before_path = match entry.first()? {
        b'?' => return Some((&entry[..1], entry.get(2..)?)),
        b'1' => 8,
        b'u' => 10,
        _ => return None,
    };
    let path = entry.splitn(fields_before_path + 1, |&byte| byte == b' ').nth(fields_before_path)?;
    Some((entry.get(2..4)?, path))
}

/// Asks git something; `None` when it cannot answer.
pub async fn git(directory: &Path, args: &[&str]) -> Option<Vec<u8>> {
    git_with(directory, args, &[]).await
}

/// The same, with more variables.
pub async fn git_with(directory: &Path, args: &[&str], more: &[(&str, &str)]) -> Option<Vec<u8>> {
    let set = [("GIT_OPTIONAL_LOCKS", "0"), ("LC_ALL", "C")].iter().chain(more);
    let set = set.map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let remove = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].into_iter();
    let remove = remove.filter(|name| more.iter().all(|(set, _)| set != name)).map(str::to_owned).collect();
    // Looking must not run code of the repository.
    let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
    let invocation = Invocation {
        args: quiet.iter().chain(args).map(Into::into).collect(),
        env: Environment { set, remove },
        ..Invocation::new("git", directory)
    };
    let said = capture(invocation, PATIENCE, LONGEST_ANSWER).await.ok()?;
    said.success().then_some(said.stdout)
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
