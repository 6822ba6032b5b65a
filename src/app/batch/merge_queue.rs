//! The merge queue: one task at a time is squashed onto the target, checked there, and becomes one commit of it.

use std::path::{Path, PathBuf};

use super::local::Places;
use crate::app::integration::{Integrated, Integration};
use crate::app::placing::fill_worktree;
use crate::batch::state::Start;
use crate::batch::task::Task;
use crate::config::Settings;
use crate::error::UserError;
use crate::git::{GitError, Repository, Shape, Try, Writer};
use crate::journal::place::PlaceState;
use crate::process::wall;
use crate::redact::Redactor;
use crate::run::prompt::title;
use crate::run::verify::Check;

/// What came of it.
pub(crate) enum Merge {
    /// The commit, unless there was nothing to change.
    Merged(Option<String>),
    /// Why, and what the loop of the task is asked to do about it.
    Unmerged { why: String, prompt: String },
    /// Nothing that the task could change.
    Blocked(String),
}

/// Merges the work of a task. `before` records the commit that the target is about to be moved to.
pub(crate) async fn merge(
    start: &Start,
    settings: &Settings,
    places: &Places,
    task: &Task,
    (branch, tip): (&str, &str),
    before: impl Fn(&str) -> Result<(), UserError>,
) -> Result<Merge, UserError> {
    let repository = Repository::at(&start.repository).ok_or_else(|| UserError::failed("the repository is gone"))?;
    let writer = Writer::open(repository).map_err(|error| UserError::failed(format!("cannot merge: {error}")))?;
    let mut checks: Vec<Check> = start.checks.iter().map(check).collect();
    checks.extend(task.verify.iter().map(Check::new));
    let worktree = places.worktree(branch);
    let scratch =
        worktree.with_file_name(format!("{}.merge", worktree.file_name().unwrap_or_default().to_string_lossy()));
    let message = format!("{}\n\nRalph-Task: {}\n", title(&task.title), task.id);
    let message = Redactor::of_process().text(&message).unwrap_or(message);
    let integration = Integration {
        writer: &writer,
        base: &start.target,
        tip,
        shape: Shape::Squashed(message),
        checks: &checks,
        workspace: None,
        scratch,
        below: places.below.clone(),
        tried: Try::Again,
    };
    let prepare = async |top: &Path| fill_worktree(settings, &start.repository, top, &top.join(&places.below)).await;
    let moves = std::cell::Cell::new(false);
    let before = |commit: &str| before(commit).inspect(|()| moves.set(true));
    let integrated = integration.run(before, prepare).await;
    wall::lower();
    let target = &start.target;
    Ok(match integrated? {
        Integrated::Merged { commit, .. } => Merge::Merged(Some(commit).filter(|_| moves.get())),
        Integrated::Conflict { files, .. } => {
            let files = files.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            Merge::Unmerged {
                why: format!("conflict with `{target}` in {files}"),
                prompt: format!(
                    "Your work is committed on the branch `{branch}`, but it conflicts with `{target}`, which has moved on, in these files: {files}.\n\
                     Run `git merge {target}`, resolve the conflicts so that both changes keep their meaning, commit the merge, and make sure that all checks pass."
                ),
            }
        }
        Integrated::HasMerges => Merge::Blocked("its branch has merge commits".to_owned()),
        Integrated::Red { checks } => {
            let failed = checks.iter().find(|check| !check.passed);
            let (name, ended, tail) = failed.map_or(("", "", ""), |it| (&*it.name, &*it.ended, &*it.tail));
            let tail = Redactor::of_process().text(tail).unwrap_or_else(|| tail.to_owned());
            Merge::Unmerged {
                why: format!("check failed on top of `{target}`: `{name}`: {ended}"),
                prompt: format!(
                    "Your work passed alone, but on top of `{target}`, which has moved on, the check `{name}` fails ({ended}).\n\
                     Run `git merge {target}`, fix this failure, and commit.\n\nOutput of the check:\n\n{tail}"
                ),
            }
        }
        Integrated::InTheWay { checkout, refused } => {
            Merge::Blocked(format!("cannot update the checkout of `{target}` in `{}`: {refused}", checkout.display()))
        }
    })
}

fn check((command, directory, seconds): &(String, Option<PathBuf>, u64)) -> Check {
    Check { directory: directory.clone(), timeout: std::time::Duration::from_secs(*seconds), ..Check::new(command) }
}

/// Whether a branch has a commit already.
pub(crate) async fn has(start: &Start, commit: &str) -> bool {
    let Some(repository) = Repository::at(&start.repository) else { return false };
    let Some(now) = repository.branch(&start.target) else { return false };
    match Writer::open(repository) {
        Ok(writer) => writer.is_ancestor(commit, &now).await.unwrap_or(false),
        Err(_) => false,
    }
}

/// Removes the worktree and the branch of a merged task. Can be repeated.
pub(crate) async fn clean(start: &Start, places: &Places, branch: &str) -> Result<(), GitError> {
    let worktree = places.worktree(branch);
    let Some(repository) = Repository::at(&start.repository) else { return Ok(()) };
    let tip = repository.branch(branch);
    if tip.is_none() && !worktree.exists() {
        return Ok(());
    }
    let writer = Writer::open(repository)?;
    if let Some(run) = places.run(branch)
        && let Some(mut place) = run.place()
    {
        place.state = PlaceState::Merged;
        place.base = Some(start.target.clone());
        let _ = run.set_place(&place);
    }
    writer.remove_worktree(&worktree)?;
    match tip {
        Some(tip) => writer.update_ref(&format!("refs/heads/{branch}"), None, Some(&tip), "").await,
        None => Ok(()),
    }
}
