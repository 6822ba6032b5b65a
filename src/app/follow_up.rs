//! What comes after a run: a question is answered where it is shown, a completed branch is merged as the settings say, and the next
//! commands are printed.

use std::time::Duration;

use crate::app::merging::{self, Branched, Completed};
use crate::app::resume;
use crate::app::view::Show;
use crate::cli::history::Answer;
use crate::cli::{Output, ViewArgs};
use crate::config::Merge;
use crate::error::UserError;
use crate::git::History;
use crate::journal::{Outcome, RunDirectory, Summary};
use crate::plural::plural;
use crate::process::runtime;
use crate::terminal;
use crate::ui::{harmless, out};

/// Who is there answers within this; `ralph answer` does later.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The exit code of a run; asks the person at the terminal first when the agent wants to know something.
pub(crate) fn end(code: u8, run: &RunDirectory, show: Show, view: &ViewArgs) -> Result<u8, UserError> {
    let here = out::is_terminal() && terminal::has_keyboard();
    if code != Outcome::Human.exit_code() || show != Show::As(Output::Lines) || !here {
        return Ok(code);
    }
    if Summary::of(run).ok().and_then(|summary| summary.end?.question).is_none() {
        return Ok(code);
    }
    let typed = terminal::typed_line("answer (an empty line ends the run): ", PATIENCE);
    let Some(words) = typed.filter(|words| !words.trim().is_empty()) else {
        let _ = out::print("\nanswer later: `ralph answer \"…\"`\n");
        return Ok(code);
    };
    let words = vec![words.trim().to_owned()];
    resume::answer(Answer { words, run: Some(run.id.clone()), tui: false, view: view.clone() })
}

/// How many files on the branch of a run are not committed.
fn uncommitted(run: &RunDirectory) -> usize {
    let count = || {
        let branched = Branched::find(Some(&run.id)).ok()?;
        Some(runtime().ok()?.block_on(branched.uncommitted()).ok()?.len())
    };
    count().unwrap_or(0)
}

/// After a completed run on a branch of its own: merges it as the settings say, or prints the next commands.
pub(crate) fn next(code: u8, run: &RunDirectory, show: Show, merge: Merge) -> Result<u8, UserError> {
    let lines = show != Show::As(Output::Json);
    let Some(place) = run.place() else {
        if code == Outcome::Complete.exit_code() && lines && !History::at(&run.path).points().is_empty() {
            let _ = out::print(&format!("undo: `ralph undo {}`\n", run.id));
        }
        return Ok(code);
    };
    if code == Outcome::Complete.exit_code() && merge != Merge::None {
        return merging::merge_run(Some(&run.id), merge, Completed::Only);
    }
    if lines {
        let id = &run.id;
        let merge = match uncommitted(run) {
            _ if code != Outcome::Complete.exit_code() => String::new(),
            0 => format!("merge: `ralph merge {id}`\n"),
            files => format!(
                "{} in `{}`: commit first, then `ralph merge {id}`; with `commit: iteration` in ralph.yml, ralph commits\n",
                plural(files as u64, "uncommitted file"),
                harmless(&place.worktree.as_ref().unwrap_or(&place.repository).display().to_string())
            ),
        };
        let _ = out::print(&format!("branch: `{}`\n{merge}discard: `ralph discard {id}`\n", harmless(&place.branch)));
    }
    Ok(code)
}
