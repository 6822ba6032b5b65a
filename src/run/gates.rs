//! The user's own commands at their moments: before the first iteration, after an iteration or a claim, and at the end.

use super::assignment::Assignment;
use super::coordinator::Looping;
use super::decide::{self, Until, Verification};
use super::iteration::Inputs;
use super::iteration_result::IterationResult;
use super::verify::{self, Check, Verified, When};
use super::{Interrupts, Recorder};
use crate::agent::Session;
use crate::error::UserError;
use crate::git::{By, Effort};
use crate::journal::{Asked, CheckResult, Fact, Outcome};

impl<'p> Looping<'p> {
    /// Runs the checks that are due after an iteration, and gives their results. What they say counts where the run may be complete.
    pub(super) async fn ask_checks(
        &mut self,
        result: &mut IterationResult,
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Vec<CheckResult>, UserError> {
        let until = self.plan.policy.until;
        let decides = result.report.may_complete(until) && result.report.veto.is_none();
        let went_well = result.report.failure.is_none();
        let due = self.checks(|check| match check.when {
            When::Claim => decides,
            When::Iteration => went_well,
            When::End => false,
        });
        if due.is_empty() {
            return Ok(Vec::new());
        }
        if result.report.interrupted {
            result.report.verification = if decides { Verification::NotAsked } else { Verification::None };
            return Ok(Vec::new());
        }
        let claim = decides && result.report.is_claim();
        let asked = if claim { Asked::Claim } else { Asked::Iteration };
        let mut verified =
            self.run_checks(&due, (result.receipt.iteration, asked), assignment, recorder, interrupts).await?;
        result.report.interrupted |= verified.interrupted;
        let passed = verified.passed();
        if decides {
            result.report.verification = verified.verification();
            result.must_stop = result.must_stop.take().or(verified.broken.take());
            // Without a claim, a check that fails rejects nothing.
            result.receipt.verified = (!verified.interrupted && (claim || passed)).then_some(passed);
        }
        if !passed && !verified.interrupted {
            let first = match (claim, until) {
                (true, _) => "completion rejected",
                (false, Until::Checks) => "not done yet",
                (false, Until::Claim) => "after your last answer",
            };
            self.memory.remarks.push(verified.for_prompt(first));
        }
        Ok(verified.checks)
    }

    /// Records once, before the first iteration, how the checks are that ask for it. True when a person wants the run to end.
    pub(super) async fn take_baseline(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<bool, UserError> {
        let due = self.checks(|check| check.baseline);
        if due.is_empty() || self.memory.state.iterations > self.memory.phase.start || !self.memory.compared.is_empty()
        {
            return Ok(false);
        }
        let nobody = Assignment { worker: 0, session: Session::New, hat: None };
        let verified = self.run_checks(&due, (0, Asked::Start), &nobody, recorder, interrupts).await?;
        Ok(verified.interrupted)
    }

    /// How a run ends that would be complete: the checks for its end have the last word.
    pub(super) async fn complete(
        &mut self,
        reason: String,
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(Outcome, String), UserError> {
        let due = self.checks(|check| check.when == When::End);
        if due.is_empty() {
            return Ok((Outcome::Complete, reason));
        }
        let iteration = self.memory.state.iterations;
        let verified = self.run_checks(&due, (iteration, Asked::End), assignment, recorder, interrupts).await?;
        if !verified.passed() && !verified.interrupted {
            // For a run that is resumed.
            self.memory.remarks.push(verified.for_prompt("completion rejected at the end of the run"));
        }
        Ok(decide::at_the_end(reason, &verified.verification()))
    }

    fn checks(&self, due: impl Fn(&Check) -> bool) -> Vec<&'p Check> {
        self.plan.verify.iter().filter(|check| due(check)).collect()
    }

    async fn run_checks(
        &mut self,
        due: &[&Check],
        (iteration, asked): (u32, Asked),
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Verified, UserError> {
        let environment = self.environment(assignment);
        let deadline = self.deadline();
        let (inbox, orders) = (&mut self.inbox, &mut self.memory.orders);
        let mut inputs = Inputs { interrupts, inbox, orders, deadline };
        let verified = verify::verify(due, &self.plan.workspace, &environment, &mut inputs, recorder).await?;
        let (passed, checks) = (verified.passed(), verified.checks.clone());
        if !verified.interrupted {
            self.memory.compared.see(asked, &checks);
        }
        recorder.fact(Fact::Verification { iteration, asked, passed, checks })?;
        // What the commands changed is not the agent's work.
        self.snapshots.take(By::Checks, false, Effort::Touched).await;
        self.tell_what_is_not_watched(recorder)?;
        Ok(verified)
    }
}
