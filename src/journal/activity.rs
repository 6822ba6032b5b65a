//! What a run that is alive does now, from its records alone.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::record::Fact;
use crate::control::Order;

/// What a run that is alive does now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// An agent works, or a check does.
    #[default]
    Running,
    /// Nothing happens until then, unless someone wants a retry.
    Waiting { until: Timestamp, reason: String },
    /// It pauses after this iteration.
    Pausing,
    /// It does nothing until someone continues it.
    Paused,
}

impl Activity {
    pub(crate) fn see(&mut self, fact: &Fact, at: Timestamp) {
        match fact {
            Fact::RunStart { .. } | Fact::IterationStart { .. } | Fact::RunEnd { .. } => *self = Self::Running,
            Fact::Decision { wait_ms: Some(wait), reason, .. } => {
                if let Ok(until) = at.checked_add(Duration::from_millis(*wait)) {
                    *self = Self::Waiting { until, reason: reason.clone() };
                }
            }
            Fact::Control { order: Order::Pause } if *self == Self::Running => *self = Self::Pausing,
            Fact::Control { order: Order::Continue } if !self.is_waiting() => *self = Self::Running,
            Fact::Decision { .. } | Fact::Control { order: Order::Retry } if self.is_waiting() => *self = Self::Running,
            Fact::Paused => *self = Self::Paused,
            _ => {}
        }
    }

    const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_decisions_say_what_a_run_does() {
        let at = Timestamp::UNIX_EPOCH;
        let decision = |wait_ms| Fact::Decision {
            verdict: "wait".into(),
            reason: "rate limit".into(),
            wait_ms,
            outcome: None,
            memory: None,
        };
        let control = |order| Fact::Control { order };
        let waiting = Activity::Waiting { until: Timestamp::from_second(60).unwrap(), reason: "rate limit".into() };
        let mut activity = Activity::default();
        for (fact, expected) in [
            (control(Order::Pause), Activity::Pausing),
            (decision(None), Activity::Pausing),
            (Fact::Paused, Activity::Paused),
            (control(Order::Continue), Activity::Running),
            (decision(Some(60_000)), waiting.clone()),
            (control(Order::Continue), waiting),
            (control(Order::Retry), Activity::Running),
        ] {
            activity.see(&fact, at);
            assert_eq!(activity, expected, "{fact:?}");
        }
    }
}
