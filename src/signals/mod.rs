//! What events mean to the loop. Pure: no I/O, no clock.

pub(crate) mod acceptance;
pub(crate) mod appeal;
pub(crate) mod denial;
pub(crate) mod markdown;
mod marker;
pub mod promise;
pub(crate) mod stall;
pub(crate) mod status_block;
pub(crate) mod task_list;
pub mod test_counts;
pub(crate) mod topics;
pub mod verdict;

use serde::{Deserialize, Serialize};

/// What an agent said to the loop in its last words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// It claims that the work is done.
    Complete {
        /// The marker.
        marker: String,
    },
    /// It asks for another plan.
    Replan {
        /// The marker it used.
        marker: String,
    },
    /// It cannot do the work, and says so.
    Failed {
        /// The marker it used.
        marker: String,
        /// Why, in its words.
        reason: String,
    },
    /// It asks a person something.
    Question {
        /// What.
        text: String,
    },
    /// It cannot go on without a person.
    Blocked {
        /// Why, in its words.
        reason: String,
    },
    /// A marker was seen where it does not count.
    NearMiss {
        /// The marker it used.
        marker: String,
        /// Why it does not count.
        reason: String,
        /// The line it is in.
        line: String,
    },
}
