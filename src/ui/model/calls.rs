//! The tool calls of an iteration.

use jiff::Timestamp;

use super::argument::{main_argument, relative};
use super::change::Change;
use crate::event::{Status, ToolEnd, ToolStart};
use crate::journal::Record;

/// This many calls are kept; of more, the oldest that have ended are forgotten.
const MOST_KEPT: usize = 2000;
/// This many are forgotten at once: each time, all that stay are moved.
const FORGOTTEN_AT_ONCE: usize = 500;
/// But never the first ones, which the line view lists when the iteration is over.
pub(crate) const MOST_LISTED: usize = 20;
/// So much of what a call prints is kept from its beginning, and as much from its end.
const KEPT_BYTES: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub id: String,
    /// The number of its first record.
    pub seq: u64,
    pub name: String,
    pub argument: String,
    /// True when a sub-agent makes it.
    pub nested: bool,
    /// How it went, once it is over.
    pub status: Option<Status>,
    /// True when the iteration ended before anything was said about its end.
    pub cut_off: bool,
    pub started: Timestamp,
    /// How long it took, when the agent says so.
    pub duration_ms: Option<u64>,
    /// The time between its first and its last record.
    seen_ms: Option<u64>,
    /// How many lines it printed.
    pub lines: usize,
    /// What it changes, as far as its arguments tell.
    pub change: Option<Change>,
    printed: Printed,
}

/// The beginning and the end of what a call printed.
#[derive(Clone, Debug, Default)]
struct Printed {
    head: String,
    tail: String,
}

impl Printed {
    fn push(&mut self, text: &str) {
        let room = KEPT_BYTES.saturating_sub(self.head.len());
        let (head, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(head);
        self.tail.push_str(&rest[rest.ceil_char_boundary(rest.len().saturating_sub(KEPT_BYTES))..]);
        if self.tail.len() > 2 * KEPT_BYTES {
            self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len() - KEPT_BYTES));
        }
    }
}

/// What is shown of a call's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub first: Vec<String>,
    /// How many lines are left out between the two.
    pub left_out: usize,
    pub last: Vec<String>,
}

impl Call {
    pub(crate) fn new(tool: &ToolStart, nested: bool, seq: u64, started: Timestamp) -> Self {
        Self {
            id: tool.id.clone(),
            seq,
            name: tool.name.clone(),
            argument: tool.input.as_ref().map(main_argument).unwrap_or_default(),
            nested,
            status: None,
            cut_off: false,
            started,
            duration_ms: None,
            seen_ms: None,
            lines: 0,
            change: tool.input.as_ref().and_then(Change::of),
            printed: Printed::default(),
        }
    }

    /// The same with paths as they are seen from the workspace.
    #[must_use]
    pub(crate) fn seen_from(mut self, workspace: &str) -> Self {
        self.argument = relative(self.argument, workspace);
        self
    }

    pub(crate) fn end(&mut self, tool: &ToolEnd, at: Timestamp) {
        self.status = Some(tool.status);
        self.duration_ms = tool.duration_ms;
        self.seen_ms = u64::try_from(at.as_millisecond() - self.started.as_millisecond()).ok();
    }

    /// How long it took, as the agent says, else as it looked from here.
    pub(crate) fn took_ms(&self) -> Option<u64> {
        // What began and ended in one record's time was not clocked.
        self.duration_ms.or_else(|| self.seen_ms.filter(|seen| *seen > 0))
    }

    /// How long it has been running, in whole seconds; `None` when it is over, or has only begun.
    pub(crate) fn runs_for_ms(&self, now: Timestamp) -> Option<u64> {
        let passed = u64::try_from(now.as_millisecond() - self.started.as_millisecond()).unwrap_or(0) / 1000 * 1000;
        Some(passed).filter(|passed| self.status.is_none() && *passed > 0)
    }

