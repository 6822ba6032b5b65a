//! The arguments that say where a run works, and what becomes of its work.

use std::path::PathBuf;

use clap::Args;

use super::history::Which;
use crate::config::Merge;

/// Where a run works.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::option_option, reason = "a flag with or without a value")]
pub(crate) struct PlaceArgs {
    /// Work on a new branch from HEAD [default name: `ralph/` and the goal].
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "worktree")]
    pub branch: Option<Option<String>>,

    /// Work on a new branch in a new worktree outside the repository; this checkout stays as it is.
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub worktree: Option<Option<String>>,

    /// Take uncommitted changes along to the branch or worktree, instead of refusing to start.
    #[arg(long)]
    pub include_changes: bool,

    /// The commit that the branch of a task starts at. The run is one of a batch: ralph commits, and the coordinator waits and merges.
    #[arg(long, value_name = "COMMIT", hide = true, requires = "worktree")]
    pub task_base: Option<String>,

    /// A check of a task, besides those of `ralph.yml`.
    #[arg(long, value_name = "COMMAND", hide = true, requires = "task_base")]
    pub task_verify: Vec<String>,

    /// The run is one of a worker: the user's own settings of the sandbox count, not those of the repository.
    #[arg(long, hide = true, requires = "task_base")]
    pub task_worker: bool,

    /// The journal of the run so far, from another worker.
    #[arg(long, value_name = "FILE", hide = true, requires_all = ["task_base", "task_run"])]
    pub task_journal: Option<PathBuf>,

    /// The id that the run has on another worker.
    #[arg(long, value_name = "ID", hide = true, requires = "task_base")]
    pub task_run: Option<String>,

    /// Continue even a completed run, with its limits once more, and give the agent the text of this file.
    #[arg(long, value_name = "FILE", hide = true, num_args = 0..=1, require_equals = true, requires = "task_journal")]
    pub task_again: Option<Option<PathBuf>>,

    /// What to do with the branch when the run completes: `none`, `ff`, `squash` or `pr` [default: none].
    #[arg(long, value_name = "HOW", value_parser = merge, conflicts_with = "pr")]
    pub merge: Option<Merge>,

    /// Push the branch and open a pull request with `gh` when the run completes.
    #[arg(long)]
    pub pr: bool,
}

fn merge(text: &str) -> Result<Merge, String> {
    match text {
        "none" => Ok(Merge::None),
        "ff" => Ok(Merge::Ff),
        "squash" => Ok(Merge::Squash),
        "pr" => Ok(Merge::Pr),
        _ => Err("expected `none`, `ff`, `squash` or `pr`".to_owned()),
    }
}

/// `ralph merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeRun {
    #[command(flatten)]
    pub which: Which,

    /// Make one commit of it.
    #[arg(long, conflicts_with = "pr")]
    pub squash: bool,

    /// Push the branch and open a pull request with `gh`, instead of merging here.
    #[arg(long)]
    pub pr: bool,

    /// Merge a run that did not complete.
    #[arg(long)]
    pub force: bool,
}

/// `ralph discard`.
#[derive(Debug, Args)]
pub(crate) struct Discard {
    #[command(flatten)]
    pub which: Which,

    /// Also remove commits that are not merged and files that are not committed.
    #[arg(long)]
    pub force: bool,
}

/// `ralph undo`.
#[derive(Debug, Args)]
pub(crate) struct Undo {
    #[command(flatten)]
    pub which: Which,

    /// Go back to the state after this iteration; 0: before the run [default: 0].
    #[arg(long, value_name = "ITERATION", conflicts_with = "redo")]
    pub to: Option<u32>,

    /// Undo the last undo of this run.
    #[arg(long)]
    pub redo: bool,

    /// Go back even when there are commits that the run did not make.
    #[arg(long)]
    pub force: bool,
}
