//! What is known of a task in a fleet: one value in the key-value bucket, changed only from the revision that was read. It is the lease and
//! the result in one, so that whoever lost the lease cannot record a result. The queue only says that there may be something to do.

use serde::{Deserialize, Serialize};

use crate::batch::runner::Ended;
use crate::control::Order;

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(crate) enum Phase {
    /// It waits for a worker.
    Queued,
    /// A worker has the lease. `lease` is different for each time that someone takes it.
    Running { lease: String, worker: String },
    /// It was worked on, and this came of it.
    Done { ended: Ended },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub attempt: u32,
    /// How often it was put into the queue.
    pub round: u32,
    #[serde(flatten)]
    pub phase: Phase,
    /// How many leases there were.
    pub leases: u32,
    /// The run, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The newest commit that was pushed, and how many bytes of the journal came before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<String>,
    #[serde(default)]
    pub journal: u64,
    /// The commit with which the submitter gives work back that did not merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    /// How many orders were passed on.
    #[serde(default)]
    pub orders: usize,
    /// How many workers ended and gave it back in this round: none of them failed.
    #[serde(default)]
    pub given_back: u32,
}

impl Entry {
    pub(crate) const fn new(attempt: u32) -> Self {
        let (phase, run, cost_usd, pushed, carrier) = (Phase::Queued, None, None, None, None);
        Self {
            attempt,
            round: 1,
            phase,
            leases: 0,
            run,
            cost_usd,
            pushed,
            journal: 0,
            carrier,
            orders: 0,
            given_back: 0,
        }
    }

    /// The same, put into the queue again.
    pub(crate) fn again(mut self, attempt: u32) -> Self {
        (self.attempt, self.round, self.phase) = (attempt, self.round + 1, Phase::Queued);
        self.given_back = 0;
        self
    }

    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done { .. })
    }
}

/// Orders to a task's loop, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub orders: Vec<FleetOrder>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FleetOrder {
    /// For the loop.
    Loop(Order),
    /// Stops this round now.
    Cancel(u32),
}

/// What a worker does with a task that it got from the queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// It is done, or was put into the queue again since: the message is of no use any more.
    Drop,
    /// Nobody has it.
    Take,
    /// Someone has it, or had it and is lost.
    Wait,
}

/// Decides about a message of this round.
pub(crate) fn claim(entry: Option<&Entry>, round: u32) -> Claim {
    match entry {
        // The batch is over and was cleaned up.
        None => Claim::Drop,
        Some(entry) if entry.round != round => Claim::Drop,
        Some(entry) => match &entry.phase {
            Phase::Queued => Claim::Take,
            Phase::Running { .. } => Claim::Wait,
            Phase::Done { .. } => Claim::Drop,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::runner::WorkResult;

    #[test]
    fn the_entry_decides_and_not_the_message() {
        let queued = Entry::new(1);
        let running =
            Entry { phase: Phase::Running { lease: "l".to_owned(), worker: "w".to_owned() }, ..queued.clone() };
        let ended = Ended { run: None, cost_usd: None, result: WorkResult::Stopped };
        let done = Entry { phase: Phase::Done { ended }, ..queued.clone() };
        assert_eq!(claim(None, 1), Claim::Drop);
        assert_eq!(claim(Some(&queued), 1), Claim::Take);
        assert_eq!(claim(Some(&queued), 2), Claim::Drop);
        assert_eq!(claim(Some(&running), 1), Claim::Wait);
        assert_eq!(claim(Some(&done), 1), Claim::Drop);
        let again = done.again(1);
        assert_eq!((claim(Some(&again), 1), claim(Some(&again), 2)), (Claim::Drop, Claim::Take));
        for entry in [queued, running, again] {
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        }
    }
}
