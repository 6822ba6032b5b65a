//! `ralph clean --worktrees`: worktrees of this repository that belong to no run any more, as a killed command leaves them. Their branches
//! stay, so that no commit is lost; one with uncommitted files stays too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::app::clean::Deed;
use crate::app::find;
use crate::app::merging::names;
use crate::app::placing::{failed, worktrees};
use crate::app::working_directory;
use crate::config;
use crate::error::{UserError, io_reason};
use crate::git::{GitError, Repository, Writer};
use crate::journal::place::PlaceState;
use crate::process::runtime;
use crate::ui::harmless;

/// Removes them, or says which they are.
pub(crate) fn sweep(deed: Deed) -> Result<String, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(None, &workspace)?;
    let settings = file.layer.settle();
    let state = find::state(&settings, &workspace)?;
    let repository = Repository::around(&workspace).ok_or_else(|| UserError::usage("this is not a git repository"))?;
    let cannot = |error: GitError| failed("cannot remove worktrees", &error);
    let directory = worktrees(&state, &settings, &repository.top);
    let unlisted = |error: std::io::Error| UserError::failed(format!("cannot list the runs: {}", io_reason(&error)));
    let mut used: BTreeSet<PathBuf> = BTreeSet::new();
    for store in state.stores().map_err(unlisted)? {
        let places = store.runs().unwrap_or_default().into_iter().filter_map(|run| run.place());
        let open = places.filter(|place| place.state == PlaceState::Open).filter_map(|place| place.worktree);
        used.extend(open.map(|path| path.canonicalize().unwrap_or(path)));
    }
    let writer = Writer::open(repository).map_err(cannot)?;
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    let mut text = String::new();
    let runtime = runtime()?;
    for path in found.into_iter().filter(|path| !used.contains(&path.canonicalize().unwrap_or_else(|_| path.clone()))) {
        let shown = harmless(&path.to_string_lossy());
        let checkout = Repository::at(&path).and_then(|checkout| Writer::open(checkout).ok());
        let (branch, files) = match &checkout {
            // Its files were being written when ralph was killed.
            Some(checkout) if checkout.is_half_made() => (None, Vec::new()),
            Some(checkout) => {
                let branch = runtime.block_on(checkout.head()).branch;
                (branch, runtime.block_on(checkout.uncommitted()).map_err(cannot)?)
            }
            None if std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none()) => (None, Vec::new()),
            None => {
                let _ = writeln!(text, "kept {shown}: it is not a worktree");
                continue;
            }
        };
        if !files.is_empty() {
            let _ = writeln!(text, "kept {shown}: uncommitted files: {}", names(&files));
            continue;
        }
        let branch = branch.map(|name| format!(" (branch `{}` stays)", harmless(&name))).unwrap_or_default();
        if deed == Deed::Remove {
            writer.remove_worktree(&path).map_err(cannot)?;
            let _ = writeln!(text, "removed worktree {shown}{branch}");
        } else {
            let _ = writeln!(text, "would remove worktree {shown}{branch}");
        }
    }
    Ok(if text.is_empty() { "no abandoned worktrees\n".to_owned() } else { text })
}
