//! `ralph discard`: removes the branch and the worktree of a run, after showing what would be lost.

use crate::app::merging::{Branched, names, say};
use crate::app::placing::failed;
use crate::cli::place::Discard;
use crate::error::UserError;
use crate::git::GitError;
use crate::journal::place::PlaceState;
use crate::plural::plural;
use crate::process::runtime;
use crate::ui::{harmless, out};

pub(crate) fn discard(args: &Discard) -> Result<u8, UserError> {
    let mut branched = Branched::find(args.which.id())?;
    match branched.place.state {
        PlaceState::Merged => return say(&format!("the run `{}` is merged: nothing to discard\n", branched.run.id)),
        PlaceState::Discarded => return say(&format!("the run `{}` is discarded already\n", branched.run.id)),
        PlaceState::Open => {}
    }
    let lock = branched.lock()?;
    let done = runtime()?.block_on(perform(&mut branched, args.force));
    drop(lock);
    done
}

async fn perform(branched: &mut Branched, force: bool) -> Result<u8, UserError> {
    let cannot = |error: GitError| failed("cannot discard the run", &error);
    let tip = branched.tip();
    let place = branched.place.clone();
    if !place.discarding {
        let base = place.base.as_deref().and_then(|base| branched.writer.repository.branch(base));
        let base = base.unwrap_or_else(|| place.base_commit.clone());
        let commits = match &tip {
            Some(tip) => branched.writer.commits_between(&base, tip).await.map_err(cannot)?,
            None => Vec::new(),
        };
        let files = branched.uncommitted().await?;
        for commit in &commits {
            let _ = out::print(&format!("not merged: {}\n", harmless(commit)));
        }
        for file in files.iter().take(20) {
            let _ = out::print(&format!("not committed: {}\n", harmless(&file.to_string_lossy())));
        }
        if !(force || commits.is_empty() && files.is_empty()) {
            let mut lost = Vec::new();
            if !commits.is_empty() {
                lost.push(plural(commits.len() as u64, "commit"));
            }
            if !files.is_empty() {
                lost.push(format!("{} ({})", plural(files.len() as u64, "uncommitted file"), names(&files)));
            }
            return Err(UserError::usage(format!("this would lose {}; nothing was removed", lost.join(" and "))).hint(
                format!("merge it: `ralph merge {0}`, or remove it: `ralph discard {0} --force`", branched.run.id),
            ));
        }
        branched.place.discarding = true;
        branched.save()?;
    }
    match &place.worktree {
        Some(worktree) => branched.writer.remove_worktree(worktree).map_err(cannot)?,
        None => leave_branch(branched).await?,
    }
    if let Some(tip) = &tip {
        let name = format!("refs/heads/{}", place.branch);
        branched.writer.update_ref(&name, None, Some(tip), "").await.map_err(cannot)?;
        let _ = out::print(&format!("removed branch `{}` (was {})\n", place.branch, tip.get(..7).unwrap_or(tip)));
    }
    branched.place.state = PlaceState::Discarded;
    branched.save()?;
    say(&format!("discarded the run `{}`\n", branched.run.id))
}

/// The checkout goes back to the base branch. What is not committed is kept for `git`, under `refs/ralph/undo/`.
async fn leave_branch(branched: &Branched) -> Result<(), UserError> {
    let cannot = |error: GitError| failed("cannot leave the branch", &error);
    let (writer, place) = (&branched.writer, &branched.place);
    if writer.head().await.branch.as_deref() != Some(place.branch.as_str()) {
        // It was interrupted behind the last step, perhaps with the lock still held.
        writer.remove_stale_index_lock();
        return Ok(());
    }
    let base = place.base.as_deref().and_then(|base| Some((base, writer.repository.branch(base)?)));
    let (branch, commit) = base.map_or((None, place.base_commit.clone()), |(name, commit)| (Some(name), commit));
    let now = writer.capture(branched.here.store.workspace()).await.map_err(cannot)?;
    let target = writer.clean_moment(&commit, branch).await.map_err(cannot)?;
    let name = format!("{}/discarded-{}", branched.run.id, jiff::Timestamp::now().as_millisecond());
    writer.save(&now, &name).await.map_err(cannot)?;
    let gone = writer.go_to(&now, &target, "discard a run").await;
    gone.map(drop).map_err(|error| UserError::failed(format!("cannot leave the branch `{}`: {error}", place.branch)))
}
