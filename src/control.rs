//! Orders to a running loop: the one vocabulary of views, commands, journal and loop. How they travel is in
//! `control/socket.rs`.

mod socket;

pub(crate) use socket::{Inbox, Received, send};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::duration;
use crate::event::Topic;
use crate::plural::plural;

/// What a person, or the agent, tells the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Order {
    /// Words for the next iteration.
    Hint {
        /// The words.
        words: String,
    },
    /// The answer to a question, for the next iteration.
    Answer {
        /// The words.
        words: String,
    },
    /// Pauses after this iteration.
    Pause,
    /// Ends a pause.
    Continue,
    /// Ends after this iteration, or now.
    Stop {
        /// The agent is stopped too.
        #[serde(default)]
        now: bool,
    },
    /// Ends a wait.
    Retry,
    /// An event, from inside the agent.
    Emit {
        /// The event.
        #[serde(flatten)]
        event: Topic,
    },
    /// Other limits than before.
    Limit {
        /// Maximum iterations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_iterations: Option<u32>,
        /// Maximum cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_cost_usd: Option<f64>,
        /// The most time, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_seconds: Option<u64>,
    },
}

impl Order {
    /// Its name, as it is shown.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Hint { .. } => "hint",
            Self::Answer { .. } => "answer",
            Self::Pause => "pause",
            Self::Continue => "continue",
            Self::Stop { now: false } => "stop after this iteration",
            Self::Stop { now: true } => "stop now",
            Self::Retry => "retry",
            Self::Emit { .. } => "emit",
            Self::Limit { .. } => "limit",
        }
    }

    /// Its words, as they are shown.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Hint { words } | Self::Answer { words } => Some(words.clone()),
            Self::Limit { max_iterations, max_cost_usd, max_seconds } => {
                let parts = [
                    max_iterations.map(|most| plural(most, "iteration")),
                    max_cost_usd.map(|most| format!("${most:.2}")),
                    max_seconds.map(|most| format!("{most} s")),
                ];
                Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
            _ => None,
        }
    }

    /// What it will do, for the person who gave it.
    pub(crate) const fn effect(&self) -> &'static str {
        match self {
            Self::Hint { .. } => "the next iteration gets your hint",
            Self::Answer { .. } => "the next iteration gets your answer",
            Self::Pause => "pausing after this iteration; `ralph continue` ends the pause",
            Self::Continue => "continuing",
            Self::Stop { now: false } => "stopping after this iteration",
            Self::Stop { now: true } => "stopping now",
            Self::Retry => "retrying now",
            Self::Emit { .. } => "the event is published after this iteration",
            Self::Limit { .. } => "the new limit applies from now on",
        }
    }

    /// A new limit as a person writes it: `200` iterations, `$5`, `2h`.
    pub(crate) fn limit(words: &str) -> Result<Self, String> {
        let words = words.trim();
        let (mut max_iterations, mut max_cost_usd, mut max_seconds) = (None, None, None);
        if let Some(usd) = words.strip_prefix('$') {
            max_cost_usd = usd.trim().parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
        } else if let Ok(count) = words.parse() {
            max_iterations = Some(count).filter(|count| *count > 0);
        } else {
            max_seconds = duration::parse(words).map(|time| time.as_secs()).filter(|seconds| *seconds > 0);
        }
        if max_iterations.is_none() && max_cost_usd.is_none() && max_seconds.is_none() {
            return Err(format!("`{words}` is not a limit: use iterations (`200`), money (`$5`) or time (`2h`)"));
        }
        Ok(Self::Limit { max_iterations, max_cost_usd, max_seconds })
    }
}

/// What can travel over a socket.
pub(crate) trait Orderable: DeserializeOwned + Send + 'static {
    /// True for what processes below this one may order.
    fn may_come_from_agent(&self) -> bool {
        false
    }
}

impl Orderable for Order {
    /// The only order that the agent may give its own loop. Anything else would let it raise its own limits.
    fn may_come_from_agent(&self) -> bool {
        matches!(self, Self::Emit { .. })
    }
}

/// Orders that were given and not yet carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Orders {
    /// Words for the next prompt.
    pub words: Vec<String>,
    /// Pause before the next iteration.
    pub pause: bool,
    /// Stop before the next iteration.
    pub stop: bool,
    /// Events from inside the agent.
    pub emitted: Vec<Topic>,
    /// The most iterations, changed during the run.
    pub max_iterations: Option<u32>,
    /// The most money, changed during the run.
    pub max_cost_usd: Option<f64>,
    /// The most time in seconds, changed during the run.
    pub max_seconds: Option<u64>,
}

impl Orders {
    pub(crate) fn take(&mut self, order: Order) {
        match order {
            Order::Hint { words } => self.words.push(format!("a person says: {words}")),
            Order::Answer { words } => self.words.push(format!("a person answers your question: {words}")),
            Order::Pause => self.pause = true,
            Order::Continue => self.pause = false,
            Order::Stop { .. } => self.stop = true,
            Order::Retry => {}
            Order::Emit { event } => self.emitted.push(event),
            Order::Limit { max_iterations, max_cost_usd, max_seconds } => {
                self.max_iterations = max_iterations.or(self.max_iterations);
                self.max_cost_usd = max_cost_usd.or(self.max_cost_usd);
                self.max_seconds = max_seconds.or(self.max_seconds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_people_write_it() {
        let limit = |words: &str| Order::limit(words).map(|order| order.words().unwrap_or_default());
        assert_eq!(limit("200").as_deref(), Ok("200 iterations"));
        assert_eq!(limit(" $2.50 ").as_deref(), Ok("$2.50"));
        assert_eq!(limit("2h").as_deref(), Ok("7200 s"));
        for wrong in ["0", "$0", "$x", "soon", "", "-3"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
