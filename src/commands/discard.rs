//! `ralph discard`: removes the branch and the worktree of a run, after showing what would be lost.

use crate::app::discarding;
use crate::cli::place::Discard;
use crate::error::UserError;
use crate::process;

pub(crate) fn run(args: &Discard) -> Result<u8, UserError> {
    process::protect(process::own_program());
    discarding::discard(args)
}
