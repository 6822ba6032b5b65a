//! Where a run works, when that is a branch or a worktree of its own, and what has become of it. The file is beside the journal, and is
//! replaced in one step, so that an interrupted merge or discard can be finished.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::disk::{Disk as _, RealDisk};
use super::store::RunDirectory;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The top of the checkout in which the run was started.
    pub(crate) repository: PathBuf,
    pub(crate) branch: String,
    /// The branch that was checked out there; `None` when HEAD was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    pub(crate) base_commit: String,
    /// The top of the worktree; `None` for a branch in the checkout itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<PathBuf>,
    /// The working directory in the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<PathBuf>,
    /// The address of `origin` before the agent could change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<String>,
    /// What the base branch is about to be moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merging: Option<String>,
    /// A discard has begun: what it would lose was accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) discarding: bool,
    #[serde(default)]
    pub(crate) state: PlaceState,
    /// The address of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pull_request: Option<String>,
}

/// What has become of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlaceState {
    #[default]
    Open,
    Merged,
    Discarded,
}

impl RunDirectory {
    fn place_file(&self) -> PathBuf {
        self.path.join("place.json")
    }

    /// Where the run works; `None` for one that works in place.
    pub(crate) fn place(&self) -> Option<Place> {
        serde_json::from_slice(&std::fs::read(self.place_file()).ok()?).ok()
    }

    pub(crate) fn set_place(&self, place: &Place) -> io::Result<()> {
        RealDisk.replace(&self.place_file(), &serde_json::to_vec_pretty(place)?)
    }
}
