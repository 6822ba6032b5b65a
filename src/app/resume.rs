//! `ralph resume`: takes up a run that was interrupted, killed, cut off or limited, with its own settings and counters.

use std::path::Path;

use crate::app::choose::Purpose;
use crate::app::execute::{Keeping, LockedWorkspace, PreparedRun};
use crate::app::find::Here;
use crate::app::follow_up;
use crate::app::placing::fill_worktree;
use crate::app::planning::{Planned, Task, plan_from};
use crate::app::saved_plan::{SavedPlan, SavedRun};
use crate::app::view::{Show, needs_terminal_for_agent};
use crate::cli::Output;
use crate::cli::history::{Answer, Resume, Which};
use crate::config::{Dollars, Layer, Origin, Setting};
use crate::control::Order;
use crate::error::{UserError, io_reason};
use crate::git;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::place::PlaceState;
use crate::journal::record::VERSION;
use crate::journal::{Journal, Outcome, RunDirectory, Summary, reader};
use crate::plural::plural;
use crate::process;
use crate::process::runtime;
use crate::run::memory_of;
use crate::ui::figures;
use crate::user_file;

/// Answers what a run asked, and continues it.
pub(crate) fn answer(args: Answer) -> Result<u8, UserError> {
    let (_, run) = Here::run(args.run.as_deref())?;
    let summary = Summary::of(&run)
        .map_err(|error| UserError::usage(format!("cannot read the run `{}`: {}", run.id, io_reason(&error))))?;
    if !summary.end.as_ref().is_some_and(|end| end.outcome == Outcome::Human) {
        return Err(UserError::usage(format!("the run `{}` has no open question", run.id))
            .hint("use `ralph hint` for an active run, `ralph resume` for a stopped one"));
    }
    let answer = Order::Answer { words: args.words.join(" ") };
    let Answer { view, tui, .. } = args;
    let again = Resume {
        which: Which::one(Some(run.id)),
        max_iterations: None,
        max_time: None,
        max_cost: None,
        max_tokens: None,
        force: false,
        again: None,
        output: Output::Lines,
        tui,
        view,
    };
    go_on(&again, Some(answer))
}

pub(crate) fn run(args: &Resume) -> Result<u8, UserError> {
    let words = args.again.iter().flatten().next().map(|path| {
        let text = user_file::read_text(path, user_file::MOST_BYTES);
        text.map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))
    });
    go_on(args, words.transpose()?.map(|words| Order::Hint { words }))
}

