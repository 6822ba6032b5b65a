//! The loop: one coordinator that plays iterations, decides, and writes down what happened.
//!
//! It ties the other rooms together. It must never print, and never go on unrecorded.

mod bench;
pub mod budget;
mod casting;
mod contract;
pub mod control;
mod coordinator;
pub mod decide;
mod evaluation;
mod explain;
mod filter;
mod handover;
pub mod hats;
mod interrupt;
mod iteration;
mod judge;
mod memory;
pub mod mode;
pub mod notify;
mod paths;
mod plan;
mod progress;
pub mod prompt;
mod reading;
mod recorder;
mod resume;
pub mod sessions;
mod shelf;
pub mod verify;

pub use coordinator::{Finished, run};
pub use explain::start_error;
pub use filter::Filter;
pub use interrupt::{Action, Came, Interrupt, Interrupts};
pub use judge::how_it_ended;
pub use memory::Memory;
pub use notify::webhook::post;
pub use plan::{Keys, LeftBehind, Plan, Room, Screen, Worker};
pub use progress::git;
pub use recorder::{Observer, Recorder};
pub use resume::memory_of;

use crate::error::exit_code;
use crate::journal::Outcome;

impl Outcome {
    /// The exit code that tells it. An interrupted run dies by the signal instead.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Complete => exit_code::COMPLETE,
            Self::Failed => exit_code::FAILED,
            Self::Human => exit_code::HUMAN,
            Self::AgentUnusable => exit_code::AGENT,
            Self::Limit => exit_code::LIMIT,
            Self::NoProgress => exit_code::NO_PROGRESS,
            Self::RateLimited => exit_code::RATE_LIMITED,
            Self::Interrupted => 130,
        }
    }
}
