//! Waiting between iterations: for a rate limit, for a pause to end. An order, a key or a Unix signal ends every wait.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::coordinator::{Looping, milliseconds, stopped_by_order};
use super::iteration::record_order;
use super::plan::Keys;
use super::{Came, Interrupt, Interrupts, Recorder, quota};
use crate::control::Order;
use crate::error::UserError;
use crate::event::Quota;
use crate::journal::{Fact, Outcome};
use crate::process;
use crate::terminal::SingleKeys;

/// How often a wait looks at the wall clock: the other clock stops while a laptop sleeps.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(5);

/// How often a wait looks whether the keyboard is the run's now.
const LOOK_FOR_KEYS: Duration = Duration::from_millis(500);

impl Looping<'_> {
    /// Waits before the next iteration; an interrupt or an order to stop ends the wait and the run.
    pub(super) async fn wait(
        &mut self,
        after: Duration,
        interrupts: &mut Interrupts,
        recorder: &mut Recorder,
    ) -> Result<WaitEnd, UserError> {
        let began = Moment::now();
        let mut keyboard = self.keyboard(after);
        loop {
            if self.memory.orders.stop {
                self.memory.orders.stop = false;
                return Ok(WaitEnd::RunOver(stopped_by_order()));
            }
            let left = after.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(WaitEnd::Elapsed);
            }
            tokio::select! {
                biased;
                came = interrupts.next() => match came {
                    Came::Suspend => {
                        drop(keyboard.take());
                        let suspended = suspend();
                        // A pause is counted as a whole where it ends.
                        if !self.memory.orders.pause {
                            self.suspended += suspended;
                        }
                        keyboard = self.keyboard(after);
                    }
                    Came::Resized => {}
                    Came::Retry => return Ok(WaitEnd::Retry),
                    Came::Interrupt(interrupt, _) => return interrupted(interrupt, recorder).map(WaitEnd::RunOver),
                },
                received = self.inbox.next() => {
                    let order = record_order(received, recorder)?;
                    let retry = order == Order::Retry;
                    self.memory.orders.take(order);
                    if retry {
                        return Ok(WaitEnd::Retry);
                    }
                }
                key = key(keyboard.as_ref()) => if matches!(key, b'r' | b'R') {
                    recorder.fact(Fact::Control { order: Order::Retry })?;
                    return Ok(WaitEnd::Retry);
                },
                // `fg` gives the terminal back without a word.
                () = tokio::time::sleep(LOOK_FOR_KEYS), if keyboard.is_none() && self.wants_keys(after) => {
                    keyboard = self.keyboard(after);
                }
                () = tokio::time::sleep(left.min(LOOK_AT_CLOCK)) => {}
            }
        }
    }

    /// Keeps what the agent says of its quota. Where limits are set and it says nothing, that is said once.
    pub(super) fn remember_quota(
        &mut self,
        quotas: &[Quota],
        agent: &str,
        recorder: &mut Recorder,
    ) -> Result<(), UserError> {
        for newest in quotas {
            quota::remember(&mut self.memory.quota, newest.clone());
        }
        if self.plan.quota.is_set() && self.memory.quota.is_empty() && !self.memory.noticed_no_quota {
            self.memory.noticed_no_quota = true;
            let message = format!("`{agent}` has not reported its quota yet; `limits.quota` works only where it does");
            recorder.fact(Fact::Notice { message })?;
        }
        Ok(())
    }

    /// Waits while too much of a quota is used; gives the end of the run when that would take too long.
    pub(super) async fn wait_for_quota(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        let Some((reason, wait)) = self.plan.quota.reached(&self.memory.quota, Timestamp::now()) else {
            return Ok(None);
        };
        let policy = self.policy();
        let left = policy.max_wait.saturating_sub(self.memory.state.waited);
        let fits = |wait: &Duration| *wait <= left && policy.max_time.is_none_or(|most| self.elapsed() + *wait < most);
        let Some(wait) = wait.filter(fits) else { return Ok(Some((Outcome::RateLimited, reason))) };
        let (verdict, wait_ms) = ("wait".to_owned(), Some(milliseconds(wait)));
        recorder.fact(Fact::Decision { verdict, reason, wait_ms, outcome: None, memory: None })?;
        let wait = match self.before_wait(wait, recorder, interrupts).await? {
            Ok(wait) => wait,
            Err(end) => return Ok(Some(end)),
        };
        let end = self.wait(wait, interrupts, recorder).await?;
        self.memory.state.waited += wait;
        self.memory.quota.clear();
        match end {
            WaitEnd::RunOver(end) => Ok(Some(end)),
            WaitEnd::Elapsed | WaitEnd::Retry => Ok(None),
        }
    }

    /// The keyboard, for waits that are long enough to think about, where it is the run's.
    fn keyboard(&self, wait: Duration) -> Option<SingleKeys> {
        if self.wants_keys(wait) { SingleKeys::take() } else { None }
    }

    fn wants_keys(&self, wait: Duration) -> bool {
        self.plan.keys == Keys::Read && wait >= Duration::from_secs(1)
    }

    /// Waits until someone says to continue.
    pub(super) async fn paused(
        &mut self,
        interrupts: &mut Interrupts,
        recorder: &mut Recorder,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        while self.memory.orders.pause {
            if let WaitEnd::RunOver(end) = self.wait(Duration::from_millis(200), interrupts, recorder).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    Elapsed,
    /// A person did not want to wait any longer.
    Retry,
    RunOver((Outcome, String)),
}

/// A point in time on both clocks. Only the wall clock continues while a laptop sleeps, and only the other one is safe from
/// being set back.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    wall: Timestamp,
    monotonic: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { wall: Timestamp::now(), monotonic: Instant::now() }
    }

    pub(super) fn elapsed(self) -> Duration {
        let wall = Duration::try_from(Timestamp::now().duration_since(self.wall)).unwrap_or(Duration::ZERO);
        wall.max(self.monotonic.elapsed())
    }
}

/// Stops ralph itself until it is continued. Gives the time that does not count: only where a person can have pressed
/// Ctrl-Z, because an agent can send the Unix signal too.
pub(super) fn suspend() -> Duration {
    let (since, person) = (Instant::now(), process::is_foreground());
    process::suspend_self();
    if person { since.elapsed() } else { Duration::ZERO }
}

fn interrupted(interrupt: Interrupt, recorder: &mut Recorder) -> Result<(Outcome, String), UserError> {
    let unix_signal = interrupt.name();
    recorder.fact(Fact::Interrupt { unix_signal, action: "ended the run between iterations".into() })?;
    Ok((Outcome::Interrupted, "stopped by the user".to_owned()))
}

async fn key(keyboard: Option<&SingleKeys>) -> u8 {
    match keyboard {
        Some(keyboard) => keyboard.key().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_the_wall_clock_after_the_machine_slept() {
        let asleep = Moment { wall: Timestamp::now() - Duration::from_secs(600), monotonic: Instant::now() };
        assert!(asleep.elapsed() >= Duration::from_secs(600));
        let set_back = Moment { wall: Timestamp::now() + Duration::from_secs(600), monotonic: Instant::now() };
        assert!(set_back.elapsed() < Duration::from_secs(60));
    }
}
