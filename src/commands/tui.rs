//! `ralph tui`: the full screen on any run, running or finished, and the list of all runs of this machine.

use crate::app::appearance::appearance;
use crate::app::find::Here;
use crate::app::resume;
use crate::app::steering::{Steering, answered, ending_signals};
use crate::app::view::needs_terminal;
use crate::cli::history::Tui;
use crate::error::{UserError, io_reason};
use crate::journal::RunDirectory;
use crate::process;
use crate::ui;
use crate::ui::history::RunDetails;
use crate::ui::tui::runs::{Picked, pick};
use crate::ui::tui::{self, Left, Options, Owner, Remote};

/// Shows a run until someone leaves. Without a run here, and whenever someone asks for it, all runs are listed.
pub(crate) fn run(args: &Tui) -> Result<u8, UserError> {
    let mut next = match Here::run(args.which.id()) {
        Ok(found) if !args.all => Some(found),
        Err(error) if args.which.id().is_some() || all().is_empty() => return Err(error),
        _ => None,
    };
    needs_terminal("ralph tui")?;
    let ui::Appearance { palette, glyphs, .. } = appearance(args.view.appearance);
    let unusable = |error| UserError::failed(format!("cannot use the terminal: {}", io_reason(&error)));
    // Whoever came from the list goes back to it.
    let mut from_list = next.is_none();
    loop {
        let (here, directory) = match next.take() {
            Some(found) => found,
            None => match pick(&mut all, palette, glyphs, ending_signals()).map_err(unusable)? {
                Picked::Run(id) => Here::run(Some(&id))?,
                Picked::Left => return Ok(0),
                Picked::Signal(number) => process::die_by(number),
            },
        };
        let actions = Box::new(Steering::new(&here.store, &directory));
        let id = directory.id.clone();
        let options = Options { directory, palette, glyphs, owner: Owner::Another, actions };
        match tui::show(options, &Remote::default()).map_err(unusable)?.left {
            Left::Closed if from_list => {}
            Left::Closed => return Ok(0),
            Left::Runs => from_list = true,
            Left::Signal(number) => process::die_by(number),
            Left::Answered(words) => return resume::answer(answered(words, id, &args.view)),
        }
    }
}

/// All runs of this user. One that cannot be read is left out: `ralph runs --all` says why.
fn all() -> Vec<RunDetails> {
    let of = |here: Here| {
        let runs: Vec<RunDirectory> = here.store.runs().unwrap_or_default();
        runs.into_iter().filter_map(move |run| here.details(&run).ok())
    };
    Here::everywhere().unwrap_or_default().into_iter().flat_map(of).collect()
}
