//! The way to the end, as phases: asked, killed, drained, swept, closed.
//!
//! Only says what comes when. All times are active time (see `clocks.rs`); every phase but the first has a bound.

use std::time::Duration;

/// How long a killed tree may take to be gone. Longer only when a process hangs in the kernel.
const SWEEP: Duration = Duration::from_secs(5);

/// The same when nobody can see whether it is gone.
const UNKNOWN: Duration = Duration::from_millis(500);

/// After this many looks that found something, a sweep tries harder.
const STUBBORN: u32 = 5;

/// How often it is looked at least before it is given up.
const LOOKS: u32 = 10;

/// Between two looks at a tree that is being killed, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(20);

/// When children that may be about to end are looked at again: soon at first, and then less and less often.
pub(super) fn next_settle_look(now: Duration, until: Duration, drain: Duration) -> Duration {
    let waited = drain.saturating_sub(until.saturating_sub(now));
    (now + (waited / 2).max(Duration::from_millis(5))).min(until)
}

/// Where a process is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The signal of this step of the ladder is sent; at `until` comes the next.
    Asking {
        step: usize,
        until: Duration,
    },
    /// The process itself has ended; its output may be open until then, and its children may end by themselves. When
    /// the output has ended before, it is looked at `next` whether they have.
    Draining {
        until: Duration,
        next: Duration,
    },
    /// All that is left is killed, again and again.
    Sweeping(Sweep),
    /// Nothing lives any more; the rest of the output is read.
    Closing {
        until: Duration,
    },
    /// The end was handed out.
    Over,
}

impl Phase {
    /// When this phase has to be looked at again; none while the clocks decide.
    pub(crate) const fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Running | Self::Over => None,
            Self::Asking { until, .. } | Self::Draining { until, .. } | Self::Closing { until } => Some(*until),
            Self::Sweeping(sweep) => Some(sweep.next),
        }
    }

    /// True before anything was done to stop it, or while it may still react.
    pub(crate) const fn is_patient(&self) -> bool {
        matches!(self, Self::Running | Self::Asking { .. } | Self::Draining { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sweep {
    next: Duration,
    until: Duration,
    pause: Duration,
    clean: u8,
    looks: u32,
}

/// What a look during a sweep found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Alive,
    Clean,
    /// The process table cannot be read.
    Unknown,
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Again(Sweep),
    Done,
    /// Something is left and cannot be ended.
    GiveUp,
}

impl Sweep {
    /// The first look is due at once.
    pub(super) fn start(now: Duration) -> Self {
        Self { next: now, until: now + SWEEP, pause: FIRST_LOOK, clean: 0, looks: 0 }
    }

    /// True when killing them one by one has not ended them: they may fork and exit faster.
    pub(crate) const fn is_stubborn(&self) -> bool {
        self.looks >= STUBBORN
    }

    /// Brings the next look forward, because something has changed.
    pub(crate) fn hurry(&mut self, at: Duration) {
        self.next = self.next.min(at);
    }

    /// Two clean looks are wanted: a table that is read while processes fork can miss one.
    pub(crate) fn looked(mut self, now: Duration, look: Look) -> Next {
        self.looks += 1;
        match look {
            Look::Clean if self.clean == 1 => return Next::Done,
            Look::Clean => {
                self.clean += 1;
                self.next = now;
            }
            // On a machine that is so busy that nobody looks, time alone proves nothing.
            Look::Alive if now >= self.until && self.looks >= LOOKS => return Next::GiveUp,
            // Short of descriptors it may be read a moment later; without `/proc` it never can.
            Look::Unknown if now + SWEEP >= self.until + UNKNOWN && self.looks >= LOOKS => return Next::GiveUp,
            Look::Alive | Look::Unknown => {
                self.clean = 0;
                self.next = now + self.pause;
                self.pause = (self.pause * 2).min(LAST_LOOK);
            }
        }
        Next::Again(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clean_looks_in_a_row_end_a_sweep() {
        let now = Duration::from_secs(1);
        let Next::Again(sweep) = Sweep::start(now).looked(now, Look::Clean) else { panic!("one look is not enough") };
        let Next::Again(sweep) = sweep.looked(now, Look::Alive) else { panic!("something lives") };
        let Next::Again(sweep) = sweep.looked(now, Look::Clean) else { panic!("one look is not enough") };
        assert_eq!(sweep.looked(now, Look::Clean), Next::Done);
    }

    #[test]
    fn a_sweep_gives_up_after_its_time_and_looks_less_and_less_often() {
        let mut now = Duration::ZERO;
        let mut sweep = Sweep::start(now);
        let mut looks = 0;
        while let Next::Again(again) = sweep.looked(now, Look::Alive) {
            sweep = again;
            now = Phase::Sweeping(sweep).deadline().unwrap_or_default();
            looks += 1;
        }
        assert!(now >= SWEEP && now < SWEEP + 2 * LAST_LOOK, "{now:?}");
        assert!(looks < 300, "{looks}");
    }

    #[test]
    fn children_are_looked_at_soon_and_then_less_often_until_the_end_of_the_drain() {
        let (drain, until) = (Duration::from_millis(200), Duration::from_millis(1200));
        let mut now = Duration::from_secs(1);
        let mut looks = 0;
        while now < until {
            let next = next_settle_look(now, until, drain);
            assert!(next > now && next <= until);
            now = next;
            looks += 1;
        }
        assert!((5..=15).contains(&looks), "{looks}");
    }
}
