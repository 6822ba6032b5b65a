//! Reads one iteration's output: bytes to lines to events, and what they add up to.
//!
//! No I/O and no clock: the iteration feeds it and records what comes out.

use std::collections::VecDeque;

use crate::event::{Event, FailureClass, Known, Messages, Status, Stream, Tag, Usage};
use crate::journal::receipt::Filled;
use crate::process::{Exit, Line, Lines, Size};
use crate::signals::promise::{Heard, Rule, Watch};
use crate::signals::stall::Stall;
use crate::signals::status_block::{self, StatusBlock};
use crate::transcript::{Adapter, Context, PLAIN, RTF1, Screen, Selected, auto};

/// More plain lines than this in one burst are a flood.
const FLOOD_LINES: usize = 64;

/// Plain text is handed on in parts of this size; only a structured line has to be whole.
const PLAIN_LINE_CAP: usize = 1024 * 1024;

/// How many last lines are searched for the reason of a failure.
const LAST_LINES: usize = 20;

/// How many denied tools are named.
const MOST_DENIED: usize = 20;

/// Whether the dialect's own word about the turn is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
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
pub struct Told {
    /// What kind.
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
pub struct Tally {
    /// What was spent.
    pub usage: Usage,
    /// Tools started.
    pub tools: u32,
    /// Tools that failed.
    pub tools_failed: u32,
    /// Lines not understood.
    pub unparsed: u32,
    /// The session.
    pub session: Option<String>,
    /// How full its context is.
    pub context: Option<Filled>,
    /// The terminal event, once it came from the stream itself.
    pub turn_end: Option<(Option<bool>, Option<String>)>,
    /// The last error event.
    pub error: Option<Told>,
    /// The last lines of standard error.
    pub stderr: VecDeque<String>,
    /// True when anything was said or done on standard output.
    pub spoke: bool,
    /// What went wrong with reading the output, so that nobody knows what the agent really said.
    pub unread: Option<String>,
    /// Tools that were not permitted.
    pub denied: Vec<String>,
    /// True when the agent said something in its own words.
    pub answered: bool,
    /// True when no terminal event came, so that a failure is only assumed from its absence.
    pub assumed: bool,
}

/// One iteration's reader.
pub struct Reading {
    adapter: Box<dyn Adapter>,
    authority: Authority,
    messages: Messages,
    watch: Watch,
    stall: Stall,
    status: status_block::Watch,
    switched: bool,
    line_cap: usize,
    stdout: Lines,
    stderr: Lines,
    /// What standard output is drawn on, where it is a terminal.
    screen: Option<Screen>,
    /// Everything counted so far.
    pub tally: Tally,
}

impl Reading {
    /// A reader for one iteration.
    pub fn new(transcript: &Selected, context: &Context, rule: &Rule, line_cap: usize) -> Self {
        let (adapter, authority, messages) = match transcript {
            Selected::Dialect(chosen) => ((chosen.adapter)(context), Authority::of(chosen.name), chosen.messages),
            Selected::Auto(expected) => (auto(expected, context), Authority::of(expected.name), expected.messages),
            Selected::Command(_) => ((RTF1.adapter)(context), Authority::Adapter, RTF1.messages),
        };
        Self {
            adapter,
            authority,
            messages,
            watch: Watch::new(rule.clone(), messages),
            stall: Stall::default(),
            status: status_block::Watch::default(),
            switched: false,
            line_cap,
            stdout: Lines::new(if transcript.name() == PLAIN.name { line_cap.min(PLAIN_LINE_CAP) } else { line_cap }),
            stderr: Lines::default(),
            screen: None,
            tally: Tally::default(),
        }
    }

    /// The output is what a terminal of this size was told, if there is one, and may be drawn.
    #[must_use]
    pub fn on_terminal(mut self, size: Option<Size>) -> Self {
        self.screen = size.map(|size| Screen::new(size.rows, size.columns));
        self
    }

    /// The terminal has another size.
    pub fn resize(&mut self, size: Size) {
        if let Some(screen) = &mut self.screen {
            screen.resize(size.rows, size.columns);
        }
    }

    /// Whether the dialect's own word about the turn is believed.
    pub const fn authority(&self) -> Authority {
        self.authority
    }

    /// Takes bytes; gives the events they finish.
    pub fn push(&mut self, from: Stream, bytes: &[u8], out: &mut Vec<Event>) {
        let first = out.len();
        match from {
            Stream::Stdout => match &mut self.screen {
                None => self.stdout.push(bytes, |line| self.adapter.line(line, out)),
                Some(screen) => {
                    let mut clean = Vec::with_capacity(bytes.len());
                    screen.push(bytes, &mut clean);
                    self.stdout.push(&clean, |line| self.adapter.line(line, out));
                }
            },
            Stream::Stderr => {
                let tally = &mut self.tally;
                self.stderr.push(bytes, |line| {
                    tally.keep(line);
                    self.adapter.stderr(line, out);
                });
            }
        }
        self.follow_switch();
        self.count(from, &out[first..]);
        join(out, first, self.messages);
    }

    /// Takes an event that is not from the agent's own lines.
    pub fn add(&mut self, event: Event, out: &mut Vec<Event>) {
        if let Event::Meta { meta } = &event
            && let Some(Known::Error { message, .. }) = meta.known()
        {
            self.tally.unread = Some(message);
        }
        self.count(Stream::Stdout, std::slice::from_ref(&event));
        out.push(event);
    }