fn go_on(args: &Resume, answer: Option<Order>) -> Result<u8, UserError> {
    let show = Show::wanted(args.tui, args.output)?;
    process::protect(process::own_program());
    let (here, run) = Here::run(args.which.id())?;
    let workspace = here.store.workspace().to_owned();
    if here.is_running(&run) {
        return Err(UserError::usage(format!("the run `{}` is active", run.id))
            .hint(format!("watch it: `ralph tui {0}`, or stop it first: `ralph stop --run {0}`", run.id)));
    }
    let again = restore_worktree(&run, &workspace)?;
    // The run may be of another directory than this one.
    std::env::set_current_dir(&workspace).map_err(|error| {
        UserError::usage(format!("cannot enter `{}`, where the run worked: {}", workspace.display(), io_reason(&error)))
    })?;
    let broken =
        |error: &std::io::Error| UserError::usage(format!("cannot resume the run `{}`: {}", run.id, io_reason(error)));
    // Before anything is locked or written, and again when nobody else can write any more.
    can_go_on(&run, &Summary::of(&run).map_err(|error| broken(&error))?, args)?;
    let locked = LockedWorkspace::take(here.store)?;
    let summary = Summary::of(&run).map_err(|error| broken(&error))?;
    can_go_on(&run, &summary, args)?;
    if !args.force {
        check_tree(&run, &summary, &workspace)?;
    }
    let last = reader::last(&run.journal()).map_err(|error| broken(&error))?;
    let mut memory = memory_of(&summary, last.at);
    // What is said now comes before what was said under way.
    if args.max_iterations.is_some() {
        memory.orders.max_iterations = None;
    }
    if args.max_time.is_some() {
        memory.orders.max_seconds = None;
    }
    if args.max_cost.is_some() {
        memory.orders.max_cost_usd = None;
    }
    let Planned { mut plan, settings, .. } = planned(args, &run, &workspace)?;
    plan.notices.extend(again);
    needs_terminal_for_agent(plan.screen, show)?;
    if args.again.is_some() {
        memory.orders.max_iterations = Some(memory.state.iterations.saturating_add(settings.max_iterations.value));
        let elapsed = std::time::Duration::from_millis(memory.elapsed_ms);
        memory.orders.max_seconds = Some((elapsed + settings.max_time.value).as_secs() + 1);
    }
    // With phases the limit is that of each phase, so what came before this one does not count.
    let of_phase = plan.phases.get(memory.phase.index).map_or(&plan, |(_, phase)| phase).policy.max_iterations;
    let most = of_phase.saturating_add(memory.phase.start).max(memory.orders.max_iterations.unwrap_or(0));
    if memory.state.iterations >= most && answer.is_some() {
        // An answer must be heard.
        memory.orders.max_iterations = Some(memory.state.iterations + 1);
        plan.notices.push("one more iteration, for the answer".to_owned());
    } else if memory.state.iterations >= most {
        return Err(UserError::usage(format!(
            "the run `{}` has reached its limit of {}",
            run.id,
            plural(most, "iteration")
        ))
        .hint(format!(
            "raise the limit: `ralph resume {} -n {}`",
            run.id,
            most.saturating_sub(memory.phase.start).saturating_mul(2)
        )));
    }
    let time = memory.orders.max_seconds.map(std::time::Duration::from_secs).or(plan.policy.max_time);
    if time.is_some_and(|most| u128::from(memory.elapsed_ms) >= most.as_millis()) {
        return Err(UserError::usage(format!("the run `{}` has reached its time limit", run.id))
            .hint(format!("raise the limit: `ralph resume {} --max-time 8h`", run.id)));
    }
    let most_usd = memory.orders.max_cost_usd.or(plan.policy.max_cost_usd);
    if let Some(limit) = memory.state.spent.over(plan.policy.max_tokens, most_usd) {
        return Err(UserError::usage(format!("cannot resume the run `{}`: {limit}", run.id))
            .hint(format!("raise the limit: `ralph resume {} --max-cost USD` or `--max-tokens N`", run.id)));
    }
    plan.orders.extend(answer);
    plan.notices.push(format!("resumed after {}", figures::plural(u64::from(memory.state.iterations), "iteration")));
    let journal = Journal::reopen(&RealDisk, &run.journal()).map_err(|error| broken(&error))?;
    let keeping = Keeping::from(&settings);
    let directory = run.clone();
    let code =
        PreparedRun { plan, directory, journal, summary, memory, keeping }.run_to_end(locked, show, &args.view)?;
    follow_up::next(code, &run, show, &settings)
}

/// A worktree that is gone is made again from its branch.
fn restore_worktree(run: &RunDirectory, workspace: &Path) -> Result<Option<String>, UserError> {
    let Some(place) = run.place() else { return Ok(None) };
    match place.state {
        PlaceState::Open => {}
        PlaceState::Merged => return Err(UserError::usage(format!("the run `{}` is merged", run.id))),
        PlaceState::Discarded => return Err(UserError::usage(format!("the run `{}` was discarded", run.id))),
    }
    let Some(worktree) = place.worktree.as_ref().filter(|worktree| !worktree.join(".git").exists()) else {
        return Ok(None);
    };
    let cannot = |error: git::GitError| UserError::usage(format!("cannot make the worktree again: {error}"));
    let repository = git::Repository::at(&place.repository)
        .ok_or_else(|| UserError::usage(format!("the repository `{}` is gone", place.repository.display())))?;
    let writer = git::Writer::open(repository).map_err(cannot)?;
    let commit = writer.repository.branch(&place.branch).ok_or_else(|| {
        UserError::usage(format!("the branch `{}` of the run is gone", place.branch)).hint("start a new run")
    })?;
    if std::fs::read_dir(worktree).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(UserError::usage(format!("`{}` is not the worktree of the run any more", worktree.display()))
            .hint("move it away, then resume again"));
    }
    let SavedRun { file, .. } = SavedPlan::read(run, workspace)?;
    let settings = file.layer.settle();
    let runtime = runtime()?;
    runtime.block_on(async {
        // Also what git remembers of the old one.
        writer.remove_worktree(worktree).map_err(cannot)?;
        if let Some(parent) = worktree.parent() {
            let _ = RealDisk.directory(parent);
        }
        writer.add_worktree(worktree, &commit, git::CheckedOut::Branch(&place.branch)).await.map_err(cannot)?;
        let _ = std::fs::create_dir_all(workspace);
        fill_worktree(&settings, &place.repository, worktree, workspace).await
    })?;
    Ok(Some(format!("the worktree was gone; made again from `{}`", place.branch)))
}

