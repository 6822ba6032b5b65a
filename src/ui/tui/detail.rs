//! What an iteration came to so far: its plan, its tools, the files it names. A fold over all its records, in small
//! steps, so that a large iteration never makes the screen stand still.

use std::time::{Duration, Instant};

use super::index::Index;
use crate::event::Event;
use crate::journal::{Body, Record};
use crate::ui::model::{Call, Iteration};

/// How much is read at once.
const STEP: u64 = 256 * 1024;

/// What is known of one entry.
#[derive(Debug)]
pub(crate) struct Detail {
    entry: usize,
    to: u64,
    pub iteration: Iteration,
    /// The number and the offset of each record that starts a tool.
    starts: Vec<(u64, u64)>,
}

impl Detail {
    /// Begins with another entry.
    pub(crate) fn of(entry: usize, index: &Index) -> Self {
        let iteration = Iteration::of(index.run().workspace.clone());
        Self { entry, to: index.range(entry).start, iteration, starts: Vec::new() }
    }

    /// Of which entry this is.
    pub(crate) const fn entry(&self) -> usize {
        self.entry
    }

    /// Reads on for at most this long; true when there was anything.
    pub(crate) fn advance(&mut self, index: &Index, patience: Duration) -> bool {
        let start = Instant::now();
        let before = self.to;
        while self.step(index) && start.elapsed() < patience {}
        self.to > before
    }

    /// How much of the entry was read, in percent.
    pub(crate) fn percent(&self, index: &Index) -> u64 {
        let range = index.range(self.entry);
        let length = range.end.saturating_sub(range.start);
        let read = self.to.saturating_sub(range.start);
        read.saturating_mul(100).checked_div(length).unwrap_or(100)
    }

    fn step(&mut self, index: &Index) -> bool {
        let end = index.range(self.entry).end;
        let mut size = STEP;
        loop {
            let to = end.min(self.to + size);
            if self.to >= to {
                return false;
            }
            let Ok(bytes) = index.bytes(self.to..to) else { return false };
            let Some(last) = memchr::memrchr(b'\n', &bytes) else {
                if to == end {
                    return false;
                }
                size *= 4;
                continue;
            };
            for line in bytes[..=last].split_inclusive(|byte| *byte == b'\n') {
                if let Ok(record) = Record::read_line(&line[..line.len() - 1]) {
                    if matches!(record.body, Body::Agent { event: Event::ToolStart { .. }, .. }) {
                        self.starts.push((record.seq, self.to));
                    }
                    self.iteration.apply(&record);
                }
                self.to += line.len() as u64;
            }
            return true;
        }
    }

    /// Where a tool call is in the journal.
    pub(crate) fn offset(&self, call: &Call) -> Option<u64> {
        let at = self.starts.partition_point(|(seq, _)| *seq < call.seq);
        self.starts.get(at).map(|(_, offset)| *offset)
    }
}
