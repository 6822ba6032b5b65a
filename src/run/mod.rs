//! The loop: one coordinator that plays iterations, decides, and writes down what happened.
//!
//! It ties the other rooms together. It must never print, and never go on unrecorded.

mod about;
mod assignment;
pub(crate) mod budget;
mod commit_iteration;
mod configured;
mod cooldown;
mod coordinator;
pub(crate) mod decide;
mod evaluation;
mod explain;
pub(crate) mod filter;
mod gates;
mod handover;
pub(crate) mod hats;
pub(crate) mod hooks;
mod interrupt;
pub(crate) mod iteration;
pub(crate) mod iteration_result;
mod judge;
mod judge_prompt;
pub(crate) mod judging;
mod memory;
pub(crate) mod mode;
pub(crate) mod notify;
mod observed;
mod paths;
mod phases;
mod plan;
pub(crate) mod plugins;
pub(crate) mod prompt;
pub(crate) mod quota;
mod reading;
mod recorder;
mod report;
mod resume;
pub(crate) mod sessions;
pub(crate) mod template;
pub(crate) mod verify;
mod wait;
mod wall;

pub(crate) use coordinator::{Finished, run};
pub(crate) use explain::start_error;
pub(crate) use filter::Filter;
pub(crate) use interrupt::{Came, Interrupt, Interrupts};
pub(crate) use judge::how_it_ended;
pub(crate) use memory::Memory;
pub(crate) use notify::webhook::post;
pub(crate) use plan::{Commit, Keys, LeftBehind, Plan, Room, Screen, Worker};
pub(crate) use recorder::Recorder;
pub(crate) use resume::memory_of;

/// The variable that tells an agent where its run takes orders; `ralph emit` uses it.
pub(crate) const CONTROL: &str = "RALPH_CONTROL";

use crate::error::exit_code;
use crate::journal::Outcome;

impl Outcome {
    /// The exit code that tells it. An interrupted run dies by the signal instead.
    pub(crate) const fn exit_code(self) -> u8 {
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
