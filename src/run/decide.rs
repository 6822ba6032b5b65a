//! What happens next: a pure function of the policy, the state of the run and the iteration just over.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::budget::Spent;
use super::judge::STOPPED;
use super::report::gave_up;
pub(crate) use super::report::{Failure, Judged, Progress, Report, Verification};
use crate::duration;
use crate::event::FailureClass;
use crate::journal::Outcome;
use crate::plural::plural;
use crate::signals::Signal;

/// What is added to a reset time, so that the limit is really over.
const RESET_MARGIN: Duration = Duration::from_secs(30);
/// The first wait for a rate limit of unknown length; it doubles.
const FIRST_LIMIT_WAIT: Duration = Duration::from_secs(5 * 60);
/// The longest such wait.
const LONGEST_LIMIT_WAIT: Duration = Duration::from_secs(3600);
/// The first wait after an overload or network failure; it doubles.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
/// The longest such wait.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(5 * 60);
/// How many of them in a row end the run.
const MOST_BACK_OFFS: u32 = 8;
/// The wait after the second agent failure in a row; it doubles. The first one is tried again at once.
const FIRST_FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// The longest such wait.
const LONGEST_FAILURE_PAUSE: Duration = Duration::from_secs(10);
/// From this many rejected claims in a row on, the reason says to look at the checks.
pub(crate) const LOUD_CLAIMS: u32 = 3;
/// How many rejections of the same thing by a judge end a run.
const SAME_REJECTIONS: u32 = 3;
/// How many iterations in a row with denials and without progress end a run.
const MOST_DENIED: u32 = 2;

/// The reason when there is nothing to tell.
const GOES_ON: &str = "";
/// How the reason begins when a claim does not hold.
const REJECTED: &str = "completion rejected";
/// How it begins when the checks alone decide, and say no.
const NOT_YET: &str = "not done yet";

/// What the user allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub max_iterations: u32,
    /// The most time; `None` for as long as it takes.
    pub max_time: Option<Duration>,
    /// How many failed iterations in a row end the run.
    pub max_consecutive_failures: u32,
    /// The longest total wait for rate limits.
    pub max_wait: Duration,
    /// A claim before this many iterations does not count.
    pub min_iterations: u32,
    /// How many claims in a row make a completion.
    pub confirmations: u32,
    pub max_tokens: Option<u64>,
    pub max_cost_usd: Option<f64>,
    /// How many iterations in a row without progress end the run; 0 for any number.
    pub max_stalled: u32,
    /// What becomes of a run whose agent is not permitted something.
    pub permission: Permission,
    /// What ends it as complete.
    pub until: Until,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_iterations: 100,
            max_time: Some(Duration::from_secs(4 * 3600)),
            max_consecutive_failures: 5,
            max_wait: Duration::from_secs(6 * 3600),
            min_iterations: 0,
            confirmations: 1,
            max_tokens: None,
            max_cost_usd: None,
            max_stalled: 10,
            permission: Permission::Threshold,
            until: Until::Claim,
        }
    }
}

/// What ends a run as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// The agent says that it is done, and the checks agree.
    #[default]
    Claim,
    /// The checks pass, whatever the agent says.
    Checks,
}

/// What becomes of a run whose agent is not permitted something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    Continue,
    /// It stops at the first denial.
    Halt,
    /// It stops when two iterations in a row were denied something and moved nothing.
    #[default]
    Threshold,
}

/// Where the run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoopState {
    /// Iterations that count.
    pub iterations: u32,
    /// Agent failures in a row.
    pub failures: u32,
    /// Overloads and network failures in a row.
    pub back_offs: u32,
    /// Rate limits in a row.
    pub limits: u32,
    /// Context overflows in a row.
    pub overflows: u32,
    /// Time really waited for rate limits.
    pub waited: Duration,
    /// Claims in a row that held.
    pub claims: u32,
    /// Claims in a row that verification refuted.
    pub refuted: u32,
    /// Iterations in a row that moved nothing.
    pub stalled: u32,
    /// Iterations in a row that were denied something and moved nothing.
    pub denied: u32,
    pub spent: Spent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The next iteration, after a wait.
    Again {
        /// How long to wait before it.
        after: Duration,
        reason: String,
    },
    Finish {
        outcome: Outcome,
        reason: String,
    },
}

impl Verdict {
    /// Why a claim was rejected. Its iteration ended well, so that its exit code says nothing to the next one.
    pub(crate) fn rejection(&self) -> Option<&str> {
        match self {
            Self::Again { reason, .. } => reason.lines().next(),
            Self::Finish { .. } => None,
        }
    }
}

