//! `ralph merge`: rebases the branch of a run, runs the checks on the result, and fast-forwards the base branch.

use crate::app::merging;
use crate::cli::place::MergeRun;
use crate::error::UserError;
use crate::process;

pub(crate) fn run(args: &MergeRun) -> Result<u8, UserError> {
    process::protect(process::own_program());
    merging::merge(args)
}
