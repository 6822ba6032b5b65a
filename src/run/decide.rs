//! What happens next: a pure function of the policy, the state of the run and the iteration just over.

use std::time::Duration;

use crate::event::FailureClass;
use crate::journal::Outcome;
use crate::signals::Signal;

/// What is added to a reset time, so that the limit is really over.
const RESET_MARGIN: Duration = Duration::from_secs(30);
/// The first wait for a rate limit whose end nobody tells; it doubles.
const FIRST_LIMIT_WAIT: Duration = Duration::from_secs(5 * 60);
/// The longest such wait.
const LONGEST_LIMIT_WAIT: Duration = Duration::from_secs(3600);
/// The first wait after an overload or network failure; it doubles.
const FIRST_BACK_OFF: Duration = Duration::from_secs(5);
/// The longest such wait.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(5 * 60);
/// How many of them in a row end the run.
const MOST_BACK_OFFS: u32 = 8;

/// What the user allows.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The most iterations.
    pub max_iterations: u32,
    /// The most time.
    pub max_time: Duration,
    /// How many failed iterations in a row end the run.
    pub max_consecutive_failures: u32,
    /// The longest total wait for rate limits.
    pub max_wait: Duration,
}

/// Where the run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
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
    /// Time waited for rate limits.
    pub waited: Duration,
}

/// What an iteration came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `None`: the turn succeeded.
    pub failure: Option<Failure>,
    /// What the agent said to the loop.
    pub signal: Option<Signal>,
    /// It went on with an earlier session, so that a fresh one may help.
    pub resumed: bool,
    /// A person asked the run to stop.
    pub interrupted: bool,
    /// It was stopped because the run has no time left; that is nobody's failure.
    pub out_of_time: bool,
    /// How it ended, in words.
    pub ended: String,
}

/// Why an iteration failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub class: FailureClass,
    /// In words.
    pub message: String,
    /// How long until a limit is over, seen from now.
    pub retry_after: Option<Duration>,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The next iteration, after a wait.
    Again {
        /// How long to wait before it.
        after: Duration,
        /// Why.
        reason: String,
    },
    /// The run is over.
    Finish {
        /// How.
        outcome: Outcome,
        /// Why.
        reason: String,
    },
}

/// Decides. `elapsed` is the time since the run began.
pub fn decide(policy: &Policy, state: State, report: &Report, elapsed: Duration) -> (State, Verdict) {
    let (state, verdict) = judge(policy, state, report);
    (state, within_limits(policy, state, report, elapsed, verdict))
}

fn judge(policy: &Policy, before: State, report: &Report) -> (State, Verdict) {
    let counted = State { iterations: before.iterations + 1, waited: before.waited, ..State::default() };
    let Some(failure) = &report.failure else {
        let verdict = match &report.signal {
            Some(Signal::Complete { marker }) => finish(Outcome::Complete, format!("the agent said `{marker}`")),
            _ if report.interrupted => finish(Outcome::Interrupted, "stopped by the user".to_owned()),
            Some(Signal::Replan { marker }) => {
                finish(Outcome::Human, format!("the agent asks for another plan (`{marker}`)"))
            }
            Some(Signal::NearMiss { reason, .. }) => again(format!("a completion marker was seen, but {reason}")),
            None => again("the work goes on".to_owned()),
        };
        return (counted, verdict);
    };
    if report.interrupted {
        return (counted, finish(Outcome::Interrupted, "stopped by the user".to_owned()));
    }
    if report.out_of_time {
        return (
            counted,
            finish(Outcome::Limit, format!("the time limit of {} s is reached", policy.max_time.as_secs())),
        );
    }
    let message = &failure.message;
    match failure.class {
        FailureClass::Auth | FailureClass::Config | FailureClass::Permission => {
            (counted, finish(Outcome::AgentUnusable, message.clone()))
        }
        FailureClass::Refusal => (counted, finish(Outcome::Human, message.clone())),
        FailureClass::RateLimit => rate_limit(policy, before, failure),
        FailureClass::Overload | FailureClass::Network => back_off(before, failure),
        FailureClass::Context if before.overflows == 0 && report.resumed => {
            let state = State { overflows: 1, ..before };
            (state, again(format!("the context is full, starting afresh: {message}")))
        }
        FailureClass::Context | FailureClass::AgentLimit | FailureClass::Agent => {
            let failures = before.failures + 1;
            let state = State { failures, overflows: before.overflows, ..counted };
            let most = policy.max_consecutive_failures;
            let verdict = if failures >= most {
                finish(Outcome::Failed, format!("{failures} iterations in a row failed, the last one with: {message}"))
            } else {
                again(format!("failure {failures} of at most {most} in a row: {message}"))
            };
            (state, verdict)
        }
    }
}

/// Waits until the limit is over. Not an iteration.
fn rate_limit(policy: &Policy, before: State, failure: &Failure) -> (State, Verdict) {
    let wait = match failure.retry_after {
        Some(known) => known + RESET_MARGIN,
        None => doubled(FIRST_LIMIT_WAIT, before.limits, LONGEST_LIMIT_WAIT),
    };
    let state = State { limits: before.limits + 1, waited: before.waited + wait, ..before };
    if state.waited > policy.max_wait {
        let reason = format!(
            "{}; waiting would take {} s more than allowed",
            failure.message,
            state.waited.saturating_sub(policy.max_wait).as_secs()
        );
        return (before, finish(Outcome::RateLimited, reason));
    }
    (state, Verdict::Again { after: wait, reason: format!("rate limit: {}", failure.message) })
}

/// Tries again after a while. Not an iteration.
fn back_off(before: State, failure: &Failure) -> (State, Verdict) {
    let state = State { back_offs: before.back_offs + 1, ..before };
    if state.back_offs >= MOST_BACK_OFFS {
        let outcome = if failure.class == FailureClass::Overload { Outcome::RateLimited } else { Outcome::Failed };
        return (state, finish(outcome, format!("{MOST_BACK_OFFS} times in a row: {}", failure.message)));
    }
    let after = failure.retry_after.unwrap_or_else(|| doubled(FIRST_BACK_OFF, before.back_offs, LONGEST_BACK_OFF));
    (
        state,
        Verdict::Again {
            after: after.min(LONGEST_BACK_OFF),
            reason: format!("{}: {}", failure.class.name(), failure.message),
        },
    )
}

/// A verdict to go on, unless a limit ends the run.
fn within_limits(policy: &Policy, state: State, report: &Report, elapsed: Duration, verdict: Verdict) -> Verdict {
    let Verdict::Again { after, .. } = verdict else { return verdict };
    let limit = if elapsed + after >= policy.max_time {
        let limit = policy.max_time.as_secs();
        let class = report.failure.as_ref().map(|failure| failure.class);
        return match class {
            Some(FailureClass::RateLimit | FailureClass::Overload) if !after.is_zero() => {
                let reason = format!("waiting {} s would pass the time limit of {limit} s", after.as_secs());
                finish(Outcome::RateLimited, reason)
            }
            _ => finish(Outcome::Limit, format!("the time limit of {limit} s is reached")),
        };
    } else if state.iterations >= policy.max_iterations {
        let plural = if policy.max_iterations == 1 { "" } else { "s" };
        format!("the limit of {} iteration{plural} is reached", policy.max_iterations)
    } else {
        return verdict;
    };
    match &report.failure {
        Some(failure) => {
            finish(Outcome::Failed, format!("{limit}, and the last iteration failed: {}", failure.message))
        }
        None => finish(Outcome::Limit, limit),
    }
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(most)
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
