//! What one iteration's output adds up to: usage, errors, the completion marker, a loop that is stuck.
//!
//! No I/O and no clock: the iteration feeds it and records what comes out.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::quota;
use crate::event::{Event, FailureClass, Known, Quota, Status, Stream, Tag, Usage, denied};
use crate::journal::receipt::Filled;
use crate::process::{Exit, Line, Lines, Part, Size};
use crate::redact::{Clean, Redactor};
use crate::signals::promise::{Heard, Rule, Watch};
use crate::signals::stall::Stall;
use crate::signals::status_block::{self, StatusBlock};
use crate::stream::{OutputStream, join_flood};
use crate::transcript::{Context, RTF1, Selected};

/// How many last lines are searched for the reason of a failure.
const LAST_LINES: usize = 20;

/// How much of such a line is kept.
const LONGEST_KEPT: usize = 2000;

/// How many denied tools are named.
const MOST_DENIED: usize = 20;

/// Whether the dialect's own word about the turn is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authority {
    /// An adapter's: it counts.
    Adapter,
    /// The agent writes its own events (RTF1): its word about success needs the exit code beside it.
    Agent,
}

impl Authority {
    fn of(dialect: &str) -> Self {
        if dialect == RTF1.name { Self::Agent } else { Self::Adapter }
    }
}

/// An error event, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub class: FailureClass,
    /// In the agent's words.
    pub message: String,
    /// When a limit ends, RFC 3339.
    pub resets_at: Option<String>,
    /// How long until it ends.
    pub retry_after_ms: Option<u64>,
    /// The reset time in words that take a clock to read.
    pub resets: Option<String>,
}

/// What the events of an iteration add up to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub usage: Usage,
    pub tools: u32,
    pub tools_failed: u32,
    /// Lines not understood.
    pub unparsed: u32,
    pub session: Option<String>,
    /// How full its context is.
    pub context: Option<Filled>,
    /// How full the usage windows of the subscription are.
    pub quota: Vec<Quota>,
    /// The terminal event, once it came from the stream itself.
    pub turn_end: Option<(Option<bool>, Option<String>)>,
    /// The last error event.
    pub error: Option<Told>,
    /// The last lines of standard error.
    pub stderr: VecDeque<String>,
    /// True when anything was said or done on standard output.
    pub spoke: bool,
    /// What went wrong with reading the output, so that it is unknown what the agent really said.
    pub unread: Option<String>,
    /// Tools that were not permitted.
    pub denied: Vec<String>,
    /// True when the agent said something in its own words.
    pub answered: bool,
    /// True when no terminal event came, so that a failure is only assumed from its absence.
    pub assumed: bool,
}

/// One iteration's reader.
pub(crate) struct Reading {
    stream: OutputStream,
    authority: Authority,
    watch: Watch,
    stall: Stall,
    status: status_block::Watch,
    switched: bool,
    stderr: Lines,
    /// Events of the last lines, which are reported when everything is over.
    last: [Vec<Clean<Event>>; 2],
    /// Everything counted so far.
    pub tally: Tally,
}

/// How the output of an iteration is read.
pub(crate) struct How<'a> {
    pub transcript: &'a Selected,
    /// What the adapter knows beforehand.
    pub context: &'a Context,
    /// What completes a run.
    pub rule: &'a Rule,
    /// The longest line that is handed on in one part.
    pub line_cap: usize,
    /// The terminal that standard output is, if it is one.
    pub terminal: Option<Size>,
    /// Knows what must not come through.
    pub redactor: &'a Redactor,
    /// Whether raw bytes are kept as they came.
    pub exact: bool,
}

impl Reading {
    /// A reader for one iteration.
    pub(crate) fn new(how: &How<'_>) -> Self {
        let authority = match how.transcript {
            Selected::Dialect(chosen) | Selected::Auto(chosen) => Authority::of(chosen.name),
            Selected::Command(_) => Authority::Adapter,
        };
        let stream = OutputStream::new(how.transcript, how.context, how.redactor)
            .with_line_cap(how.line_cap)
            .on_terminal(how.terminal, how.redactor)
            .with_exact_raw_bytes(how.exact);
        Self {
            authority,
            watch: Watch::new(how.rule.clone(), stream.messages()),
            stream,
            stall: Stall::default(),
            status: status_block::Watch::default(),
            switched: false,
            stderr: Lines::new(LONGEST_KEPT),
            last: [Vec::new(), Vec::new()],
            tally: Tally::default(),
        }
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, size: Size) {
        self.stream.resize(size);
    }

    /// Whether the dialect's own word about the turn is believed.
    pub(crate) const fn authority(&self) -> Authority {
        self.authority
    }

