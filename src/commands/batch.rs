//! `ralph batch`.

use crate::app::batch;
use crate::cli::batch::{Batch, BatchAction};
use crate::error::UserError;

pub(crate) fn run(args: &Batch) -> Result<u8, UserError> {
    match &args.action {
        None => batch::begin(&args.begin),
        Some(BatchAction::Status { json }) => batch::status(*json),
        Some(BatchAction::Resume) => batch::resume(None),
        Some(BatchAction::Retry { task }) => batch::resume(Some(task)),
        Some(BatchAction::Skip { task }) => batch::skip(task),
        Some(BatchAction::Add { source }) => batch::add(source),
    }
}
