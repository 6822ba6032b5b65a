//! `ralph batch`.

use crate::app::batch;
use crate::batch::order::BatchOrder;
use crate::cli::batch::{Batch, BatchAction};
use crate::error::UserError;

pub(crate) fn run(args: &Batch) -> Result<u8, UserError> {
    let Some(action) = &args.action else { return batch::begin(&args.begin) };
    let task = |name: &str| batch::task_id(name);
    let some = |name: &Option<String>| name.as_deref().map(batch::task_id).transpose();
    match action {
        BatchAction::Status { tui: true, .. } => batch::board::watch(),
        BatchAction::Status { json, .. } => batch::status(*json),
        BatchAction::Resume { tui } => batch::resume(None, *tui),
        BatchAction::Hint { task: name, words } => {
            batch::order(&BatchOrder::Hint { task: task(name)?, words: words.join(" ") })
        }
        BatchAction::Pause { task } => batch::order(&BatchOrder::Pause { task: some(task)? }),
        BatchAction::Continue { task } => batch::order(&BatchOrder::Continue { task: some(task)? }),
        BatchAction::Stop { task } => batch::order(&BatchOrder::Stop { task: some(task)? }),
        BatchAction::Cancel => batch::order(&BatchOrder::Cancel),
        BatchAction::Retry { task: name } => batch::retry(&task(name)?),
        BatchAction::Skip { task: name } => batch::skip(&task(name)?),
        BatchAction::Add { source } => batch::add(source),
    }
}
