//! What a run must know to go on: written down with every decision, read again by a resumed run.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::control::Orders;
use super::decide::State;
use super::hats::Board;
use super::progress::Snapshot;
use super::sessions::Sessions;
use crate::event::Usage;

/// How many earlier states of the working directory are remembered.
const REMEMBERED: usize = 12;

/// The loop's memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Counters and budgets.
    pub state: State,
    /// What all iterations reported together.
    pub usage: Usage,
    /// How long it has taken.
    pub elapsed_ms: u64,
    /// How the last iteration ended.
    pub last: Option<String>,
    /// What the next prompt says about it.
    pub remarks: Vec<String>,
    /// The agents' sessions.
    pub sessions: Sessions,
    /// Who cannot play.
    pub bench: Bench,
    /// The hats' events.
    pub board: Board,
    /// What people told.
    pub orders: Orders,
    /// How much of the control file was read.
    pub control_offset: u64,
    /// Where the working directory has been before.
    pub seen: VecDeque<u64>,
    /// What the last iteration did and said last, as one number.
    pub work: Option<u64>,
    /// The working directory when the run began, where only some paths may change.
    pub first_tree: Option<Snapshot>,
    /// How the last verification failed.
    pub verification: Option<String>,
    /// The last iteration got a nudge for long reading.
    pub nudged: bool,
    /// Who got its prompt the other way, and keeps to it.
    pub other_way: std::collections::BTreeSet<usize>,
    /// Who has answered.
    pub answered: std::collections::BTreeSet<usize>,
    /// The run has told that it cannot see how full a context is.
    pub told_unmeasured: bool,
    /// The run has told that it cannot see its cost.
    pub told_unpriced: bool,
}

impl Memory {
    /// Remembers a state of the working directory; true when it has been so before.
    pub fn was_here_before(&mut self, fingerprint: u64) -> bool {
        let before = self.seen.contains(&fingerprint);
        self.seen.push_back(fingerprint);
        if self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_survives_the_disk_and_an_older_one_is_read() {
        let mut memory = Memory { elapsed_ms: 5, last: Some("x".into()), ..Memory::default() };
        memory.state.iterations = 3;
        memory.state.spent.usd = 0.25;
        assert!(!memory.was_here_before(7));
        assert!(memory.was_here_before(7));
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
        assert_eq!(serde_json::from_str::<Memory>("{}").unwrap(), Memory::default());
    }
}
