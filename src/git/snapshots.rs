//! What a run changes: the working directory with all repositories in it, seen before and after each iteration.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use super::command::GitError;
use super::committing::Committed;
use super::history::History;
use super::plain::{MOST_FILES, Plain};
use super::repository::Repository;
use super::store;
use super::tracked::{Limits, Tracked};
use super::writer::Writer;
use crate::journal::disk::{Disk as _, RealDisk};

/// Content beyond this is not stored in one run.
pub(super) const MOST_STORED: u64 = 512 * 1024 * 1024;
/// Repositories beyond this are not looked at.
const MOST_REPOSITORIES: usize = 64;
/// Directories that are not looked at unless they are committed: ralph's own, and those that can be made again.
const SKIPPED: [&str; 3] = [".ralph", "node_modules", "target"];
/// Files that ralph writes for other programs; they are never progress.
const OWN: [&str; 5] = [
    ".ralph/status.json",
    ".ralph/live.log",
    ".ralph/.claude_session_id",
    ".ralph/.ralph_session",
    ".agent/events.jsonl",
];

/// What differs between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Files that are different now.
    pub(crate) files: Vec<String>,
    /// Commits, newest first.
    pub(crate) commits: Vec<String>,
    /// HEAD before, of the repository of the working directory.
    pub(crate) head_before: Option<String>,
    pub(crate) head_after: Option<String>,
    pub(crate) branch: Option<String>,
    /// `None`: it cannot be seen.
    pub(crate) moved: Option<bool>,
    /// The difference as a patch, where it was asked for and can be made.
    pub(crate) patch: Option<String>,
}

/// The content of one file at two moments; `None` where it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) before: Option<String>,
    pub(crate) now: Option<String>,
}

/// Whose work is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Agent,
    /// What checks change is not part of any diff.
    Checks,
}

/// How carefully the working directory is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only paths that are known to be touched, where that can be known.
    Touched,
    /// Everything: where something must be certain.
    Full,
}

/// The working directory of a run.
#[derive(Debug)]
pub(crate) struct Snapshots {
    workspace: PathBuf,
    /// Where stores are made.
    place: PathBuf,
    stores: u32,
    /// The first one is that of the working directory, unless there is none.
    repositories: Vec<Tracked>,
    /// Repositories that were made since the start, as seen from the working directory.
    new_repositories: BTreeSet<PathBuf>,
    /// All files, where the working directory is in no repository.
    plain: Option<Plain>,
    first_plain: Plain,
    own: Vec<PathBuf>,
    limits: Limits,
    told: BTreeSet<String>,
    changed: bool,
    /// The files before the run that continues, of the repository of the working directory.
    began: Option<String>,
    /// Where the states after the iterations are kept, for `ralph undo`.
    history: Option<History>,
}

/// Whether states are kept for `ralph undo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    Kept,
    Off,
}

/// What is not part of a state: directories and files, seen from the top of a repository.
pub(super) fn own_files(workspace: &Path, top: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let from = workspace.strip_prefix(top).unwrap_or(Path::new(""));
    let below = |names: &[&str]| names.iter().map(|name| from.join(name)).collect();
    (below(&SKIPPED), below(&OWN))
}

/// ralph's state directory, where the user keeps it below `top`. A run is in `STATE/projects/NAME/runs/ID`.
pub(super) fn state_inside(run: &Path, top: &Path) -> Option<PathBuf> {
    let state = run.ancestors().nth(4)?.strip_prefix(top).ok()?;
    (!state.as_os_str().is_empty()).then(|| state.to_owned())
}

