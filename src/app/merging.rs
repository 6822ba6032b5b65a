//! `ralph merge`, and what `merge:` asks for after a completed run. Each step can be repeated, so that a merge that was interrupted is
//! finished by the same command.

use std::path::{Path, PathBuf};

use crate::app::execute::LockedWorkspace;
use crate::app::find::Here;
use crate::app::integration::{Integrated, Integration};
use crate::app::placing::{failed, fill_worktree};
use crate::app::saved_plan::SavedPlan;
use crate::app::{pull_request, sandbox};
use crate::cli::place::MergeRun;
use crate::config::{Merge, Settings};
use crate::error::{UserError, io_reason};
use crate::git::{GitError, Repository, Shape, Try, Writer};
use crate::journal::place::{Place, PlaceState};
use crate::journal::{Outcome, RunDirectory};
use crate::plural::plural;
use crate::process::{runtime, wall};
use crate::redact::Redactor;
use crate::run::prompt::title;
use crate::ui::history::RunDetails;
use crate::ui::{harmless, out};

/// A run with a branch of its own.
pub(crate) struct Branched {
    pub here: Here,
    pub run: RunDirectory,
    pub place: Place,
    pub writer: Writer,
}

impl Branched {
    /// Finds it; an error when it works in place, is running, or its repository is gone.
    pub(crate) fn find(id: Option<&str>) -> Result<Self, UserError> {
        let (here, run) = Here::run(id)?;
        let Some(place) = run.place() else {
            return Err(UserError::usage(format!("the run `{}` has no branch of its own", run.id)).hint(
                "`ralph run --branch` or `--worktree` makes one; `ralph undo` takes back a run that worked in place",
            ));
        };
        if here.is_running(&run) {
            return Err(UserError::usage(format!("the run `{}` is active", run.id))
                .hint("wait for it, or stop it with `ralph stop`"));
        }
        let repository = Repository::at(&place.repository)
            .ok_or_else(|| UserError::usage(format!("the repository `{}` is gone", place.repository.display())))?;
        let writer = Writer::open(repository).map_err(|error| failed("cannot use the repository", &error))?;
        Ok(Self { here, run, place, writer })
    }

    /// Keeps other runs and commands out of its working directory.
    pub(crate) fn lock(&self) -> Result<Option<LockedWorkspace>, UserError> {
        let store = self.here.store.clone();
        store.workspace().is_dir().then(|| LockedWorkspace::take(store)).transpose()
    }

    pub(crate) fn save(&self) -> Result<(), UserError> {
        self.run.set_place(&self.place).map_err(|error| {
            UserError::failed(format!("cannot write to `{}`: {}", self.run.path.display(), io_reason(&error)))
        })
    }

    pub(crate) fn tip(&self) -> Option<String> {
        self.writer.repository.branch(&self.place.branch)
    }

    /// The checkout that has the branch: the worktree, or the repository itself.
    pub(crate) fn checkout(&self) -> PathBuf {
        self.place.worktree.clone().unwrap_or_else(|| self.place.repository.clone())
    }

    /// Uncommitted files where the branch is checked out.
    pub(crate) async fn uncommitted(&self) -> Result<Vec<PathBuf>, UserError> {
        let cannot = |error: GitError| failed("cannot see uncommitted files", &error);
        let Some(checkout) = Repository::at(&self.checkout()) else { return Ok(Vec::new()) };
        let writer = Writer::open(checkout).map_err(cannot)?;
        if writer.head().await.branch.as_deref() != Some(self.place.branch.as_str()) {
            return Ok(Vec::new());
        }
        writer.uncommitted().await.map_err(cannot)
    }
}

/// `ralph merge`.
pub(crate) fn merge(args: &MergeRun) -> Result<u8, UserError> {
    let how = match (args.squash, args.pr) {
        (true, _) => Merge::Squash,
        (false, true) => Merge::Pr,
        (false, false) => Merge::None,
    };
    let completed = if args.force { Completed::OrNot } else { Completed::Only };
    merge_run(args.which.id(), how, completed)
}

/// Which runs may be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    Only,
    OrNot,
}

