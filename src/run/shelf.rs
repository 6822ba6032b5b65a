//! What each iteration changed, committed or not, as a difference for looking at it later. Trees of the working directory lie
//! in an object store of the run's own while it goes on: the user's index, objects and refs are never touched, no hook of
//! the repository runs, and only the differences stay, without secrets.

use std::path::{Path, PathBuf};

use super::progress::{IGNORED, git_with};
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};

/// Work beyond this in one iteration is not kept; its names are in the receipt all the same.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Nor is more than this in one run.
const MOST_IN_ALL: u64 = 512 * 1024 * 1024;

/// Where the trees of a run are kept.
#[derive(Debug)]
pub struct Shelf {
    /// The repository of the working directory.
    top: PathBuf,
    environment: Vec<(String, String)>,
    objects: PathBuf,
    index: PathBuf,
    /// Paths that are never kept, as git's `add` takes them.
    except: Vec<String>,
    kept: u64,
    /// The working directory as it was last kept.
    tree: Option<String>,
}

impl Shelf {
    /// The shelf of a run; `None` where there is no repository. `own` is a file that ralph itself writes.
    pub async fn of(workspace: &Path, run: &RunDirectory, own: Option<&Path>) -> Option<Self> {
        let ask =
            ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "objects", "--git-path", "index"];
        let said = String::from_utf8(git_with(workspace, &ask, &[]).await?).ok()?;
        let [top, theirs, their_index] = said.lines().collect::<Vec<_>>().try_into().ok()?;
        let (objects, index) = (run.path.join("objects"), run.path.join("index"));
        // What a killed run has left.
        let _ = std::fs::remove_dir_all(&objects);
        let _ = std::fs::remove_file(&index);
        RealDisk.directory(&objects.join("info")).ok()?;
        std::fs::write(objects.join("info/alternates"), format!("{theirs}\n")).ok()?;
        // What git knows about unchanged files saves reading them all.
        let _ = std::fs::copy(their_index, &index);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let environment =
            vec![("GIT_OBJECT_DIRECTORY".to_owned(), text(&objects)), ("GIT_INDEX_FILE".to_owned(), text(&index))];
        let place = workspace.strip_prefix(top).unwrap_or(Path::new(""));
        let own = own.map(|own| own.strip_prefix(workspace).unwrap_or(own).to_owned());
        let except = IGNORED.iter().map(PathBuf::from).chain(own);
        let except = except.map(|path| format!(":(exclude,top,literal){}", place.join(path).display())).collect();
        Some(Self { top: top.into(), environment, objects, index, except, kept: 0, tree: None })
    }

    /// Keeps everything as it is now, and gives the difference from what was kept before. `None` when one of both is not
    /// known: it could not be kept, or was too much.
    pub async fn keep(&mut self, changed: impl Iterator<Item = PathBuf>) -> Option<Vec<u8>> {
        let sizes = changed.filter_map(|path| std::fs::symlink_metadata(path).ok()).map(|metadata| metadata.len());
        let size: u64 = sizes.sum();
        let before = self.tree.take();
        if size > MOST_BYTES || self.kept + size > MOST_IN_ALL {
            return None;
        }
        self.kept += size;
        // Of a git that did not answer in time.
        let _ = std::fs::remove_file(self.index.with_extension("lock"));
        let mut add = vec!["add", "--all", "--ignore-errors", "--", "."];
        add.extend(self.except.iter().map(String::as_str));
        // What cannot be added, such as a repository without a commit inside this one, is left out.
        let _ = self.git(&add).await;
        let tree = String::from_utf8(self.git(&["write-tree"]).await?).ok()?.trim().to_owned();
        self.tree = Some(tree.clone());
        let before = before?;
        if before == tree {
            return Some(Vec::new());
        }
        let form = ["--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
        self.git(&[&["diff"], &form[..], &[&before, &tree]].concat()).await
    }

    async fn git(&self, args: &[&str]) -> Option<Vec<u8>> {
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // Its files are private, and filters of large files stay out of it.
        let own = ["-c", "core.sharedRepository=0600", "-c", "filter.lfs.clean=", "-c", "filter.lfs.process="];
        let own = [&own[..], &["-c", "filter.lfs.required=false"], args].concat();
        git_with(&self.top, &own, &environment).await
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.objects);
        let _ = std::fs::remove_file(&self.index);
    }
}
