//! Keeps the working directory of each iteration as a git tree, so that work nobody committed can be shown as a difference
//! later. The objects lie in the run's own directory: the user's index, objects and refs are never touched.

use std::path::{Path, PathBuf};

use super::progress::git_with;
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};

/// Work beyond this is not kept; its names are in the receipt all the same.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Where the trees of a run are kept.
#[derive(Debug)]
pub struct Shelf {
    /// The repository of the working directory.
    top: PathBuf,
    environment: Vec<(String, String)>,
    index: PathBuf,
}

impl Shelf {
    /// The shelf of a run; `None` where there is no repository.
    pub async fn of(workspace: &Path, run: &RunDirectory) -> Option<Self> {
        let ask =
            ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "objects", "--git-path", "index"];
        let said = String::from_utf8(git_with(workspace, &ask, &[]).await?).ok()?;
        let [top, objects, index] = said.lines().collect::<Vec<_>>().try_into().ok()?;
        let directory = run.objects();
        RealDisk.directory(&directory).ok()?;
        let ours = run.path.join("index");
        // What git knows about unchanged files saves reading them all.
        if !ours.exists() {
            let _ = std::fs::copy(index, &ours);
        }
        let environment = environment(&directory, objects, Some(&ours));
        Some(Self { top: top.into(), environment, index: ours })
    }

    /// Keeps everything as it is now and gives the tree's name; `None` when that cannot be done, or is too much.
    pub async fn keep(&self, changed: impl Iterator<Item = PathBuf>) -> Option<String> {
        let sizes = changed.filter_map(|path| std::fs::symlink_metadata(path).ok()).map(|metadata| metadata.len());
        if sizes.sum::<u64>() > MOST_BYTES {
            return None;
        }
        self.git(&["add", "--all", "--ignore-errors", "."]).await?;
        let tree = String::from_utf8(self.git(&["write-tree"]).await?).ok()?;
        Some(tree.trim().to_owned())
    }

    async fn git(&self, args: &[&str]) -> Option<Vec<u8>> {
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        git_with(&self.top, args, &environment).await
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // Only good for this run of the program: files may be touched before the next.
        let _ = std::fs::remove_file(&self.index);
    }
}

/// What lets git see the trees of a run beside the repository's own objects.
pub fn environment(kept: &Path, objects: &str, index: Option<&Path>) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut set = vec![
        ("GIT_OBJECT_DIRECTORY".to_owned(), text(kept)),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), objects.to_owned()),
    ];
    set.extend(index.map(|index| ("GIT_INDEX_FILE".to_owned(), text(index))));
    set
}