/// Decides. `elapsed` is the time since the run began.
pub(crate) fn decide(policy: &Policy, before: LoopState, report: &Report, elapsed: Duration) -> (LoopState, Verdict) {
    let (mut state, verdict) = judge(policy, before, report);
    state.spent = before.spent.and(report.spent);
    let counted = state.iterations > before.iterations;
    if counted {
        state.stalled = stalled_after(before, report);
        state.denied =
            if report.denied.is_empty() || report.progress == Progress::Made { 0 } else { before.denied + 1 };
    }
    let verdict = permitted(policy, state, report, counted, verdict);
    let verdict = moving(policy, state, counted, verdict);
    (state, within_limits(policy, state, report, elapsed, verdict))
}

fn judge(policy: &Policy, before: LoopState, report: &Report) -> (LoopState, Verdict) {
    let counted = LoopState {
        iterations: before.iterations + 1,
        waited: before.waited,
        refuted: before.refuted,
        ..LoopState::default()
    };
    let Some(failure) = &report.failure else {
        return match &report.signal {
            _ if report.may_complete(policy.until) => claimed(policy, before, counted, report),
            _ if report.interrupted => (counted, stopped()),
            Some(Signal::Replan { marker }) => {
                (counted, finish(Outcome::Human, format!("the agent asks for another plan (`{marker}`)")))
            }
            Some(Signal::Question { text }) => {
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                (counted, finish(Outcome::Human, format!("the agent asks: {first}")))
            }
            Some(Signal::Blocked { reason }) => {
                (counted, finish(Outcome::Human, format!("the agent is blocked: {reason}")))
            }
            Some(Signal::Failed { reason, .. }) => failed(policy, before, counted, &gave_up(reason)),
            Some(Signal::NearMiss { reason, .. }) => (counted, again(format!("completion marker ignored: {reason}"))),
            // A claim may complete the run, and was looked at above.
            Some(Signal::Complete { .. }) | None => (counted, again(GOES_ON.to_owned())),
        };
    };
    if report.interrupted {
        return (before, stopped());
    }
    if report.out_of_time {
        return (counted, finish(Outcome::Limit, time_is_up(policy)));
    }
    let message = &failure.message;
    if let Some(free) = &report.free {
        return (before, again(format!("{free}: {message}")));
    }
    match failure.class {
        FailureClass::Auth | FailureClass::RateLimit if report.substitute.is_some() => {
            let substitute = report.substitute.as_deref().unwrap_or_default();
            (before, again(format!("`{substitute}` takes over: {message}")))
        }
        FailureClass::Permission if policy.permission == Permission::Continue => {
            failed(policy, before, counted, message)
        }
        FailureClass::Auth | FailureClass::Config | FailureClass::Permission => {
            (counted, finish(Outcome::AgentUnusable, message.clone()))
        }
        FailureClass::Refusal => (counted, finish(Outcome::Human, message.clone())),
        FailureClass::RateLimit => rate_limit(policy, before, failure),
        FailureClass::Overload | FailureClass::Network => back_off(before, failure),
        FailureClass::Context if before.overflows == 0 && report.resumed => {
            let state = LoopState { overflows: 1, ..before };
            (state, again(format!("a fresh session may help: {message}")))
        }
        FailureClass::Context | FailureClass::AgentLimit | FailureClass::Agent => {
            failed(policy, before, counted, message)
        }
    }
}

