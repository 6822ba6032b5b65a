//! What is known of an iteration before it begins, and what silence means to it.

use super::iteration_result::IterationResult;
use crate::process::{Ended, Exit, StopReason};
use crate::signals::Signal;

/// What is known of an iteration before it begins, for its receipt.
pub(super) struct About {
    pub(super) agent: String,
    pub(super) hat: Option<String>,
    pub(super) resumed: bool,
    pub(super) left_running: bool,
    pub(super) silence: Silence,
}

/// What it means that an agent was stopped because it was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    IsFailure,
    /// A program for a person does not end by itself.
    EndsTurn,
    EndedTurn,
}

impl About {
    /// Silence that ends a turn is an end like any other.
    pub(super) fn of_silence(mut self, ended: &mut Ended) -> Self {
        if self.silence == Silence::EndsTurn && ended.stopped == Some(StopReason::Idle) {
            (ended.stopped, ended.exit) = (None, Exit::Code(0));
            self.silence = Silence::EndedTurn;
        }
        self
    }

    pub(super) fn complete(self, result: &mut IterationResult) {
        let receipt = &mut result.receipt;
        if self.silence == Silence::EndedTurn && result.report.failure.is_none() {
            "the agent was silent: its turn is over".clone_into(&mut receipt.ended);
        }
        // On its screen the prompt stands too, and the marker in it.
        if self.silence != Silence::IsFailure && matches!(result.report.signal, Some(Signal::NearMiss { .. })) {
            result.report.signal = None;
        }
        (receipt.agent, receipt.hat) = (self.agent, self.hat);
        (receipt.left_running, receipt.resumed) = (self.left_running, self.resumed);
        result.report.resumed = self.resumed;
    }
}