impl Snapshots {
    /// Begins to watch a working directory. `own` is a file that ralph writes in it.
    pub(crate) async fn open(workspace: &Path, run: &Path, own: Option<&Path>, undo: Undo) -> Self {
        let place = store::place(run);
        store::remove_leftovers(run);
        let _ = RealDisk.directory(&place);
        let own = own.map(|own| own.strip_prefix(workspace).unwrap_or(own).to_owned());
        let state = state_inside(run, workspace);
        let own = OWN.iter().map(PathBuf::from).chain(own).chain(state).collect();
        let limits = Limits { bytes_left: MOST_STORED, notices: Vec::new() };
        let mut snapshots = Self {
            workspace: workspace.to_owned(),
            place,
            stores: 0,
            repositories: Vec::new(),
            plain: None,
            first_plain: Plain::default(),
            own,
            limits,
            new_repositories: BTreeSet::new(),
            told: BTreeSet::new(),
            changed: false,
            began: None,
            history: (undo == Undo::Kept).then(|| History::at(run)),
        };
        let found = match Repository::around(workspace) {
            Some(repository) => snapshots.track(repository).await,
            None => false,
        };
        let first = snapshots.history.as_ref().and_then(|history| history.points().into_iter().next());
        snapshots.began = first.and_then(|point| point.moment.checked().ok()).map(|moment| moment.tree);
        if !found {
            snapshots.plain = Some(snapshots.look_at_files().await.0);
            snapshots.first_plain = snapshots.plain.clone().unwrap_or_default();
        }
        snapshots
    }

