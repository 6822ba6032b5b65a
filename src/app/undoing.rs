//! `ralph undo`: puts files, index and branch back to how they were before a run or after one of its iterations. The present state is
//! saved in the repository first, so that an undo can be undone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::app::execute::LockedWorkspace;
use crate::app::find::Here;
use crate::app::merging::{names, say};
use crate::app::placing::failed;
use crate::cli::place::Undo;
use crate::error::{UserError, io_reason};
use crate::git::{GitError, History, Moment, Point, Repository, Writer};
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::plural::plural;
use crate::process::runtime;

/// What an undo leaves for the next one, beside the journal.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Undone {
    /// The ref with the state before the last undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redo: Option<String>,
    /// The last one was interrupted if it is still there.
    #[serde(default)]
    unfinished: bool,
    /// Commits that ralph itself has put HEAD on.
    #[serde(default)]
    heads: Vec<String>,
}

impl Undone {
    fn file(run: &RunDirectory) -> PathBuf {
        run.path.join("undone.json")
    }

    fn of(run: &RunDirectory) -> Self {
        let bytes = std::fs::read(Self::file(run)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    fn save(&self, run: &RunDirectory) -> Result<(), UserError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        RealDisk.replace(&Self::file(run), &bytes).map_err(|error| {
            UserError::failed(format!("cannot write to `{}`: {}", run.path.display(), io_reason(&error)))
        })
    }
}

pub(crate) fn undo(args: &Undo) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let workspace = here.store.workspace().to_owned();
    if !workspace.is_dir() {
        let error = UserError::usage(format!("the directory `{}` of the run is gone", workspace.display()));
        return Err(error.hint("the work of a merged run is on its base branch: `git revert` takes commits back there"));
    }
    let details = here.details(&run)?;
    let ended = details.summary.end.is_some();
    let lock = LockedWorkspace::take(here.store.clone())?;
    let done = runtime()?.block_on(perform(args, &run, &workspace, ended));
    drop(lock);
    done
}

