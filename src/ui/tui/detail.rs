//! What an iteration came to so far: its plan, its tools, the files it names. A fold over all its records, in small
//! steps, so that a large iteration never makes the screen stand still.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::index::Index;
use crate::event::{Event, FileChange, Known, Status, TodoItem, Usage};
use crate::journal::{Body, Record};
use crate::ui::tools::main_argument;

/// So many calls are kept, the newest ones.
const MOST_CALLS: usize = 2000;
/// So many files are kept.
const MOST_FILES: usize = 500;
/// How much is read at once.
const STEP: u64 = 256 * 1024;

/// What is known of one entry.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    entry: usize,
    to: u64,
    pub todo: Vec<TodoItem>,
    pub calls: VecDeque<Call>,
    /// How many calls there were.
    pub count: usize,
    /// Files that the agent says it has changed.
    pub files: Vec<FileChange>,
    /// The model that answers.
    pub model: Option<String>,
    pub session: Option<String>,
    /// Tokens and money as they were reported.
    pub usage: Usage,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    id: String,
    pub at: u64,
    pub name: String,
    pub argument: String,
    pub status: Option<Status>,
    pub started: Timestamp,
    pub duration_ms: Option<u64>,
}

impl Detail {
    /// Begins with another entry.
    pub(crate) fn of(entry: usize, index: &Index) -> Self {
        Self { entry, to: index.range(entry).start, ..Self::default() }
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
                if let Ok(Record { body: Body::Agent { event, .. }, at, .. }) =
                    Record::read_line(&line[..line.len() - 1])
                {
                    self.see(event, at, self.to);
                }
                self.to += line.len() as u64;
            }
            return true;
        }
    }

    fn see(&mut self, event: Event, when: Timestamp, at: u64) {
        match event {
            Event::ToolStart { tool, .. } => {
                self.count += 1;
                if self.calls.len() == MOST_CALLS {
                    self.calls.pop_front();
                }
                self.calls.push_back(Call {
                    argument: tool.input.as_ref().map(main_argument).unwrap_or_default(),
                    id: tool.id,
                    at,
                    name: tool.name,
                    status: None,
                    started: when,
                    duration_ms: None,
                });
            }
            Event::ToolEnd { tool, .. } => {
                if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == tool.id) {
                    call.status = Some(tool.status);
                    let seen = when.as_millisecond() - call.started.as_millisecond();
                    call.duration_ms = tool.duration_ms.or_else(|| u64::try_from(seen).ok());
                }
            }
            Event::Usage { usage } => self.usage.add(&usage),
            Event::Meta { meta } => match meta.known() {
                Some(Known::Todo { items }) => self.todo = items,
                Some(Known::Files { changes }) => {
                    for change in changes {
                        let is_known = self.files.iter().any(|known| known.path == change.path);
                        if !is_known && self.files.len() < MOST_FILES {
                            self.files.push(change);
                        }
                    }
                }
                Some(Known::Model { model }) => self.model = Some(model),
                Some(Known::Session { id }) => self.session = Some(id),
                _ => {}
            },
            Event::Text { .. } | Event::ToolOutput { .. } => {}
        }
    }
}