    /// The first and the last lines of what it printed.
    pub(crate) fn excerpt(&self, first: usize, last: usize) -> Excerpt {
        let owned = |line: &&str| (*line).to_owned();
        let Printed { head, tail } = &self.printed;
        let whole = if tail.len() < KEPT_BYTES { format!("{head}{tail}") } else { String::new() };
        let (begin, end): (Vec<&str>, Vec<&str>) = if whole.is_empty() {
            (head.lines().collect(), tail.lines().collect())
        } else {
            (whole.lines().collect(), Vec::new())
        };
        let end = if end.is_empty() { &begin } else { &end };
        let first = first.min(self.lines);
        let last = last.min(self.lines - first);
        Excerpt {
            first: begin.iter().take(first).map(owned).collect(),
            left_out: self.lines - first - last,
            last: end[end.len().saturating_sub(last)..].iter().map(owned).collect(),
        }
    }
}

/// The calls of one iteration, in the order they started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    kept: Vec<Call>,
    forgotten: usize,
    /// The call that ended last: of those that have ended, only its output is kept.
    newest: Option<u64>,
    /// How many failed.
    pub failed: usize,
    /// The lines that edits added, as far as their arguments tell.
    pub added: usize,
    pub removed: usize,
    /// Where the agent works: paths are shown as they are seen from there.
    pub(super) workspace: String,
}

impl Calls {
    pub(super) fn of(workspace: String) -> Self {
        Self { workspace, ..Self::default() }
    }

    pub(super) fn start(&mut self, tool: &ToolStart, nested: bool, record: &Record) {
        if self.kept.len() >= MOST_KEPT {
            let before = self.kept.len();
            let (mut at, mut left) = (0, FORGOTTEN_AT_ONCE);
            self.kept.retain(|call| {
                at += 1;
                let stays = at <= MOST_LISTED || call.status.is_none() || left == 0;
                left -= usize::from(!stays);
                stays
            });
            self.forgotten += before - self.kept.len();
        }
        self.kept.push(Call::new(tool, nested, record.seq, record.at).seen_from(&self.workspace));
    }

    pub(super) fn output(&mut self, id: &str, text: &str, delta: bool) {
        if let Some(call) = self.newest_mut(|call| call.id == id) {
            call.lines += if delta { text.matches('\n').count() } else { text.lines().count() };
            if !delta && !call.printed.head.is_empty() {
                call.printed.push("\n");
            }
            call.printed.push(text);
        }
    }

    pub(super) fn end(&mut self, tool: &ToolEnd, at: Timestamp) {
        let Some(call) = self.newest_mut(|call| call.id == tool.id) else { return };
        call.end(tool, at);
        let seq = call.seq;
        let change = call.change.as_ref().filter(|_| tool.status != Status::Fail);
        let (added, removed) = change.map_or((0, 0), |change| (change.added, change.removed));
        self.failed += usize::from(tool.status == Status::Fail);
        self.added += added;
        self.removed += removed;
        if let Some(before) = self.newest.replace(seq).filter(|before| *before != seq)
            && let Some(call) = self.newest_mut(|call| call.seq == before)
        {
            call.printed = Printed::default();
            call.change.iter_mut().for_each(|change| change.lines = Vec::new());
        }
    }

    /// The iteration is over: nothing more will be said about calls that have not ended.
    pub(super) fn cut_off(&mut self) {
        for call in self.kept.iter_mut().filter(|call| call.status.is_none()) {
            (call.status, call.cut_off) = (Some(Status::Unknown), true);
        }
    }

    /// The newest call with this id.
    pub(crate) fn find(&self, id: &str) -> Option<&Call> {
        self.kept.iter().rev().find(|call| call.id == id)
    }

    /// Those that are kept: the first ones, and the newest.
    pub(crate) fn kept(&self) -> &[Call] {
        &self.kept
    }

    /// Those that have not ended, oldest first.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Call> {
        self.kept.iter().filter(|call| call.status.is_none())
    }

    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.forgotten
    }

    fn newest_mut(&mut self, is_meant: impl Fn(&Call) -> bool) -> Option<&mut Call> {
        self.kept.iter_mut().rev().find(|call| is_meant(call))
    }
}
