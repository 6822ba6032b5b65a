//! Which worker can be used now: the chosen one, or, while that one is limited or locked out, the first substitute. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who is out, by their place in the workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Cooldown(BTreeMap<usize, Out>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Out {
    /// A limit is over then.
    Until(Timestamp),
    /// For the rest of the run.
    Forever,
}

impl Cooldown {
    /// Cannot be used until then.
    pub(crate) fn limited(&mut self, worker: usize, until: Timestamp) {
        self.0.insert(worker, Out::Until(until));
    }

    /// Cannot be used any more.
    pub(crate) fn locked_out(&mut self, worker: usize) {
        self.0.insert(worker, Out::Forever);
    }

    /// The first that can be used.
    pub(crate) fn first(&self, order: impl IntoIterator<Item = usize>, now: Timestamp) -> Option<usize> {
        order.into_iter().find(|worker| match self.0.get(worker) {
            None => true,
            Some(Out::Until(until)) => *until <= now,
            Some(Out::Forever) => false,
        })
    }

    /// How long until one of them can be used again; `None` when none ever will.
    pub(crate) fn wait(&self, order: impl IntoIterator<Item = usize>, now: Timestamp) -> Option<Duration> {
        let times = order.into_iter().filter_map(|worker| match self.0.get(&worker) {
            None => Some(now),
            Some(Out::Until(until)) => Some(*until),
            Some(Out::Forever) => None,
        });
        times.min().map(|until| Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutes_are_used_until_the_limit_is_over() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut cooldown = Cooldown::default();
        cooldown.limited(0, at(100));
        assert_eq!(cooldown.first(0..3, at(0)), Some(1));
        cooldown.locked_out(1);
        assert_eq!(cooldown.first(0..3, at(0)), Some(2));
        assert_eq!(cooldown.first(0..2, at(0)), None);
        assert_eq!(cooldown.wait(0..2, at(40)), Some(Duration::from_secs(60)));
        assert_eq!(cooldown.wait(1..2, at(40)), None);
        assert_eq!(cooldown.first(0..3, at(100)), Some(0), "the run returns when the limit is over");
    }
}