    /// The streams are over: gives what was still held back, for each stream.
    pub fn finish(&mut self, exit: Option<Exit>) -> [(Stream, Vec<Event>); 3] {
        let turn_end = self.tally.turn_end.clone();
        let mut rest = [(Stream::Stdout, Vec::new()), (Stream::Stderr, Vec::new()), (Stream::Stdout, Vec::new())];
        if let Some(mut screen) = self.screen.take() {
            let mut clean = Vec::new();
            screen.finish(&mut clean);
            self.stdout.push(&clean, |line| self.adapter.line(line, &mut rest[0].1));
        }
        self.stdout.finish(|line| self.adapter.line(line, &mut rest[0].1));
        self.stderr.finish(|line| {
            self.tally.keep(line);
            self.adapter.stderr(line, &mut rest[1].1);
        });
        self.follow_switch();
        self.count(Stream::Stdout, &rest[0].1);
        self.count(Stream::Stderr, &rest[1].1);
        let turn_end = self.tally.turn_end.clone().or(turn_end);
        self.adapter.end(exit, &mut rest[2].1);
        self.count(Stream::Stdout, &rest[2].1);
        if let Some((Some(true) | None, _)) = self.tally.turn_end
            && turn_end.is_none()
        {
            // Made up at the end of the stream: no word of the agent, so that the exit code decides.
            self.tally.turn_end = None;
        }
        self.tally.assumed = turn_end.is_none() && self.tally.turn_end.is_some();
        rest
    }

    /// True when the agent does the same thing over and over.
    pub fn is_stuck(&self) -> bool {
        self.stall.is_stuck()
    }

    /// What it all came to.
    pub fn end(self) -> (Tally, Heard, Stall, Option<StatusBlock>) {
        (self.tally, self.watch.end(), self.stall, self.status.end())
    }

    /// The output speaks another dialect: its messages, and its authority, are that one's. The adapter says so, not an
    /// event: events of that kind can come from an agent too.
    fn follow_switch(&mut self) {
        if let Some(spoken) = self.adapter.spoken().filter(|_| !self.switched) {
            self.switched = true;
            self.authority = Authority::of(spoken.name);
            self.messages = spoken.messages;
            self.watch.switch(spoken.messages);
            self.stdout.set_cap(self.line_cap);
        }
    }

    fn count(&mut self, from: Stream, events: &[Event]) {
        for event in events {
            if from == Stream::Stdout {
                self.watch.see(event);
                self.stall.see(event, self.messages);
                self.status.see(event);
            }
            self.tally.see(from, event);
        }
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
                Some(Known::ParseError { .. }) => self.unparsed = self.unparsed.saturating_add(1),
                Some(Known::Unparsed { count, .. }) => {
                    let count = u32::try_from(count.unwrap_or(1)).unwrap_or(u32::MAX);
                    self.unparsed = self.unparsed.saturating_add(count);
                }
                Some(Known::Permission { tool, .. })
                    if !self.denied.contains(&tool) && self.denied.len() < MOST_DENIED =>
                {
                    self.denied.push(tool);
                }
                Some(Known::TurnEnd { success, reason }) => self.turn_end = Some((success, reason)),
                Some(Known::Error { class, message, resets_at, retry_after_ms, resets, .. }) => {
                    // An agent may go on after its terminal event, and fail then.
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
        if self.stderr.len() == LAST_LINES {
            self.stderr.pop_front();
        }
        let end = line.bytes.len().min(2000);
        self.stderr.push_back(String::from_utf8_lossy(&line.bytes[..end]).into_owned());
    }
}

/// Joins what came together and belongs together, so that a burst is one record: fragments, which append to their
/// message by definition, and floods of plain lines, which are one message by definition.
fn join(events: &mut Vec<Event>, first: usize, messages: Messages) {
    let flood = messages == Messages::Lines && events.len() - first > FLOOD_LINES;
    let mut joined: Vec<Event> = Vec::with_capacity(if flood { 16 } else { events.len() - first });
    for event in events.drain(first..) {
        if let Event::Text { tag, text, delta, parent } = &event
            && let Some(Event::Text { tag: before, text: open, delta: was_delta, parent: same }) = joined.last_mut()
            && tag == before
            && parent == same
            && delta == was_delta
            && (*delta || flood)
        {
            if !*delta {
                open.push('\n');
            }
            open.push_str(text);
        } else {
            joined.push(event);
        }
    }
    events.append(&mut joined);
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

    #[test]
    fn a_flood_of_lines_becomes_blocks_and_a_few_lines_stay_apart() {
        let lines = |count| -> Vec<Event> {
            (0..count).map(|number: usize| Event::text(Tag::Ai, number.to_string())).collect()
        };
        let mut few = lines(FLOOD_LINES);
        join(&mut few, 0, Messages::Lines);
        assert_eq!(few.len(), FLOOD_LINES);
        let mut many = lines(FLOOD_LINES + 1);
        join(&mut many, 0, Messages::Lines);
        assert!(matches!(many.as_slice(), [Event::Text { text, .. }] if text.starts_with("0\n1\n2")));
        let mut messages = lines(FLOOD_LINES + 1);
        join(&mut messages, 0, Messages::Whole);
        assert_eq!(messages.len(), FLOOD_LINES + 1, "messages of a dialect are never joined");
    }

    #[test]
    fn fragments_of_one_message_become_one_record() {
        let ai = |text| Event::delta(Tag::Ai, text);
        let mut events = vec![Event::text(Tag::Ai, "whole"), ai("a"), ai("b"), Event::delta(Tag::Think, "t"), ai("c")];
        events.push(ai("d").within("x"));
        join(&mut events, 1, Messages::Whole);
        let expected =
            [Event::text(Tag::Ai, "whole"), ai("ab"), Event::delta(Tag::Think, "t"), ai("c"), ai("d").within("x")];
        assert_eq!(events, expected);
    }
}
