//! `ralph tui`: the full screen on any run of this directory, running or finished.

use crate::app::appearance::appearance;
use crate::app::find::Here;
use crate::app::resume;
use crate::app::steering::{Steering, answered};
use crate::app::view::needs_terminal;
use crate::cli::history::Tui;
use crate::error::{UserError, io_reason};
use crate::process;
use crate::ui;
use crate::ui::tui::{self, Left, Options, Owner, Remote};

/// Shows a run until someone leaves.
pub(crate) fn run(args: &Tui) -> Result<u8, UserError> {
    let (here, directory) = Here::run(args.which.id())?;
    needs_terminal("ralph tui")?;
    let ui::Appearance { palette, glyphs, .. } = appearance(args.view.appearance);
    let actions = Box::new(Steering::new(&here.store, &directory));
    let id = directory.id.clone();
    let seen = tui::show(Options { directory, palette, glyphs, owner: Owner::Another, actions }, &Remote::default())
        .map_err(|error| UserError::failed(format!("cannot use the terminal: {}", io_reason(&error))))?;
    match seen.left {
        Left::Closed => Ok(0),
        Left::Signal(number) => process::die_by(number),
        Left::Answered(words) => resume::answer(answered(words, id, &args.view)),
    }
}