/// The agent says that it is done, or the checks alone decide. The word of the agent is not enough.
fn claimed(policy: &Policy, before: LoopState, counted: LoopState, report: &Report) -> (LoopState, Verdict) {
    let (said, rejected) = match &report.signal {
        Some(Signal::Complete { marker }) => (Some(format!("the agent said `{marker}`")), REJECTED),
        _ => (None, NOT_YET),
    };
    let refuse = |state: LoopState, why: String| (state, if report.interrupted { stopped() } else { again(why) });
    if let Some(veto) = &report.veto {
        return refuse(counted, format!("{rejected}: {veto}"));
    }
    match &report.verification {
        Verification::NotAsked => return (counted, stopped()),
        Verification::Failed { summary } if said.is_none() => return refuse(counted, format!("{NOT_YET}: {summary}")),
        Verification::Failed { summary } => {
            let refuted = before.refuted + 1;
            let loud = if refuted >= LOUD_CLAIMS {
                format!(" ({refuted} times in a row; look at the check, or at the prompt)")
            } else {
                String::new()
            };
            return refuse(LoopState { refuted, ..counted }, format!("{REJECTED}: {summary}{loud}"));
        }
        // Nobody said anything.
        Verification::None if said.is_none() => return refuse(counted, GOES_ON.to_owned()),
        Verification::None | Verification::Passed => {}
    }
    let counted = LoopState { refuted: 0, ..counted };
    match &report.judged {
        Judged::NotAsked | Judged::Accepted { .. } => {}
        Judged::Interrupted => return (counted, stopped()),
        Judged::OutOfTime => return (counted, finish(Outcome::Limit, time_is_up(policy))),
        Judged::NoVerdict { by, reason } => {
            return (counted, finish(Outcome::Human, format!("the judge `{by}` gave no verdict: {reason}")));
        }
        Judged::Rejected { by, finding, times } if *times >= SAME_REJECTIONS => {
            let reason = format!("the judge `{by}` rejected the same thing {times} times in a row: {finding}");
            return (counted, finish(Outcome::Human, reason));
        }
        Judged::Rejected { by, finding, .. } => {
            return refuse(counted, format!("{rejected} by the judge `{by}`: {finding}"));
        }
    }
    let state = LoopState { claims: before.claims + 1, ..counted };
    let verdict = if state.iterations < policy.min_iterations {
        again(format!(
            "{rejected}: iteration {} of at least {}",
            state.iterations,
            plural(policy.min_iterations, "iteration")
        ))
    } else if state.claims < policy.confirmations {
        let said = said.as_deref().unwrap_or("all checks passed");
        again(format!("{said}: confirmation {} of {}", state.claims, policy.confirmations))
    } else {
        finish(Outcome::Complete, completed(said, report))
    };
    match verdict {
        Verdict::Again { .. } if report.interrupted => (state, stopped()),
        verdict => (state, verdict),
    }
}

/// Why a run is complete.
fn completed(said: Option<String>, report: &Report) -> String {
    let judge = match &report.judged {
        Judged::Accepted { by } => Some(format!("the judge `{by}` accepted it")),
        _ => None,
    };
    let passed = report.verification == Verification::Passed;
    let checks = passed.then(|| "all checks passed".to_owned());
    if let (Some(said), false, None) = (&said, passed, &judge) {
        return format!("{said}; not checked: no `verify` command");
    }
    let parts: Vec<String> = [said, checks, judge].into_iter().flatten().collect();
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{}, and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// How a run ends that would be complete, after the checks for its end.
pub(crate) fn at_the_end(reason: String, checks: &Verification) -> (Outcome, String) {
    match checks {
        Verification::None | Verification::Passed => (Outcome::Complete, reason),
        Verification::NotAsked => (Outcome::Interrupted, STOPPED.to_owned()),
        Verification::Failed { summary } => (Outcome::Failed, format!("a check at the end failed: {summary}")),
    }
}

/// A failure that burns one of the tries.
fn failed(policy: &Policy, before: LoopState, counted: LoopState, message: &str) -> (LoopState, Verdict) {
    let failures = before.failures + 1;
    let state = LoopState { failures, overflows: before.overflows, ..counted };
    let most = policy.max_consecutive_failures;
    if failures >= most {
        let times = if failures == 1 { "the iteration".to_owned() } else { format!("{failures} iterations in a row") };
        let reason = format!("{times} failed; the last error: {message}");
        return (state, finish(Outcome::Failed, reason));
    }
    let after = match before.failures {
        0 => Duration::ZERO,
        more => doubled(FIRST_FAILURE_PAUSE, more - 1, LONGEST_FAILURE_PAUSE),
    };
    (state, Verdict::Again { after, reason: format!("failure {failures} of at most {most} in a row: {message}") })
}

/// Before the time of a wait that is too long.
const WAIT_TOO_LONG: &str = "the limit ends in ";

/// How long a run that was not allowed to wait would have waited, from the reason with which it ended.
pub(crate) fn wait_in(reason: &str) -> Option<Duration> {
    let (_, rest) = reason.rsplit_once(WAIT_TOO_LONG)?;
    duration::parse(rest.split_once(',')?.0)
}

/// Waits until the limit is over. Not an iteration.
fn rate_limit(policy: &Policy, before: LoopState, failure: &Failure) -> (LoopState, Verdict) {
    let wait = match failure.retry_after {
        Some(known) => known + RESET_MARGIN,
        None => doubled(FIRST_LIMIT_WAIT, before.limits, LONGEST_LIMIT_WAIT),
    };
    // Only the coordinator knows how long it really waited: it adds that to `waited`.
    let state = LoopState { limits: before.limits + 1, ..before };
    let total = before.waited + wait;
    if total > policy.max_wait {
        let reason = format!(
            "{}; {WAIT_TOO_LONG}{}, and `limits.max_wait` allows {} in all",
            failure.message,
            duration::shown(Duration::from_secs(wait.as_secs())),
            duration::shown(policy.max_wait),
        );
        return (before, finish(Outcome::RateLimited, reason));
    }
    (state, Verdict::Again { after: wait, reason: format!("rate limit: {}", failure.message) })
}

/// Tries again after a while. Not an iteration.
fn back_off(before: LoopState, failure: &Failure) -> (LoopState, Verdict) {
    let state = LoopState { back_offs: before.back_offs + 1, ..before };
    if state.back_offs >= MOST_BACK_OFFS {
        let outcome = if failure.class == FailureClass::Overload { Outcome::RateLimited } else { Outcome::Failed };
        return (state, finish(outcome, format!("{MOST_BACK_OFFS} times in a row: {}", failure.message)));
    }
    let after = failure.retry_after.unwrap_or_else(|| doubled(FIRST_BACK_OFF, before.back_offs, LONGEST_BACK_OFF));
    let reason = format!("{}: {}", failure.class.name(), failure.message);
    (state, Verdict::Again { after: after.min(LONGEST_BACK_OFF), reason })
}

/// How many iterations in a row moved nothing.
const fn stalled_after(before: LoopState, report: &Report) -> u32 {
    match report.progress {
        Progress::Made => 0,
        Progress::None => before.stalled + 1,
        Progress::Unknown | Progress::Nudge => before.stalled,
    }
}

/// A verdict to continue, unless the agent is not permitted what it needs.
fn permitted(policy: &Policy, state: LoopState, report: &Report, counted: bool, verdict: Verdict) -> Verdict {
    let Verdict::Again { .. } = verdict else { return verdict };
    if report.denied.is_empty() || !counted {
        return verdict;
    }
    let tools = report.denied.join(", ");
    match policy.permission {
        Permission::Halt => finish(Outcome::AgentUnusable, format!("the agent was denied {tools}")),
        Permission::Threshold if state.denied >= MOST_DENIED => {
            let reason = format!("{tools} denied in {MOST_DENIED} iterations in a row without progress");
            finish(Outcome::AgentUnusable, reason)
        }
        Permission::Threshold | Permission::Continue => verdict,
    }
}

/// A verdict to continue, unless nothing moves any more.
fn moving(policy: &Policy, state: LoopState, counted: bool, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Again { reason, .. } if counted && policy.max_stalled > 0 && state.stalled >= policy.max_stalled => {
            let times = plural(state.stalled, "iteration");
            finish(
                Outcome::NoProgress,
                if reason == GOES_ON {
                    format!("no changes in {times}")
                } else {
                    format!("no changes in {times}; the last one: {reason}")
                },
            )
        }
        verdict => verdict,
    }
}

