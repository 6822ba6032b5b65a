//! `ralph diff`: what a run, or one of its iterations, changed.

use crate::app::difference::{of_iterations, printable};
use crate::app::find::{Here, print};
use crate::cli::history::Diff;
use crate::error::UserError;
use crate::git::History;
use crate::journal::store::WHOLE_DIFF;
use crate::journal::{Receipt, RunDirectory};
use crate::process::{self, runtime};
use crate::ui::RunState;

pub(crate) fn run(args: &Diff) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let known = here.details(&run)?;
    let receipts: Vec<&Receipt> = known
        .summary
        .receipts()
        .filter(|receipt| args.iteration.is_none_or(|number| receipt.iteration == number))
        .collect();
    process::protect(process::own_program());
    let running = known.summary.iterations.last().filter(|last| last.receipt.is_none() && last.ended.is_none());
    let running = running.map(|last| last.iteration).filter(|_| !matches!(known.state, RunState::Ended(_)));
    if let Some(number) = running.filter(|number| args.iteration.is_none_or(|asked| asked == *number)) {
        let done = if receipts.is_empty() { String::new() } else { of_iterations(&run, &receipts)? };
        return print(&(done + &so_far(&here, &run, number)));
    }
    if receipts.is_empty() {
        let what =
            args.iteration.map_or_else(|| "finished iteration".to_owned(), |number| format!("iteration {number}"));
        return Err(UserError::usage(format!("the run `{}` has no {what}", run.id)).hint("see `ralph show`"));
    }
    let ended = matches!(known.state, RunState::Ended(_));
    if args.iteration.is_none()
        && ended
        && let Ok(whole) = std::fs::read_to_string(run.difference(WHOLE_DIFF))
    {
        return print(&printable(&whole));
    }
    print(&of_iterations(&run, &receipts)?)
}

/// What an iteration that has not ended changed so far, or why that is unknown.
fn so_far(here: &Here, run: &RunDirectory, number: u32) -> String {
    let workspace = here.store.workspace();
    let found = runtime().map(|runtime| runtime.block_on(History::at(&run.path).since_last(workspace, &run.path)));
    match found {
        Ok(Ok(Some(text))) => format!("# iteration {number} has not ended; changes so far:\n") + &printable(&text),
        Ok(Ok(None)) => {
            format!(
                "# iteration {number} has not ended, and its changes are unknown: not a git repository, or `journal.keep_diffs` is off\n"
            )
        }
        Ok(Err(error)) => format!("# iteration {number} has not ended, and its changes are unknown: {error}\n"),
        Err(error) => format!("# iteration {number} has not ended, and its changes are unknown: {}\n", error.message),
    }
}
