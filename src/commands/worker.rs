//! `ralph worker`.

use crate::cli::worker::Worker;
use crate::error::UserError;

#[cfg(feature = "fleet")]
pub(crate) fn run(args: &Worker) -> Result<u8, UserError> {
    crate::app::fleet::worker::run(args)
}

#[cfg(not(feature = "fleet"))]
pub(crate) fn run(_: &Worker) -> Result<u8, UserError> {
    Err(crate::app::without_fleet())
}
