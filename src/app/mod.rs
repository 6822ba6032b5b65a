//! What several commands share: settings become a plan, a plan becomes a run, and a run is found again. The commands
//! themselves are in `commands/`.

pub(crate) mod adopting;
mod agent_choice;
pub(crate) mod appearance;
pub(crate) mod batch;
pub(crate) mod choose;
pub(crate) mod clean;
pub(crate) mod difference;
pub(crate) mod discarding;
pub(crate) mod execute;
pub(crate) mod find;
pub(crate) mod flags;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod follow_up;
mod gates;
pub(crate) mod integration;
pub(crate) mod merging;
pub(crate) mod notify;
pub(crate) mod phases;
pub(crate) mod placing;
pub(crate) mod planning;
pub(crate) mod project;
mod pull_request;
pub(crate) mod repository;
pub(crate) mod resume;
pub(crate) mod sandbox;
pub(crate) mod saved_plan;
mod script_modes;
pub(crate) mod serving;
pub(crate) mod steering;
pub(crate) mod undoing;
pub(crate) mod view;
pub(crate) mod worktrees;

use std::path::PathBuf;

use crate::error::{UserError, io_reason};
use crate::ui::out;

/// Prints warnings on standard error.
pub(crate) fn warn(warnings: impl IntoIterator<Item = impl std::fmt::Display>) {
    for warning in warnings {
        out::warn(warning);
    }
}

pub(crate) fn working_directory() -> Result<PathBuf, UserError> {
    std::env::current_dir().map_err(|error| {
        UserError::usage(format!("the working directory is gone or not accessible: {}", io_reason(&error)))
            .hint("change to a directory that exists")
    })
}

/// The build has no client for NATS.
#[cfg(not(feature = "fleet"))]
pub(crate) fn without_fleet() -> UserError {
    UserError::usage("this ralph was built without support for fleets")
        .hint("build one that has it: `cargo install --path . --features fleet`")
}
