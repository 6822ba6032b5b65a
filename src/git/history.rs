//! The states of a working directory before a run and after each of its iterations. The objects are in the directory of the run, and go
//! with it; the repository is not written to.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::command::GitError;
use super::files;
use super::moment::Moment;
use super::objects::hex;
use super::repository::Repository;
use super::snapshots::{MOST_STORED, own_files, state_inside};
use super::store::Store;
use super::tracked::{Limits, Tracked};
use crate::journal::disk::{Disk as _, RealDisk};

/// The directory of a run that holds them.
const DIRECTORY: &str = "undo";
const POINTS: &str = "points.jsonl";
const MOST_INDEX: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct History {
    directory: PathBuf,
    /// The index that was last kept: what its file looked like, and its blob.
    index: Option<(u64, String)>,
}

/// The state after an iteration; 0 is before the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) iteration: u32,
    #[serde(flatten)]
    pub(crate) moment: Moment,
}

impl History {
    /// The history of a run.
    pub(crate) fn at(run: &Path) -> Self {
        Self { directory: run.join(DIRECTORY), index: None }
    }

    /// Where its objects are; `None` when they cannot be kept.
    pub(super) fn objects(&self) -> Option<PathBuf> {
        let objects = self.directory.join("objects");
        RealDisk.directory(&objects).ok()?;
        Some(objects)
    }

    /// The place of its objects, for reading.
    pub(crate) fn place_of_objects(&self) -> PathBuf {
        self.directory.join("objects")
    }

    pub(super) async fn keep(&mut self, iteration: u32, tracked: &Tracked) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError::Failed(error.to_string());
        // What was last seen is old, and git may wait forever.
        if tracked.is_unseen() {
            return Err(GitError::Failed("the files could not be read".to_owned()));
        }
        let index = self.keep_index(tracked).await?;
        let apart = tracked.now.apart.keys().cloned().collect();
        let (head, branch) = (tracked.head.commit.clone(), tracked.head.branch.clone());
        // An agent may have left the branch on which the run began; an undo moves that one.
        let first = self.points().into_iter().next().and_then(|point| point.moment.branch);
        let other = first.filter(|first| branch.as_ref() != Some(first));
        let other = other.and_then(|name| tracked.repository.branch(&name).map(|commit| (name, commit)));
        let moment = Moment { tree: tracked.now.tree.clone(), head, branch, index, other, apart };
        let mut line = serde_json::to_vec(&Point { iteration, moment }).map_err(|error| failed(error.into()))?;
        // A line that was cut off by a power cut must not take the next one with it.
        line.insert(0, b'\n');
        line.push(b'\n');
        let path = self.directory.join(POINTS);
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(&line)).map_err(failed)
    }

    /// Stores the repository's index, unless it is the one that was stored last, and gives its blob.
    async fn keep_index(&mut self, tracked: &Tracked) -> Result<Option<String>, GitError> {
        let path = tracked.repository.directory.join("index");
        let print = std::fs::symlink_metadata(&path).ok().map(|metadata| files::stat_print(&metadata));
        if let (Some(print), Some((last, blob))) = (print, &self.index)
            && print == *last
        {
            return Ok(Some(blob.clone()));
        }
        let Some(bytes) = files::read(&path, MOST_INDEX) else { return Ok(None) };
        let blob = if let Ok(Some(id)) = tracked.objects().write("blob", &bytes) {
            hex(&id)
        } else {
            let printed = tracked.store.git(&["hash-object", "-w", "--stdin"], bytes).await?;
            String::from_utf8_lossy(&printed.bytes).trim().to_owned()
        };
        self.index = print.map(|print| (print, blob.clone()));
        Ok(Some(blob))
    }

    /// What changed in the working directory since the last state, as a patch; `None` when no state was kept. New objects
    /// go to the directory of the run, so the repository is not written to.
    pub(crate) async fn since_last(&self, workspace: &Path, run: &Path) -> Result<Option<String>, GitError> {
        let (Some(last), Some(repository)) = (self.points().pop(), Repository::around(workspace)) else {
            return Ok(None);
        };
        let before = last.moment.checked()?.tree;
        let failed = |error: std::io::Error| GitError::Failed(error.to_string());
        let temporary = Store::temporary(&repository).map_err(failed)?;
        let (skipped, mut own) = own_files(workspace, &repository.top);
        own.extend(state_inside(run, &repository.top));
        let mut limits = Limits { bytes_left: MOST_STORED, notices: Vec::new() };
        let place = temporary.path().join("now");
        let (tracked, _) = Tracked::open(repository, place, self.objects(), &skipped, own, &mut limits).await?;
        tracked.store.patch(&before, &tracked.now.tree, "").await.map(Some)
    }

    /// All states, oldest first. An iteration that was repeated is there more than once.
    pub(crate) fn points(&self) -> Vec<Point> {
        let bytes = files::read(&self.directory.join(POINTS), 64 * 1024 * 1024).unwrap_or_default();
        let lines = bytes.split(|&byte| byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice::<Point>(line).ok()).collect()
    }
}
