//! `ralph diff`: what a run, or one of its iterations, changed.

use crate::app::difference::{of_iterations, printable};
use crate::app::find::{Here, print};
use crate::cli::history::Diff;
use crate::error::UserError;
use crate::journal::Receipt;
use crate::journal::store::WHOLE_DIFF;
use crate::process;
use crate::ui::RunState;

pub(crate) fn run(args: &Diff) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let known = here.details(&run)?;
    let receipts: Vec<&Receipt> = known
        .summary
        .receipts()
        .filter(|receipt| args.iteration.is_none_or(|number| receipt.iteration == number))
        .collect();
    if receipts.is_empty() {
        let what =
            args.iteration.map_or_else(|| "finished iteration".to_owned(), |number| format!("iteration {number}"));
        return Err(UserError::usage(format!("the run `{}` has no {what}", run.id)).hint("see `ralph show`"));
    }
    process::protect(process::own_program());
    let ended = matches!(known.state, RunState::Ended(_));
    if args.iteration.is_none()
        && ended
        && let Ok(whole) = std::fs::read_to_string(run.difference(WHOLE_DIFF))
    {
        return print(&printable(&whole));
    }
    print(&of_iterations(&run, &receipts)?)
}
