//! `ralph undo`: puts files and branch back to how they were before a run, or after one of its iterations.

use crate::app::undoing;
use crate::cli::place::Undo;
use crate::error::UserError;
use crate::process;

pub(crate) fn run(args: &Undo) -> Result<u8, UserError> {
    process::protect(process::own_program());
    undoing::undo(args)
}
