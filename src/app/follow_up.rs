//! What an agent asks is answered where it is shown: a run that ended with a question continues with the answer typed here.

use std::time::Duration;

use crate::app::resume;
use crate::app::view::Show;
use crate::cli::history::Answer;
use crate::cli::{Output, ViewArgs};
use crate::error::UserError;
use crate::journal::{Outcome, RunDirectory, Summary};
use crate::terminal;
use crate::ui::out;

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
