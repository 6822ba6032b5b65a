//! The loop: one coordinator that plays iterations, decides, and writes down what happened.
//!
//! It ties the other rooms together. It must never print, and never go on unrecorded.

mod about;
mod assignment;
pub mod budget;
mod cooldown;
mod coordinator;
pub mod decide;
mod evaluation;
mod explain;
pub mod filter;
mod handover;
pub mod hats;
mod interrupt;
pub mod iteration;
pub mod iteration_result;
mod judge;
mod memory;
pub mod mode;
pub mod notify;
mod observed;
mod paths;
mod plan;
pub mod plugins;
pub mod prompt;
mod reading;
mod recorder;
mod report;
mod resume;
pub mod sessions;
pub mod verify;
mod wait;

pub use coordinator::{Finished, run};
pub use explain::start_error;
pub use filter::Filter;
pub use interrupt::{Action, Came, Interrupt, Interrupts};
pub use judge::how_it_ended;
pub use memory::Memory;
pub use notify::webhook::post;
pub use plan::{Keys, LeftBehind, Plan, Room, Screen, Worker};
pub use recorder::Recorder;
pub use resume::memory_of;

/// The variable that tells an agent where its run takes orders; `ralph emit` uses it.
pub const CONTROL: &str = "RALPH_CONTROL";

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