    /// Takes bytes; gives those for the raw file, and the events they finish.
    pub(crate) fn push<'a>(
        &mut self,
        from: Stream,
        bytes: &'a [u8],
        out: &mut Vec<Clean<Event>>,
    ) -> Clean<Cow<'a, [u8]>> {
        let first = out.len();
        let raw = self.stream.push(from, bytes, out);
        if from == Stream::Stderr {
            let tally = &mut self.tally;
            self.stderr.push(&raw, |line| tally.keep(line));
        }
        self.see(from, first, out);
        raw
    }

    /// Takes what a transcript command printed.
    pub(crate) fn push_filtered(&mut self, bytes: &[u8], out: &mut Vec<Clean<Event>>) {
        let first = out.len();
        self.stream.push_filtered(bytes, out);
        self.see(Stream::Stdout, first, out);
    }

    /// Takes an event that is not from the agent's own lines.
    pub(crate) fn add(&mut self, event: Event, out: &mut Vec<Clean<Event>>) {
        if let Event::Meta { meta } = &event
            && let Some(Known::Error { message, .. }) = meta.known()
        {
            self.tally.unread = Some(message);
        }
        let first = out.len();
        out.push(self.stream.own(event));
        self.see(Stream::Stdout, first, out);
    }

    /// The process has ended: gives what was held back of its raw bytes.
    pub(crate) fn end_bytes(&mut self) -> [(Stream, Clean<Vec<u8>>); 2] {
        let [stdout, stderr] = &mut self.last;
        let rest = self.stream.end_bytes(stdout, stderr);
        let tally = &mut self.tally;
        self.stderr.push(&rest.stderr, |line| tally.keep(line));
        self.stderr.finish(|line| tally.keep(line));
        [(Stream::Stdout, rest.stdout), (Stream::Stderr, rest.stderr)]
    }

    /// Everything is over: gives the last events, for each stream.
    pub(crate) fn finish(&mut self, exit: Option<Exit>) -> [(Stream, Vec<Clean<Event>>); 3] {
        let turn_end = self.tally.turn_end.clone();
        let [mut stdout, mut stderr] = std::mem::take(&mut self.last);
        self.stream.end_filter(&mut stdout);
        self.see(Stream::Stdout, 0, &mut stdout);
        self.see(Stream::Stderr, 0, &mut stderr);
        let turn_end = self.tally.turn_end.clone().or(turn_end);
        let mut end = Vec::new();
        self.stream.finish(exit, &mut end);
        self.see(Stream::Stdout, 0, &mut end);
        if let Some((Some(true) | None, _)) = self.tally.turn_end
            && turn_end.is_none()
        {
            // Made up at the end of the stream: no word of the agent, so that the exit code decides.
            self.tally.turn_end = None;
        }
        self.tally.assumed = turn_end.is_none() && self.tally.turn_end.is_some();
        [(Stream::Stdout, stdout), (Stream::Stderr, stderr), (Stream::Stdout, end)]
    }

    /// True when the agent does the same thing over and over.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stall.is_stuck()
    }

    pub(crate) fn end(self) -> (Tally, Heard, Stall, Option<StatusBlock>) {
        (self.tally, self.watch.end(), self.stall, self.status.end())
    }

    /// Counts events, then joins those that can be one record.
    fn see(&mut self, from: Stream, first: usize, events: &mut Vec<Clean<Event>>) {
        let messages = self.stream.messages();
        // The output speaks another dialect: its messages, and its authority, are that one's.
        if let Some(spoken) = self.stream.spoken().filter(|_| !self.switched) {
            self.switched = true;
            self.authority = Authority::of(spoken.name);
            self.watch.switch(spoken.messages);
        }
        for event in &events[first..] {
            if from == Stream::Stdout {
                self.watch.see(event);
                self.stall.see(event, messages);
                self.status.see(event);
            }
            self.tally.see(from, event);
        }
        join_flood(events, first, messages);
    }
}

impl Tally {
    fn see(&mut self, from: Stream, event: &Event) {
        match event {
            Event::Text { tag, .. } => {
                self.spoke |= from == Stream::Stdout;
                self.answered |= from == Stream::Stdout && *tag == Tag::Ai;
            }
            Event::ToolOutput { .. } => self.spoke |= from == Stream::Stdout,
            Event::ToolStart { .. } => {
                self.spoke = true;
                self.tools += 1;
            }
            Event::ToolEnd { tool, .. } => self.tools_failed += u32::from(tool.status == Status::Fail),
            Event::Usage { usage } => self.usage.add(usage),
            Event::Meta { meta } => match meta.known() {
                Some(Known::Session { id }) => self.session = Some(id),
                Some(Known::Context { tokens, window }) => self.context = Some(Filled { tokens, window }),
                Some(Known::Quota(newest)) => quota::remember(&mut self.quota, newest),
                Some(Known::ParseError { .. }) => self.unparsed = self.unparsed.saturating_add(1),
                Some(Known::Unparsed { count, .. }) => {
                    let count = u32::try_from(count.unwrap_or(1)).unwrap_or(u32::MAX);
                    self.unparsed = self.unparsed.saturating_add(count);
                }
                Some(Known::Permission { tool, input, .. }) => {
                    let name = denied(&tool, input.as_deref());
                    if !self.denied.contains(&name) && self.denied.len() < MOST_DENIED {
                        self.denied.push(name);
                    }
                }
                Some(Known::TurnEnd { success, reason }) => self.turn_end = Some((success, reason)),
                Some(Known::Error { class, message, resets_at, retry_after_ms, resets, .. }) => {
                    // An agent may continue after its terminal event, and fail then.
                    if let Some((success @ Some(true), reason)) = &mut self.turn_end {
                        (*success, *reason) = (Some(false), Some("it failed after it had finished".to_owned()));
                    }
                    self.error = Some(Told { class, message, resets_at, retry_after_ms, resets });
                }
                _ => {}
            },
        }
    }

    fn keep(&mut self, line: Line<'_>) {
        if line.bytes.trim_ascii().is_empty() {
            return;
        }
        if matches!(line.part, Part::Whole | Part::First) {
            if self.stderr.len() == LAST_LINES {
                self.stderr.pop_front();
            }
            self.stderr.push_back(String::from_utf8_lossy(line.bytes).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_the_terminal_event_is_a_failure() {
        let end = Known::TurnEnd { success: Some(true), reason: None };
        let (class, message) = (FailureClass::Agent, "late".to_owned());
        let error = Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None };
        for (events, expected) in [(vec![error.clone(), end.clone()], Some(true)), (vec![end, error], Some(false))] {
            let mut tally = Tally::default();
            for known in events {
                tally.see(Stream::Stdout, &known.into());
            }
            assert_eq!(tally.turn_end.unwrap().0, expected);
        }
    }
}
