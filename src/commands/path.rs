//! `ralph path`: where a run is kept.

use crate::app::find::{Here, print};
use crate::cli::history::Path;
use crate::error::UserError;

/// Prints the directory of the run.
pub(crate) fn run(args: &Path) -> Result<u8, UserError> {
    let (_, run) = Here::run(args.which.id())?;
    print(&format!("{}\n", run.path.display()))
}
