//! What comes after a run: a question is answered where it is shown, a completed branch is merged as the settings say, and the next
//! commands are printed.

use std::time::Duration;

use crate::app::merging::{self, Branched, Completed, names};
use crate::app::resume;
use crate::app::view::Show;
use crate::cli::history::Answer;
use crate::cli::{Output, ViewArgs};
use crate::config::{Merge, Settings};
use crate::error::UserError;
use crate::git::History;
use crate::journal::place::Place;
use crate::journal::{Outcome, RunDirectory, Summary};
use crate::plural::plural;
use crate::process::runtime;
use crate::run::Commit;
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

/// The line about merging: only what is committed can be merged.
fn merge_line(run: &RunDirectory, place: &Place, commit: Commit) -> Option<String> {
    let branched = Branched::find(Some(&run.id)).ok()?;
    let uncommitted = runtime().ok()?.block_on(branched.uncommitted()).ok()?;
    let id = &run.id;
    if uncommitted.is_empty() {
        let has_commits = branched.tip().is_some_and(|tip| tip != place.base_commit);
        return Some(if has_commits {
            format!("merge: `ralph merge {id}`")
        } else {
            "merge: nothing to merge; the branch has no commits of its own".to_owned()
        });
    }
    let files = plural(uncommitted.len() as u64, "uncommitted file");
    let checkout = harmless(&branched.checkout().display().to_string());
    let advice = match commit {
        Commit::Agent => " With `commit: iteration` in ralph.yml, ralph commits after each iteration.",
        Commit::Iteration => "",
    };
    Some(format!(
        "merge: {files} in `{checkout}`: {}. Commit or remove them, then `ralph merge {id}`.{advice}",
        names(&uncommitted)
    ))
}

/// After a completed run on a branch of its own: merges it as the settings say, or prints the next commands.
pub(crate) fn next(code: u8, run: &RunDirectory, show: Show, settings: &Settings) -> Result<u8, UserError> {
    let lines = show != Show::As(Output::Json);
    let Some(place) = run.place() else {
        if code == Outcome::Complete.exit_code() && lines && !History::at(&run.path).points().is_empty() {
            let _ = out::print(&format!("undo: `ralph undo {}`\n", run.id));
        }
        return Ok(code);
    };
    if code == Outcome::Complete.exit_code() && settings.merge.value != Merge::None {
        return merging::merge_run(Some(&run.id), settings.merge.value, Completed::Only);
    }
    if lines {
        let id = &run.id;
        let done = code == Outcome::Complete.exit_code();
        let merge = done.then(|| merge_line(run, &place, settings.commit.value)).flatten();
        let merge = merge.map_or_else(String::new, |line| line + "\n");
        let _ = out::print(&format!("branch: `{}`\n{merge}discard: `ralph discard {id}`\n", harmless(&place.branch)));
    }
    Ok(code)
}
