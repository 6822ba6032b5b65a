//! An iteration that is over: what the decision, the journal and plug-ins learn about it.

use std::time::Duration;

use super::budget::Spent;
use super::decide::{Failure, Report};
use super::iteration::StatusBlocks;
use super::judge::judge;
use super::reading::Reading;
use crate::error::UserError;
use crate::event::FailureClass;
use crate::journal::Receipt;
use crate::local_time;
use crate::process::{Ended, StopReason};
use crate::signals::promise::Heard;

/// An iteration that is over.
#[derive(Debug)]
pub(crate) struct IterationResult {
    pub report: Report,
    pub receipt: Receipt,
    /// How long it stopped with ralph itself.
    pub suspended: Duration,
    /// What the agent's own words say to the loop.
    pub heard: Heard,
    /// What it did with its tools, as one number.
    pub work: Option<u64>,
    /// True when the agent did or said anything at all.
    pub answered: bool,
    /// True when its own display showed anything.
    pub displayed: bool,
    /// How its process ended.
    pub process: Ended,
    /// True when a failure is only assumed, because the dialect's terminal event did not come.
    pub assumed: bool,
    /// Why the run must end here: a check that cannot run at all, so that no claim can ever be accepted, or files that were
    /// changed behind the back of the wall.
    pub must_stop: Option<UserError>,
    /// Lines of tools that complain of permissions.
    pub complaints: Vec<String>,
    /// What the judges of its claim spent.
    pub judges: Spent,
}

impl IterationResult {
    /// True when the agent ended by itself with exit code 0, which is all that plug-in contracts ask of it.
    pub(crate) fn ended_well(&self) -> bool {
        self.process.exit.success() && self.process.stopped.is_none()
    }

    /// Replaces "stopped by the user" when ralph itself stopped the agent because its login was refused.
    pub(super) fn stopped_for_login(&mut self, refused: Option<String>) {
        let Some(message) = refused.filter(|_| self.process.stopped == Some(StopReason::Asked)) else { return };
        self.report.ended.clone_from(&message);
        self.receipt.ended.clone_from(&message);
        self.receipt.class = Some(FailureClass::Auth);
        self.report.failure = Some(Failure { class: FailureClass::Auth, message, retry_after: None });
    }

    /// Takes back a failure that the contract does not know.
    pub(crate) fn forgive(&mut self) {
        self.report.failure = None;
        "exit code 0".clone_into(&mut self.report.ended);
        self.receipt.class = None;
        self.receipt.ended.clone_from(&self.report.ended);
    }
}

pub(super) fn result_of(
    number: u32,
    reading: Reading,
    ended: &Ended,
    interrupted: bool,
    blocks: StatusBlocks,
) -> IterationResult {
    let authority = reading.authority();
    let (tally, mut heard, stall, status) = reading.end();
    let signal = heard.signal.take();
    // The status block is the driver contract's; elsewhere it is words like any others.
    let signal = match status {
        Some(block) if blocks == StatusBlocks::Count => block.over(signal),
        _ => signal,
    };
    let assumed = tally.assumed;
    let answered = tally.answered || tally.tools > 0;
    let judgement = judge(&tally, authority, ended, &local_time::now());
    let receipt = Receipt {
        iteration: number,
        ended: judgement.ended.clone(),
        class: judgement.failure.as_ref().map(|failure| failure.class),
        duration_ms: u64::try_from(ended.active.as_millis()).unwrap_or(u64::MAX),
        usage: tally.usage,
        tools: tally.tools,
        tools_failed: tally.tools_failed,
        unparsed: tally.unparsed,
        session: tally.session,
        context: tally.context,
        quota: tally.quota,
        left_running: false,
        denied: tally.denied.clone(),
        left_behind: ended.left_behind.iter().map(ToString::to_string).collect(),
        survivors: ended.survivors.iter().map(ToString::to_string).collect(),
        ..Receipt::default()
    };
    let report = Report {
        failure: judgement.failure,
        signal,
        interrupted,
        ended: judgement.ended,
        denied: tally.denied,
        ..Report::default()
    };
    IterationResult {
        report,
        receipt,
        suspended: Duration::ZERO,
        heard,
        work: stall.work(),
        answered,
        displayed: false,
        process: ended.clone(),
        assumed,
        must_stop: None,
        complaints: Vec::new(),
        judges: Spent::default(),
    }
}
