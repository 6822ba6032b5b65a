//! A run as views see it: the one fold of journal records. Plain data, one record at a time, in bounded memory.
//!
//! [`Summary`] has what ralph itself recorded, [`Iteration`] what the agent of the newest iteration said and did. Views add
//! words (`words.rs`) and layout, and fold nothing themselves. The full screen reads any iteration again when someone
//! wants to see it, so it keeps an [`Iteration`] of its own for the one that is selected.

mod argument;
mod calls;
mod change;
mod iteration;

use std::collections::VecDeque;

use jiff::Timestamp;

pub(crate) use calls::{Call, Excerpt, MOST_LISTED};
pub(crate) use iteration::Iteration;

use crate::journal::summary::{IterationSummary, Said, Summary};
use crate::journal::{Activity, Body, Fact, IterationOutcome, Outcome, Record};

/// This many published events are kept.
const MOST_EVENTS: usize = 1000;
/// More of a payload is not kept.
const LONGEST_PAYLOAD: usize = 400;

#[derive(Debug)]
pub(crate) struct Model {
    pub run: Summary,
    pub iteration: Iteration,
    /// The newest events that were published.
    pub events: VecDeque<Published>,
    pub events_count: usize,
    /// When the newest record was written.
    pub newest: Option<Timestamp>,
}

/// An event that was published.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub iteration: u32,
    pub at: Timestamp,
    pub topic: String,
    /// What is said about it, shortened.
    pub payload: String,
    pub by: String,
    pub heard_by: Vec<String>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            run: Summary::light(),
            iteration: Iteration::default(),
            events: VecDeque::new(),
            events_count: 0,
            newest: None,
        }
    }

    pub(crate) fn apply(&mut self, record: &Record) {
        self.apply_at(record, 0, 0);
    }

    /// Applies a record whose place in the journal is known.
    pub(crate) fn apply_at(&mut self, record: &Record, start: u64, end: u64) {
        self.newest = Some(record.at);
        self.run.see(record, start, end);
        self.iteration.apply(record);
        if let Body::Loop(Fact::Published { iteration, event, by, heard_by }) = &record.body {
            self.events_count += 1;
            if self.events.len() == MOST_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Published {
                iteration: *iteration,
                at: record.at,
                topic: event.topic.clone(),
                payload: event.payload.chars().take(LONGEST_PAYLOAD).collect(),
                by: by.clone(),
                heard_by: heard_by.clone(),
            });
        }
    }

    /// The iteration that an agent works on.
    pub(crate) fn under_way(&self) -> Option<&IterationSummary> {
        self.run.iterations.last().filter(|last| last.ended.is_none() && self.run.end.is_none())
    }
}

/// What a run does, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    Running,
    /// It pauses after this iteration.
    Pausing,
    /// It waits for a limit to pass.
    Waiting {
        until: Timestamp,
    },
    Paused,
    /// It has no end: it was killed, or the machine stopped.
    Unfinished,
    Ended(Outcome),
}

impl RunState {
    /// `alive`: a ralph works on it.
    pub(crate) fn of(run: &Summary, alive: bool) -> Self {
        match run.activity {
            _ if !alive => run.outcome().map_or(Self::Unfinished, Self::Ended),
            Activity::Running => Self::Running,
            Activity::Pausing => Self::Pausing,
            Activity::Waiting { until, .. } => Self::Waiting { until },
            Activity::Paused => Self::Paused,
        }
    }

    /// True while a ralph works on it.
    pub(crate) const fn is_alive(self) -> bool {
        !matches!(self, Self::Unfinished | Self::Ended(_))
    }
}

/// What an iteration came to, as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationState {
    /// The agent works on it.
    Running,
    /// Its turn succeeded.
    Ok,
    /// And it said that everything is done.
    Complete,
    /// Look at it: a near miss, a question, interrupted, or without an end.
    Unclear,
    /// Its turn failed.
    Failed,
    /// It said that everything is done, and a check disagreed.
    Rejected,
}

impl IterationState {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Running, Self::Ok, Self::Complete, Self::Unclear, Self::Failed, Self::Rejected];

    /// `alive`: an agent works on it.
    pub(crate) fn of(iteration: &IterationSummary, alive: bool) -> Self {
        let Some(ended) = iteration.ended else { return if alive { Self::Running } else { Self::Unclear } };
        match (ended.outcome, iteration.said) {
            (IterationOutcome::Interrupted, _) => Self::Unclear,
            (IterationOutcome::Failed, _) => Self::Failed,
            (IterationOutcome::Rejected, _) => Self::Rejected,
            (IterationOutcome::Ok, _) if ended.verified == Some(false) => Self::Rejected,
            (_, Some(Said::Complete)) => Self::Complete,
            (_, Some(Said::NearMiss | Said::Other)) => Self::Unclear,
            (_, None) => Self::Ok,
        }
    }
}

#[cfg(test)]
#[path = "model/tests.rs"]
mod tests;
