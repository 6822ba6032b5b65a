//! What several commands share: settings become a plan, a plan becomes a run, and a run is found again. The commands
//! themselves are in `commands/`.

pub mod appearance;
pub mod choose;
pub mod clean;
pub mod execute;
pub mod find;
pub mod follow_up;
pub mod planning;
pub(crate) mod repository;
pub mod resume;
pub mod saved_plan;
pub mod steering;
pub mod view;

use std::path::PathBuf;

use crate::error::{UserError, io_reason};
use crate::ui::out;

/// Prints warnings on standard error.
pub fn warn(warnings: impl IntoIterator<Item = impl std::fmt::Display>) {
    for warning in warnings {
        out::warn(warning);
    }
}

/// Where the user is.
pub fn working_directory() -> Result<PathBuf, UserError> {
    std::env::current_dir().map_err(|error| {
        UserError::usage(format!("the working directory is gone or not accessible: {}", io_reason(&error)))
            .hint("change to a directory that exists")
    })
}
