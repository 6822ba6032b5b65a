//! What a run must know to continue: written down with every decision, read again by a resumed run.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::budget::Calls;
use super::cooldown::Cooldown;
use super::decide::LoopState;
use super::hats::Board;
use super::paths::Forbidden;
use super::sessions::Sessions;
use crate::control::Orders;
use crate::event::{Quota, Usage};
use crate::journal::{Changed, Compared};
use crate::signals::verdict::Rejection;

/// How many earlier states of the working directory are remembered.
const REMEMBERED: usize = 12;

/// Where a run with phases is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// Which phase.
    pub index: usize,
    /// How many iterations there were before it.
    pub start: u32,
    /// How often the review has sent the work back.
    pub rounds: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each notice is said once")]
pub(crate) struct Memory {
    /// Counters and budgets.
    pub state: LoopState,
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
    /// When agents were started in the last hour.
    pub calls: Calls,
    /// Agents that cannot be used now.
    pub cooldown: Cooldown,
    pub board: Board,
    /// Orders that were given and not yet carried out.
    pub orders: Orders,
    /// Where the working directory has been before.
    pub seen: VecDeque<u64>,
    /// What the last iteration did and said last, as one number.
    pub work: Option<u64>,
    /// Files that changed although `allowed_paths` does not name them.
    pub forbidden: Forbidden,
    /// How the last verification failed.
    pub verification: Option<String>,
    /// The last iteration got a nudge for long reading.
    pub nudged: bool,
    /// Workers that get their prompt the other way from now on.
    pub other_way: std::collections::BTreeSet<usize>,
    /// Workers that have answered.
    pub answered: std::collections::BTreeSet<usize>,
    /// A notice said that the fill of the context is unknown.
    pub noticed_unmeasured: bool,
    /// A notice said that the cost is unknown.
    pub noticed_unpriced: bool,
    /// That costs are estimated was said.
    #[serde(default)]
    pub noticed_estimate: bool,
    /// How full the usage windows of the subscription are.
    #[serde(default)]
    pub quota: Vec<Quota>,
    /// That the agent does not report its quota was said.
    #[serde(default)]
    pub noticed_no_quota: bool,
    /// Where a run with phases is.
    #[serde(default)]
    pub phase: Phase,
    /// The checks before the first iteration, and as they were run last.
    #[serde(default)]
    pub compared: Compared,
    /// Which judge rejected something last, what, and how often in a row.
    #[serde(default)]
    pub rejection: Option<(usize, Rejection, u32)>,
    /// A notice said that the cost of a judge is unknown.
    #[serde(default)]
    pub noticed_unpriced_judge: bool,
    /// Commits and rejected claims so far.
    #[serde(default)]
    pub changed: Changed,
}

impl Memory {
    /// Remembers a state of the working directory; true when it has been so before.
    pub(crate) fn was_here_before(&mut self, fingerprint: u64) -> bool {
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
