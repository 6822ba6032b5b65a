//! What is known of an iteration when it is over: what the decision and the receipt are made from.

use std::time::Duration;

use super::budget::Spent;
use super::decide::Until;
use crate::event::FailureClass;
use crate::journal::{IterationOutcome, Receipt};
use crate::signals::Signal;

/// What an iteration came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// `None`: the turn succeeded.
    pub failure: Option<Failure>,
    /// What the agent said to the loop.
    pub signal: Option<Signal>,
    /// It continued with an earlier session, so that a fresh one may help.
    pub resumed: bool,
    /// A person asked the run to stop.
    pub interrupted: bool,
    /// It was stopped because the run has no time left; that is nobody's failure.
    pub out_of_time: bool,
    /// How it ended, in words.
    pub ended: String,
    /// Why a claim cannot hold, whatever the agent says: open items of the plan, forbidden changes.
    pub veto: Option<String>,
    /// What the user's own commands say to the claim.
    pub verification: Verification,
    /// What other agents say to it.
    pub judged: Judged,
    /// Whether it moved anything.
    pub progress: Progress,
    /// What it was not permitted.
    pub denied: Vec<String>,
    pub spent: Spent,
    /// Why the failure costs nothing, and what the next try does otherwise. Whoever says so makes sure that it ends.
    pub free: Option<String>,
    /// Who can take over when this agent is not usable for a while.
    pub substitute: Option<String>,
}

impl Report {
    /// True when the agent's turn went well and it says that all is done.
    pub(crate) const fn is_claim(&self) -> bool {
        self.failure.is_none() && matches!(self.signal, Some(Signal::Complete { .. }))
    }

    /// True when the checks decide whether the run is complete: after a claim, or, where they alone decide, unless the agent wants
    /// something else.
    pub(crate) const fn may_complete(&self, until: Until) -> bool {
        let quiet = matches!(self.signal, None | Some(Signal::NearMiss { .. }));
        self.is_claim() || matches!(until, Until::Checks) && self.failure.is_none() && quiet
    }

    /// True when a person stopped the iteration before its end. It does not count and is repeated on resume.
    pub(crate) const fn was_cut_off(&self) -> bool {
        self.interrupted && self.failure.is_some()
    }

    /// Writes into the receipt what the iteration came to.
    pub(crate) fn complete(&self, receipt: &mut Receipt) {
        receipt.outcome = self.outcome();
        if receipt.outcome == IterationOutcome::Interrupted {
            receipt.class = None;
        }
        if let (None, Some(Signal::Failed { reason, .. })) = (&self.failure, &self.signal) {
            receipt.ended = gave_up(reason);
        }
    }

    /// What the iteration came to.
    const fn outcome(&self) -> IterationOutcome {
        let rejected = self.veto.is_some()
            || matches!(self.verification, Verification::Failed { .. })
            || matches!(self.judged, Judged::Rejected { .. });
        match (&self.failure, &self.signal) {
            (Some(_), _) if self.interrupted => IterationOutcome::Interrupted,
            (Some(_), _) | (None, Some(Signal::Failed { .. })) => IterationOutcome::Failed,
            (None, _) if self.is_claim() && rejected => IterationOutcome::Rejected,
            (None, _) => IterationOutcome::Ok,
        }
    }
}

/// What the user's own commands say to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verification {
    #[default]
    None,
    /// They were not asked, because the run was stopped before.
    NotAsked,
    Passed,
    /// One of them does not.
    Failed {
        /// Which, and how it ended.
        summary: String,
    },
}

/// What another agent says to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Judged {
    #[default]
    NotAsked,
    /// The run was stopped before it had answered.
    Interrupted,
    /// The time of the run was over before it had answered.
    OutOfTime,
    Accepted {
        by: String,
    },
    Rejected {
        by: String,
        /// The first of its findings.
        finding: String,
        /// How often in a row it rejected the same.
        times: u32,
    },
    /// It gave no valid answer.
    NoVerdict {
        by: String,
        reason: String,
    },
}

/// Whether an iteration moved anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    #[default]
    Unknown,
    /// Something is different now.
    Made,
    None,
    /// Nothing is, but it read for so long that it gets a nudge first.
    Nudge,
}

/// Why an iteration failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub class: FailureClass,
    pub message: String,
    /// How long until a limit is over, seen from now.
    pub retry_after: Option<Duration>,
}

/// The agent said that it cannot do the work.
pub(crate) fn gave_up(reason: &str) -> String {
    format!("the agent gave up: {reason}")
}
