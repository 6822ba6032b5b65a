//! Time as the agent lived it: four clocks that stand still while the agent is paused or the machine sleeps.
//!
//! All deadlines are points on one time line of *active* time. Nothing here waits, and nothing here knows a process.

use std::time::Duration;

use tokio::time::Instant;

use super::StopReason;

/// Limits on an agent's time; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Until the first byte of output.
    pub startup: Option<Duration>,
    /// Between bytes, while the process tree uses no processor time either.
    pub idle: Option<Duration>,
    /// Between bytes, whatever the process tree does: for a program that always shows that it works.
    pub silence: Option<Duration>,
    /// For everything.
    pub total: Option<Duration>,
    /// From [`Process::turn_ended`](super::Process::turn_ended) to the end of the process.
    pub after_end: Duration,
    /// From the end of the process to the end of its output.
    pub drain: Duration,
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            startup: None,
            idle: None,
            silence: None,
            total: None,
            after_end: Duration::from_secs(5),
            drain: Duration::from_millis(200),
        }
    }
}

/// The longest time between two looks at the clock. It bounds what a suspended machine can add.
pub(super) const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Stopwatch {
    active: Duration,
    looked: Instant,
    paused: bool,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { active: Duration::ZERO, looked: Instant::now(), paused: false }
    }

    /// Active time until now.
    ///
    /// The owner looks at least every [`LOOK`]. A longer gap means that ralph itself did not run (stopped, suspended
    /// with the machine, frozen container), so the agent did not run either or could not be heard.
    pub(crate) fn look(&mut self) -> Duration {
        let now = Instant::now();
        let passed = now - self.looked;
        self.looked = now;
        if !self.paused {
            self.active += if passed > 2 * LOOK { LOOK } else { passed };
        }
        self.active
    }

    pub(crate) fn pause(&mut self) {
        self.look();
        self.paused = true;
    }

    pub(crate) fn resume(&mut self) {
        self.look();
        self.paused = false;
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused
    }

    /// When the active time will be `at`, if nothing pauses it.
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.looked + at.saturating_sub(self.active)
    }
}

/// What the clocks have seen of an agent.
#[derive(Debug)]
pub(super) struct Watch {
    clocks: Clocks,
    heard: bool,
    /// The last byte, or the last sign of work in the tree.
    alive: Duration,
    turn_ended: Option<Duration>,
    sampler: Sampler,
}

/// What is to be done when a deadline of the [`Watch`] has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Stop(StopReason),
    /// See whether the silent tree uses processor time, and tell [`Watch::sampled`].
    Sample,
}

impl Watch {
    pub(crate) fn new(clocks: Clocks) -> Self {
        Self { clocks, heard: false, alive: Duration::ZERO, turn_ended: None, sampler: Sampler::default() }
    }

    pub(crate) fn heard(&mut self, now: Duration) {
        self.heard = true;
        self.alive = now;
        self.sampler = Sampler::default();
    }

    pub(crate) fn allow(&mut self, total: Option<Duration>) {
        self.clocks.total = total;
    }

    /// Someone does something with it, which is no silence either.
    pub(crate) fn touched(&mut self, now: Duration) {
        self.alive = now;
    }

    pub(crate) fn turn_ended(&mut self, now: Duration) {
        self.turn_ended.get_or_insert(now);
    }

    /// The next point in time at which [`Watch::due`] has something to say.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let startup = self.startup();
        let after_end = self.after_end();
        [startup, self.silence(), self.idle().map(|idle| self.next_sample(idle)), self.clocks.total, after_end]
            .into_iter()
            .flatten()
            .min()
    }

    /// What has become due. The clocks are asked in the order in which their reasons explain most.
    pub(crate) fn due(&self, now: Duration) -> Option<Due> {
        let passed = |deadline: Option<Duration>| deadline.is_some_and(|deadline| now >= deadline);
        if passed(self.after_end()) {
            Some(Due::Stop(StopReason::AfterEnd))
        } else if passed(self.clocks.total) {
            Some(Due::Stop(StopReason::Total))
        } else if passed(self.startup()) {
            Some(Due::Stop(StopReason::Startup))
        } else if passed(self.silence()) {
            Some(Due::Stop(StopReason::Idle))
        } else {
            let idle = self.idle()?;
            if now < self.next_sample(idle) {
                None
            } else if now >= self.alive.saturating_add(idle) && self.sampler.quiet_at == Some(now) {
                Some(Due::Stop(StopReason::Idle))
            } else {
                Some(Due::Sample)
            }
        }
    }

    /// Takes the processor time that the tree has used so far.
    pub(crate) fn sampled(&mut self, now: Duration, used: Duration) {
        match self.sampler.last.replace((now, used)) {
            // The first sample of a silence is only something to compare with. Where it comes too late, because
            // nobody looked before, the limit waits for the second.
            None => {
                let idle = self.clocks.idle.unwrap_or_default();
                self.alive = self.alive.max((now + sample_pause(idle)).saturating_sub(idle));
            }
            // Half a hundredth: an idle runtime's timers stay below it, any real work is far above.
            Some((at, before)) if used.saturating_sub(before) > now.saturating_sub(at) / 200 => self.alive = now,
            Some(_) => self.sampler.quiet_at = Some(now),
        }
    }

    fn startup(&self) -> Option<Duration> {
        if self.heard { None } else { self.clocks.startup }
    }

    fn silence(&self) -> Option<Duration> {
        Some(self.alive.saturating_add(self.clocks.silence?))
    }

    fn after_end(&self) -> Option<Duration> {
        Some(self.turn_ended? + self.clocks.after_end)
    }

    /// Before the first byte the start-up clock, if there is one, speaks for both.
    fn idle(&self) -> Option<Duration> {
        if self.startup().is_some() { None } else { self.clocks.idle }
    }

    fn next_sample(&self, idle: Duration) -> Duration {
        let end = self.alive.saturating_add(idle);
        let pause = sample_pause(idle);
        match self.sampler.last {
            None => self.alive.saturating_add(pause),
            // The last look before the limit falls on the limit.
            Some((at, _)) if at < end => (at + pause).min(end),
            Some((at, _)) => at,
        }
    }
}

/// The time between two samples: coarse, because each one reads the process table, but at least two in a silence.
fn sample_pause(idle: Duration) -> Duration {
    (idle / 8).clamp(Duration::from_secs(1), Duration::from_secs(30)).min(idle / 2)
}

/// Looks at the tree's processor time while it is silent.
#[derive(Debug, Default)]
struct Sampler {
    last: Option<(Duration, Duration)>,
    quiet_at: Option<Duration>,
}

#[cfg(test)]
#[path = "clocks_tests.rs"]
mod tests;