fn can_go_on(run: &RunDirectory, summary: &Summary, args: &Resume) -> Result<(), UserError> {
    if summary.agent.is_empty() {
        return Err(UserError::usage(format!(
            "the run `{}` cannot be resumed: it was interrupted before its first record",
            run.id
        ))
        .hint("it did nothing; start it again with `ralph run`"));
    }
    if summary.version > VERSION {
        return Err(UserError::usage(format!(
            "the run `{}` was made by a newer version of ralph ({})",
            run.id, summary.ralph
        ))
        .hint("update ralph; this version can only show the run"));
    }
    if summary.outcome() == Some(Outcome::Complete) && args.again.is_none() {
        return Err(UserError::usage(format!("the run `{}` is complete", run.id)).hint("start a new one: `ralph run`"));
    }
    Ok(())
}

/// The working directory must still be what the run left behind, or come after it.
fn check_tree(run: &RunDirectory, summary: &Summary, workspace: &Path) -> Result<(), UserError> {
    let branch = summary.receipts().filter_map(|receipt| receipt.branch.clone()).last();
    let Some(left) = summary.receipts().filter_map(|receipt| receipt.head_after.clone()).last() else { return Ok(()) };
    let runtime = runtime()?;
    let repository = git::Repository::around(workspace);
    let head = repository.as_ref().map(|repository| runtime.block_on(repository.head())).unwrap_or_default();
    if let (Some(left), Some(here)) = (&branch, &head.branch)
        && left != here
    {
        return Err(UserError::usage(format!(
            "wrong branch: the run `{}` was on `{left}`, the working directory is on `{here}`",
            run.id
        ))
        .hint(format!("switch back with `git switch {left}`, or resume here with `--force`")));
    }
    if head.commit.as_ref() == Some(&left) {
        return Ok(());
    }
    if let (Some(repository), Some(now)) = (&repository, &head.commit)
        && let Ok(store) = git::Store::temporary(repository)
        && runtime.block_on(store.is_ancestor(&left, now))
    {
        return Ok(());
    }
    let now = head.commit.unwrap_or_else(|| "no commit".to_owned());
    Err(UserError::usage(format!(
        "HEAD has moved: the run `{}` stopped at commit {}, the working directory is at {}",
        run.id,
        left.get(..12).unwrap_or(&left),
        now.get(..12).unwrap_or(&now),
    ))
    .hint("switch back to that branch, or resume here with `--force`"))
}

/// The run as it was planned when it began, with the limits that are given now.
fn planned(args: &Resume, run: &RunDirectory, workspace: &Path) -> Result<Planned, UserError> {
    let SavedRun { file, prompt, then } = SavedPlan::read(run, workspace)?;
    let limits = Layer {
        max_iterations: args.max_iterations.map(|value| Setting::new(value, Origin::Flag("-n"))),
        max_time: args.max_time.map(|value| Setting::new(value, Origin::Flag("--max-time"))),
        max_cost_usd: args.max_cost.map(|usd| Setting::new(Some(Dollars(usd)), Origin::Flag("--max-cost"))),
        max_tokens: args.max_tokens.map(|count| Setting::new(Some(count), Origin::Flag("--max-tokens"))),
        ..Layer::default()
    };
    let mut planned = plan_from(limits.clone(), file, workspace.to_owned(), Task::Known(prompt), Purpose::Run)?;
    for (name, file, prompt) in then {
        let phase = plan_from(limits.clone(), file, workspace.to_owned(), Task::Known(prompt), Purpose::Run)?;
        planned.plan.phases.push((name, phase.plan));
    }
    Ok(planned)
}