/// Merges the branch of a run. `None`: as the settings of the run say.
pub(crate) fn merge_run(id: Option<&str>, how: Merge, completed: Completed) -> Result<u8, UserError> {
    let mut branched = Branched::find(id)?;
    let (file, source) = SavedPlan::read(&branched.run, branched.here.store.workspace())?.checked_by();
    let settings = file.layer.settle();
    let how = if how == Merge::None { settings.merge.value } else { how };
    let details = branched.here.details(&branched.run)?;
    match branched.place.state {
        PlaceState::Merged => return say(&format!("the run `{}` is merged already\n", branched.run.id)),
        PlaceState::Discarded => {
            return Err(UserError::usage(format!("the run `{}` was discarded", branched.run.id)));
        }
        PlaceState::Open => {}
    }
    if completed == Completed::Only && details.summary.outcome() != Some(Outcome::Complete) {
        return Err(UserError::usage(format!("the run `{}` did not complete", branched.run.id))
            .hint("continue it with `ralph resume`, or merge it as it is with `--force`"));
    }
    let _lock = branched.lock()?;
    let kept = branched.run.kept_goal();
    let goal = kept.unwrap_or_else(|| source.read().unwrap_or_else(|_| details.words.clone()));
    runtime()?.block_on(perform(&mut branched, &settings, how, &goal, &details))
}

async fn perform(
    branched: &mut Branched,
    settings: &Settings,
    how: Merge,
    goal: &str,
    details: &RunDetails,
) -> Result<u8, UserError> {
    let cannot = |error: GitError| failed("cannot merge", &error);
    let id = branched.run.id.clone();
    let Some(base) = branched.place.base.clone() else {
        return Err(UserError::usage(format!("the run `{id}` did not start on a branch"))
            .hint(format!("merge it yourself: `git merge {}`", branched.place.branch)));
    };
    let earlier = branched.place.merging.clone();
    if let (Some(result), Some(now)) = (&earlier, branched.writer.repository.branch(&base))
        && branched.writer.is_ancestor(result, &now).await.map_err(cannot)?
    {
        // It was interrupted behind the fast-forward.
        return finish(branched, &base, &result.clone()).await;
    }
    let Some(tip) = branched.tip() else {
        return Err(UserError::usage(format!("the branch `{}` of the run is gone", branched.place.branch)));
    };
    let uncommitted = branched.uncommitted().await?;
    if !uncommitted.is_empty() && earlier.is_none() {
        return Err(UserError::usage(format!(
            "{} in `{}` would not be merged: {}",
            plural(uncommitted.len() as u64, "uncommitted file"),
            branched.checkout().display(),
            names(&uncommitted)
        ))
        .hint("commit or remove them; with `commit: iteration` in `ralph.yml` ralph commits after each iteration"));
    }
    if how == Merge::Pr {
        return pull_request::open(branched, &base, &tip, goal, details).await;
    }
    let shape = if how == Merge::Squash {
        Shape::Squashed(squash_message(branched, &base, &tip, goal).await.map_err(cannot)?)
    } else {
        Shape::Commits
    };
    let top = branched.checkout();
    let below = branched.here.store.workspace().strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
    let scratch = scratch(branched);
    if let Some(parent) = scratch.parent() {
        let _ = std::fs::create_dir_all(parent);
    }
    let workspace = branched.here.store.workspace().to_owned();
    for check in settings.verify.value.checks.iter().filter(|check| check.required) {
        out::tell(format_args!("check: `{}` (from {})", harmless(&check.command), settings.verify.origin));
    }
    if workspace.is_dir() {
        sandbox::around(settings, &workspace)?;
    }
    let integration = Integration {
        writer: &branched.writer,
        base: &base,
        tip: &tip,
        shape,
        checks: &settings.verify.value.checks,
        workspace: workspace.is_dir().then_some(workspace.as_path()),
        scratch,
        below: below.clone(),
        tried: if earlier.is_some() { Try::Again } else { Try::First },
    };
    let run = branched.run.clone();
    let place = branched.place.clone();
    let before = |result: &str| {
        let place = Place { merging: Some(result.to_owned()), ..place.clone() };
        run.set_place(&place).map_err(|error| UserError::failed(format!("cannot merge: {}", io_reason(&error))))
    };
    let repository = branched.place.repository.clone();
    let prepare = async |worktree: &Path| fill_worktree(settings, &repository, worktree, &worktree.join(&below)).await;
    let integrated = integration.run(before, prepare).await;
    wall::lower();
    let integrated = integrated?;
    match integrated {
        Integrated::Merged { commit, checks } => {
            for check in &checks {
                let _ = out::print(&format!("passed: `{}`\n", harmless(&check.name)));
            }
            branched.place.merging = Some(commit.clone());
            branched.save()?;
            finish(branched, &base, &commit).await
        }
        other => Err(refused(branched, &base, other)),
    }
}