    /// What was not looked at, once.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let mut notices = std::mem::take(&mut self.limits.notices);
        notices.retain(|notice| self.told.insert(notice.clone()));
        if notices.len() > 5 {
            let more = notices.len() - 4;
            notices.truncate(4);
            notices.push(format!("{more} more files or directories are not watched, or not in diffs"));
        }
        notices
    }

    /// Files that were not committed at the start.
    pub(crate) fn uncommitted(&self) -> usize {
        self.root().map_or(0, |root| root.uncommitted)
    }

    /// One number for everything as it is.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for tracked in &self.repositories {
            (&tracked.repository.top, &tracked.head.commit, &tracked.now.tree, &tracked.now.apart).hash(&mut hasher);
        }
        self.plain.as_ref().map(|plain| &plain.files).hash(&mut hasher);
        hasher.finish()
    }

    /// Keeps the state after an iteration for `ralph undo`; 0 is before the first one.
    pub(crate) async fn keep(&mut self, iteration: u32) {
        let Self { history: Some(history), repositories, workspace, limits, .. } = self else { return };
        let Some(root) = root(repositories, workspace) else { return };
        if let Err(error) = history.keep(iteration, root).await {
            limits.notices.push(format!("`ralph undo` cannot go back to iteration {iteration}: {error}"));
        }
    }

    /// Commits what the last look found uncommitted in the repository of the working directory, and looks again.
    pub(crate) async fn commit(
        &mut self,
        message: &str,
        reason_against: impl Fn(&Path, &[u8]) -> Option<String>,
    ) -> Result<Committed, GitError> {
        let Some(root) = self.root() else { return Ok(Committed::default()) };
        let writer = Writer::open(root.repository.clone())?.reading(root.store.objects());
        let committed = writer.commit(&root.now.tree, message, reason_against).await?;
        if committed.commit.is_some()
            && let Some(root) = self.repositories.first_mut()
        {
            root.see_head().await?;
        }
        Ok(committed)
    }

    /// Looks again, and says what is different since the last look.
    pub(crate) async fn take(&mut self, by: By, patches: bool, effort: Effort) -> Change {
        let mut change = Change::default();
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        let (mut moved, mut unseen) = (false, false);
        let mut patch = Some(String::new()).filter(|_| patches && by == By::Agent);
        let had_root = self.plain.is_none();
        if !had_root && let Some(repository) = Repository::around(&self.workspace) {
            moved |= self.track(repository).await;
        }
        let mut index = 0;
        while index < self.repositories.len() {
            let top = self.repositories[index].repository.top.clone();
            if (index > 0 || !had_root) && Repository::at(&top).is_none() {
                self.repositories.remove(index);
                // Its files belong to the repository around it now.
                self.repositories.iter_mut().for_each(Tracked::look_at_everything);
                files.insert(self.shown(&top, Path::new("")));
                moved = true;
                continue;
            }
            let tracked = &mut self.repositories[index];
            let look = match tracked.look(effort, &mut self.limits).await {
                Ok(look) => look,
                Err(error) => {
                    self.limits.notices.push(format!("cannot see changes in `{}`: {error}", top.display()));
                    unseen = true;
                    index += 1;
                    continue;
                }
            };
            let tracked = &self.repositories[index];
            moved |= look.before != tracked.now;
            files.extend(look.files.iter().map(|path| self.shown(&top, path)));
            if index == 0 && had_root {
                change.head_before.clone_from(&look.head_before.commit);
                change.head_after.clone_from(&tracked.head.commit);
                change.branch.clone_from(&tracked.head.branch);
            }
            if look.head_before.commit != tracked.head.commit {
                moved = true;
                let (commits, committed) = tracked.commits(&look.head_before).await;
                change.commits.extend(commits);
                files.extend(committed.iter().map(|path| self.shown(&top, path)));
            }
            if look.before.tree != tracked.now.tree && patch.is_some() {
                match tracked.patch(&look, &self.below(tracked)).await {
                    Ok(text) => patch = patch.map(|patch| patch + &text),
                    Err(error) => {
                        self.limits.notices.push(format!("no diff of this iteration: {error}"));
                        patch = None;
                    }
                }
            }
            if by == By::Agent {
                let tracked = &mut self.repositories[index];
                tracked.last.clone_from(&tracked.now.tree);
            }
            for nested in look.nested {
                if !self.is_tracked(&nested)
                    && let Some(repository) = Repository::at(&nested)
                    && self.track(repository).await
                {
                    let name = self.shown(&nested, Path::new(""));
                    self.new_repositories.insert(name.clone());
                    files.insert(name);
                    moved = true;
                }
            }
            index += 1;
        }
        if let Some(before) = self.plain.take() {
            let (now, more) = self.look_at_files().await;
            moved |= more;
            files.extend(now.since(&before).cloned());
            unseen |= !now.seen || !before.seen;
            self.plain = self.root().is_none().then_some(now);
        }
        moved |= !files.is_empty();
        self.changed |= moved && by == By::Agent;
        change.moved = if moved || !unseen { Some(moved) } else { None };
        change.files = files.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        change.patch = patch;
        change
    }

    /// True when an iteration changed something, even if it was undone later.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// True where there is a diff of the working directory.
    pub(crate) fn has_repository(&self) -> bool {
        self.root().is_some()
    }

    /// True when the patch of the whole run also has what was changed before the run was resumed.
    pub(crate) fn knows_start(&self) -> bool {
        self.began.is_some() && self.has_repository()
    }

    /// Everything that the iterations changed, from the start of the run to the last one of them, also when it was resumed since.
    /// Repositories inside the working directory are compared with how they were when the run was last resumed.
    pub(crate) async fn whole_patch(&self) -> Option<String> {
        let mut patch = String::new();
        for (index, tracked) in self.repositories.iter().enumerate() {
            let began = self.began.as_ref().filter(|_| index == 0 && self.has_repository());
            let first = began.unwrap_or(&tracked.first.tree);
            if *first != tracked.last {
                patch += &tracked.store.patch(first, &tracked.last, &self.below(tracked)).await.ok()?;
            }
        }
        Some(patch)
    }

    /// Files that are not as they were at the start, by content.
    pub(crate) async fn since_start(&self) -> Result<BTreeMap<String, Difference>, GitError> {
        let mut found = BTreeMap::new();
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        for tracked in &self.repositories {
            for (path, difference) in tracked.since_first().await? {
                found.insert(text(self.shown(&tracked.repository.top, &path)), difference);
            }
        }
        // All of a repository that was made since then is new, whatever it holds.
        for name in &self.new_repositories {
            let difference = Difference { before: None, now: Some("a new repository".to_owned()) };
            found.insert(text(name.clone()), difference);
        }
        if let Some(now) = &self.plain {
            let content = |plain: &Plain, path: &PathBuf| plain.files.get(path).map(u64::to_string);
            let difference = |path| Difference { before: content(&self.first_plain, path), now: content(now, path) };
            found.extend(now.since(&self.first_plain).map(|path| (text(path.clone()), difference(path))));
        }
        Ok(found)
    }

    /// Takes care that [`Self::since_start`] also names ignore rules that hide themselves.
    pub(crate) async fn guard(&mut self) {
        for tracked in &mut self.repositories {
            if let Err(error) = tracked.guard().await {
                self.limits.notices.push(format!("ignored files are not checked for `allowed_paths`: {error}"));
            }
        }
    }

    /// What is in a file, in the words of [`Self::since_start`].
    pub(crate) async fn content(&self, path: &str) -> Option<String> {
        let full = self.workspace.join(path);
        let inside = |tracked: &&Tracked| full.starts_with(&tracked.repository.top);
        let innermost =
            self.repositories.iter().filter(inside).max_by_key(|tracked| tracked.repository.top.as_os_str().len());
        match innermost {
            Some(tracked) => tracked.content(full.strip_prefix(&tracked.repository.top).ok()?).await,
            None => self.plain.as_ref()?.files.get(Path::new(path)).map(u64::to_string),
        }
    }

    fn root(&self) -> Option<&Tracked> {
        root(&self.repositories, &self.workspace)
    }

    fn is_tracked(&self, top: &Path) -> bool {
        self.repositories.iter().any(|tracked| tracked.repository.top == top)
    }

    /// Begins to watch a repository and those inside it. False when nothing can be seen of it.
    async fn track(&mut self, repository: Repository) -> bool {
        let mut waiting = vec![repository];
        let mut first = true;
        while let Some(repository) = waiting.pop() {
            let top = repository.top.clone();
            if self.is_tracked(&top) {
                continue;
            }
            if self.repositories.len() >= MOST_REPOSITORIES {
                self.limits.notices.push(format!("not watched: `{}`: too many repositories", top.display()));
                break;
            }
            self.stores += 1;
            let directory = self.place.join(self.stores.to_string());
            // Seen from the working directory, or, in a repository inside it, from that one's top.
            let from = self.workspace.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
            let skipped = SKIPPED.map(|name| from.join(name));
            let own = self.own.iter().map(|path| from.join(path)).collect();
            // Only the repository of the working directory can be put back.
            let is_root = self.workspace.starts_with(&top);
            let objects = self.history.as_ref().filter(|_| is_root).and_then(History::objects);
            match Tracked::open(repository, directory, objects, &skipped, own, &mut self.limits).await {
                Ok((tracked, nested)) => {
                    // The repository of the working directory comes first.
                    let at = if self.workspace.starts_with(&top) { 0 } else { self.repositories.len() };
                    self.repositories.insert(at, tracked);
                    waiting.extend(nested.iter().filter_map(|path| Repository::at(path)));
                }
                Err(error) => {
                    self.limits.notices.push(format!("cannot see commits and diffs in `{}`: {error}", top.display()));
                    if first {
                        return false;
                    }
                }
            }
            first = false;
        }
        true
    }

    /// The files outside of repositories; true when a new repository was found.
    async fn look_at_files(&mut self) -> (Plain, bool) {
        let mut found = false;
        let entries = std::fs::read_dir(&self.workspace).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        below.sort();
        for repository in below.iter().filter_map(|path| Repository::at(path)) {
            found |= !self.is_tracked(&repository.top) && self.track(repository).await;
        }
        let skipped = |path: &Path| {
            let ours =
                self.own.iter().any(|own| path.starts_with(own)) || SKIPPED.iter().any(|name| path.starts_with(name));
            ours || path.ends_with(".git") || self.is_tracked(&self.workspace.join(path))
        };
        let plain = Plain::look(&self.workspace, skipped);
        if plain.cut {
            self.limits.notices.push(format!("only {MOST_FILES} files of this directory are watched: there are more"));
        }
        (plain, found)
    }

    /// A path as it is seen from the working directory; what is outside of that keeps its full name.
    fn shown(&self, top: &Path, path: &Path) -> PathBuf {
        let full = top.join(path);
        full.strip_prefix(&self.workspace).map_or_else(|_| full.clone(), Path::to_owned)
    }

    /// What is before the names of a repository inside the working directory.
    fn below(&self, tracked: &Tracked) -> String {
        let top = &tracked.repository.top;
        let outer = self.root().map_or(self.workspace.as_path(), |root| &root.repository.top);
        match top.strip_prefix(outer) {
            Ok(below) if !below.as_os_str().is_empty() => format!("{}/", below.display()),
            _ => String::new(),
        }
    }
}

/// The repository of the working directory.
fn root<'a>(repositories: &'a [Tracked], workspace: &Path) -> Option<&'a Tracked> {
    repositories.first().filter(|first| workspace.starts_with(&first.repository.top))
}