async fn perform(args: &Undo, run: &RunDirectory, workspace: &std::path::Path, ended: bool) -> Result<u8, UserError> {
    let cannot = |error: GitError| failed("cannot undo", &error);
    let repository = Repository::around(workspace).ok_or_else(|| {
        UserError::usage("undo needs a git repository").hint("`git init` before the next run, and it can be undone")
    })?;
    let plain = Writer::open(repository.clone()).map_err(cannot)?;
    let history = History::at(&run.path);
    let writer = Writer::open(repository).map_err(cannot)?.reading(history.place_of_objects());
    let points = history.points();
    let mut undone = Undone::of(run);
    let (target, what) = if args.redo {
        let name =
            undone.redo.clone().ok_or_else(|| UserError::usage(format!("no undo of the run `{}` to redo", run.id)))?;
        (plain.saved(&name).await.map_err(cannot)?, "the state before the undo".to_owned())
    } else {
        target(args, run, &points)?
    };
    let target = target.checked().map_err(cannot)?;
    let mut now = plain.capture(workspace).await.map_err(cannot)?;
    if let Some(branch) = target.branch.as_ref().filter(|branch| now.branch.as_ref() != Some(branch)) {
        now.other = plain.repository.branch(branch).map(|commit| (branch.clone(), commit));
    }
    // In the middle of an iteration the agent may have committed: those commits are the run's own.
    if ended && !args.force && !undone.unfinished {
        refuse_foreign_commits(run, &points, &undone, &now)?;
    }
    let name = format!("{}/{}", run.id, jiff::Timestamp::now().as_nanosecond());
    let saved = plain.save(&now, &name).await.map_err(cannot)?;
    // An undo that is repeated after it was done has nothing new to go back to.
    let is_there = (&now.tree, &now.head, &now.branch) == (&target.tree, &target.head, &target.branch);
    let keeps = args.redo || undone.unfinished || is_there && undone.redo.is_some();
    if !keeps {
        undone.redo = Some(saved);
    }
    undone.unfinished = true;
    undone.heads.extend(target.head.clone().into_iter().chain(now.head.clone()));
    undone.heads.dedup();
    undone.save(run)?;
    // What a person did after the run goes too; it is named.
    let later = match points.last().filter(|_| ended && !args.redo && undone.heads.len() <= 2) {
        Some(last) => writer.paths_between(&last.moment.tree, &now.tree).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let count = writer.go_to(&now, &target, "undo").await.map_err(|error| {
        UserError::failed(format!("cannot undo: {error}"))
            .hint(format!("nothing was lost; run `ralph undo {}` again when that is fixed", run.id))
    })?;
    undone.unfinished = false;
    undone.save(run)?;
    tell(args, run, (&now, &target), count, &what, &later)
}

fn target(args: &Undo, run: &RunDirectory, points: &[Point]) -> Result<(Moment, String), UserError> {
    let to = args.to.unwrap_or(0);
    // A run that was interrupted in its first iteration has more than one state without any; only the first is the start.
    let found = match to {
        0 => points.first(),
        to => points.iter().rfind(|point| point.iteration == to),
    };
    let Some(point) = found else {
        let known: Vec<String> = points.iter().map(|point| point.iteration.to_string()).collect();
        let error = UserError::usage(format!("the run `{}` kept no state of iteration {to}", run.id));
        return Err(if known.is_empty() {
            error.hint("states are kept in git repositories, unless `journal.keep_diffs` is off")
        } else {
            error.hint(format!("states were kept of: {}", known.join(", ")))
        });
    };
    let what = match point.iteration {
        0 => "before the run".to_owned(),
        number => format!("after iteration {number}"),
    };
    Ok((point.moment.clone(), what))
}

fn refuse_foreign_commits(
    run: &RunDirectory,
    points: &[Point],
    undone: &Undone,
    now: &Moment,
) -> Result<(), UserError> {
    let known = points.iter().map(|point| &point.moment.head).any(|head| *head == now.head);
    let own = now.head.as_ref().is_some_and(|head| undone.heads.contains(head));
    if known || own || points.is_empty() {
        return Ok(());
    }
    let head = now.head.as_deref().unwrap_or("no commit");
    Err(UserError::usage(format!(
        "HEAD is at {}, which the run `{}` did not commit: someone else has committed since",
        head.get(..7).unwrap_or(head),
        run.id
    ))
    .hint("to go back anyway: `--force`; the present state is saved first"))
}

fn tell(
    args: &Undo,
    run: &RunDirectory,
    (now, target): (&Moment, &Moment),
    count: usize,
    what: &str,
    later: &[PathBuf],
) -> Result<u8, UserError> {
    let at = target.head.as_deref().map_or("no commit", |head| head.get(..7).unwrap_or(head));
    let branch = target.branch.as_ref().map_or_else(|| "HEAD".to_owned(), |branch| format!("`{branch}`"));
    let mut text = format!("back to {what}: {} changed, {branch} at {at}\n", plural(count as u64, "file"));
    if !later.is_empty() {
        text.extend(["also taken back, changed after the run: ", &names(later), "\n"]);
    }
    text += "ignored files were left alone\n";
    let apart: Vec<PathBuf> = now.apart.iter().chain(&target.apart).cloned().collect();
    if !apart.is_empty() {
        text.extend(["not put back, because they are too large or unreadable: ", &names(&apart), "\n"]);
    }
    if !args.redo {
        text.extend(["to undo this: `ralph undo ", &run.id, " --redo`\n"]);
    }
    say(&text)
}

/// Saved states go with the run.
pub(crate) fn forget(run: &RunDirectory, workspace: &std::path::Path) {
    if Undone::of(run).heads.is_empty() {
        return;
    }
    let Some(writer) = Repository::around(workspace).and_then(|found| Writer::open(found).ok()) else { return };
    if let Ok(runtime) = runtime() {
        let _ = runtime.block_on(writer.forget(&run.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::history::Which;

    #[test]
    fn the_start_is_the_first_state_also_after_a_first_iteration_that_was_interrupted() {
        let point =
            |iteration, tree: &str| Point { iteration, moment: Moment { tree: tree.to_owned(), ..Moment::default() } };
        let points = [point(0, "start"), point(0, "resumed"), point(1, "one"), point(1, "again")];
        let run = RunDirectory { id: "x".to_owned(), path: PathBuf::new() };
        let found = |to| {
            let args = Undo { which: Which::one(None), to, redo: false, force: false };
            target(&args, &run, &points).map(|(moment, _)| moment.tree).unwrap_or_default()
        };
        assert_eq!([found(None), found(Some(0)), found(Some(1)), found(Some(2))], ["start", "start", "again", ""]);
    }
}