/// Why nothing was merged.
fn refused(branched: &Branched, base: &str, integrated: Integrated) -> UserError {
    let branch = &branched.place.branch;
    match integrated {
        Integrated::Conflict { commit, files } => {
            let short = commit.get(..7).unwrap_or(&commit);
            UserError::failed(format!(
                "conflict: commit {short} of `{branch}` does not apply on `{base}`: {}; nothing was changed",
                files.iter().take(5).map(|file| format!("`{}`", harmless(file))).collect::<Vec<_>>().join(", ")
            ))
            .hint(format!(
                "rebase it yourself in `{}`: `git rebase {base}`, then `ralph merge` again",
                branched.checkout().display()
            ))
        }
        Integrated::HasMerges => {
            UserError::failed(format!("`{branch}` has merge commits, which cannot be rebased; nothing was changed"))
                .hint("make one commit of it: `ralph merge --squash`")
        }
        Integrated::Red { checks } => {
            let failed = checks.iter().find(|check| !check.passed);
            let (name, ended, tail) = failed.map_or(("", "", ""), |it| (&*it.name, &*it.ended, &*it.tail));
            let tail: Vec<&str> = tail.lines().collect();
            let tail = tail[tail.len().saturating_sub(20)..].join("\n");
            let tail = Redactor::of_process().text(&tail).unwrap_or(tail);
            UserError::failed(format!(
                "check failed on the result: `{name}`: {ended}; nothing was changed\n{}",
                tail.lines().map(harmless).collect::<Vec<_>>().join("\n")
            ))
        }
        Integrated::InTheWay { checkout, refused } => UserError::failed(format!(
            "cannot update the checkout of `{base}` in `{}`: {refused}; nothing was changed",
            checkout.display()
        ))
        .hint("commit or stash them there, then `ralph merge` again"),
        Integrated::Merged { .. } => UserError::failed("merged"),
    }
}

/// Where a worktree for the checks is made.
fn scratch(branched: &Branched) -> PathBuf {
    match &branched.place.worktree {
        Some(worktree) => {
            worktree.with_file_name(format!("{}.merge", worktree.file_name().unwrap_or_default().to_string_lossy()))
        }
        None => branched.run.path.join("merge"),
    }
}

/// The base branch has the work: worktree and branch go, and a checkout of the branch goes to the base branch.
async fn finish(branched: &mut Branched, base: &str, result: &str) -> Result<u8, UserError> {
    let cannot = |error: GitError| failed("merged, but cannot clean up", &error);
    let _ = branched.writer.remove_worktree(&scratch(branched));
    let mut on_base = true;
    if let Some(worktree) = branched.place.worktree.clone() {
        branched.writer.remove_worktree(&worktree).map_err(cannot)?;
    } else if branched.writer.head().await.branch.as_deref() == Some(branched.place.branch.as_str()) {
        on_base = branched.writer.checkout_of(base).await.is_none();
        if let (true, Some(tip)) = (on_base, branched.tip()) {
            branched.writer.advance(&tip, result, Try::Again).await.map_err(|error| {
                UserError::failed(format!("merged, but cannot check out `{base}`: {error}"))
                    .hint(format!("run `ralph merge {}` again", branched.run.id))
            })?;
            branched.writer.set_branch(base, "merge a run").await.map_err(cannot)?;
        }
    }
    if let (true, Some(tip)) = (on_base, branched.tip()) {
        let name = format!("refs/heads/{}", branched.place.branch);
        branched.writer.update_ref(&name, None, Some(&tip), "").await.map_err(cannot)?;
    }
    branched.place.state = PlaceState::Merged;
    branched.save()?;
    let short = result.get(..7).unwrap_or(result);
    say(&format!("merged `{}` into `{base}`, now at {short}\n", branched.place.branch))
}

/// The goal, what was done, and the run.
async fn squash_message(branched: &Branched, base: &str, tip: &str, goal: &str) -> Result<String, GitError> {
    let onto = branched.writer.repository.branch(base).unwrap_or_else(|| branched.place.base_commit.clone());
    let commits = branched.writer.commits_between(&onto, tip).await?;
    let body: String =
        commits.iter().rev().filter_map(|line| line.split_once(' ')).flat_map(|(_, it)| ["- ", it, "\n"]).collect();
    let text = format!("{}\n\n{body}\nRalph-Run: {}\n", title(goal), branched.run.id);
    Ok(Redactor::of_process().text(&text).unwrap_or(text))
}

pub(crate) fn names(paths: &[PathBuf]) -> String {
    let shown: Vec<String> =
        paths.iter().take(5).map(|path| format!("`{}`", harmless(&path.to_string_lossy()))).collect();
    let more = if paths.len() > 5 { format!(" and {} more", paths.len() - 5) } else { String::new() };
    shown.join(", ") + &more
}

#[expect(clippy::unnecessary_wraps, reason = "it ends commands")]
pub(crate) fn say(text: &str) -> Result<u8, UserError> {
    let _ = out::print(text);
    Ok(0)
}