/// A verdict to continue, unless a limit ends the run.
fn within_limits(policy: &Policy, state: LoopState, report: &Report, elapsed: Duration, verdict: Verdict) -> Verdict {
    let Verdict::Again { after, reason } = &verdict else { return verdict };
    let after = *after;
    if policy.max_time.is_some_and(|most| elapsed + after >= most) {
        let class = report.failure.as_ref().map(|failure| failure.class);
        return match class {
            Some(FailureClass::RateLimit | FailureClass::Overload) if !after.is_zero() => {
                let limit = policy.max_time.unwrap_or_default().as_secs();
                let reason = format!("waiting {} s would pass the time limit of {limit} s", after.as_secs());
                finish(Outcome::RateLimited, reason)
            }
            _ => finish(Outcome::Limit, time_is_up(policy)),
        };
    }
    let limit = if state.iterations >= policy.max_iterations {
        let plural = if policy.max_iterations == 1 { "" } else { "s" };
        format!("limit reached: {} iteration{plural}", policy.max_iterations)
    } else if let Some(limit) = state.spent.over(policy.max_tokens, policy.max_cost_usd) {
        limit
    } else {
        return verdict;
    };
    let failure = match (&report.failure, &report.signal) {
        (Some(failure), _) => Some(failure.message.clone()),
        (None, Some(Signal::Failed { reason, .. })) => Some(gave_up(reason)),
        (None, _) => None,
    };
    match failure {
        Some(message) => finish(Outcome::Failed, format!("{limit}; the last iteration failed: {message}")),
        None if reason == GOES_ON => finish(Outcome::Limit, limit),
        None => finish(Outcome::Limit, format!("{limit}; the last iteration: {reason}")),
    }
}

fn time_is_up(policy: &Policy) -> String {
    format!("time limit reached: {} s", policy.max_time.unwrap_or_default().as_secs())
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(most)
}

fn stopped() -> Verdict {
    finish(Outcome::Interrupted, STOPPED.to_owned())
}

const fn finish(outcome: Outcome, reason: String) -> Verdict {
    Verdict::Finish { outcome, reason }
}

const fn again(reason: String) -> Verdict {
    Verdict::Again { after: Duration::ZERO, reason }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "decide_gates_tests.rs"]
mod gates_tests;
