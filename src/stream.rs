//! An agent's output on its only way into ralph: bytes, without secrets, become lines, lines become events.
//!
//! It gives the bytes for the raw file and the events for everything else, both clean. No I/O and no clock: whoever reads
//! the process feeds it. Nothing is held without a bound.

mod fragments;
mod raw;

use std::borrow::Cow;

pub(crate) use fragments::join_flood;
use fragments::{Burst, Fragments, Verdict, is_flood, join_last};
use raw::{Raw, Wait};

use crate::event::{Event, Messages, Stream};
use crate::process::{Exit, Lines, Size};
use crate::redact::{Clean, Redactor, Streaming};
use crate::transcript::{Adapter, Context, Dialect, PLAIN, RTF1, Screen, Selected, auto};

/// Plain text is handed on in parts of this size; only a structured line has to be whole.
const PLAIN_LINE_CAP: usize = 64 * 1024;

/// The output of one process.
pub struct OutputStream {
    reader: Reader,
    stdout: Side,
    stderr: Side,
    /// What standard output is drawn on, where it is a terminal.
    screen: Option<(Screen, Streaming)>,
    /// The lines of a command that reads standard output in place of the adapter.
    filter: Option<Side>,
    /// Plain text, of which a long line can be handed on in parts.
    is_plain: bool,
    /// Raw bytes are handed on as they came.
    exact: bool,
}

struct Reader {
    adapter: Box<dyn Adapter>,
    /// What makes one message, and whether that was learned from the output.
    messages: Messages,
    switched: bool,
    line_cap: usize,
    events: Vec<Event>,
    /// How many events there were after each line of a burst.
    marks: Vec<usize>,
}

struct Side {
    bytes: Streaming,
    lines: Lines,
    fragments: Fragments,
    raw: Raw,
    /// The line under way has bytes that a secret could be made of.
    suspicious: bool,
}

impl Side {
    fn new(redactor: &Redactor, line_cap: usize, is_plain: bool) -> Self {
        Self {
            bytes: Streaming::new(redactor),
            lines: Lines::new(line_cap),
            fragments: Fragments::new(redactor),
            raw: Raw::new(is_plain),
            suspicious: false,
        }
    }
}

/// What was still held back when the process ended.
#[derive(Debug)]
pub(crate) struct Rest {
    /// For the raw file of standard output.
    pub stdout: Clean<Vec<u8>>,
    /// For the raw file of standard error.
    pub stderr: Clean<Vec<u8>>,
}

impl OutputStream {
    /// Reads what this transcript says; secrets that the redactor knows do not come through.
    pub fn new(transcript: &Selected, context: &Context, redactor: &Redactor) -> Self {
        // An echo of the prompt comes without its secrets, too.
        let clean = |prompt: &String| redactor.text(prompt).unwrap_or_else(|| prompt.clone());
        let context = Context { prompts: context.prompts.iter().map(clean).collect(), ..context.clone() };
        let (adapter, messages) = match transcript {
            Selected::Dialect(chosen) => ((chosen.adapter)(&context), chosen.messages),
            Selected::Auto(expected) => (auto(expected, &context), expected.messages),
            Selected::Command(_) => ((RTF1.adapter)(&context), RTF1.messages),
        };
        let line_cap = crate::process::lines::DEFAULT_LINE_CAP;
        let is_plain = transcript.name() == PLAIN.name;
        let filter = matches!(transcript, Selected::Command(_)).then(|| Side::new(redactor, line_cap, false));
        let reader = Reader { adapter, messages, switched: false, line_cap, events: Vec::new(), marks: Vec::new() };
        Self {
            reader,
            stdout: Side::new(redactor, if is_plain { PLAIN_LINE_CAP } else { line_cap }, is_plain),
            stderr: Side::new(redactor, line_cap, false),
            screen: None,
            filter,
            is_plain,
            exact: false,
        }
    }

    /// Hands on lines of this length in one part.
    #[must_use]
    pub(crate) fn with_line_cap(mut self, line_cap: usize) -> Self {
        self.stdout.lines.set_cap(if self.is_plain { line_cap.min(PLAIN_LINE_CAP) } else { line_cap });
        self.reader.line_cap = line_cap;
        self
    }

    /// The output is what a terminal of this size was sent, if there is one, and may be drawn.
    #[must_use]
    pub(crate) fn on_terminal(mut self, size: Option<Size>, redactor: &Redactor) -> Self {
        self.screen = size.map(|size| (Screen::new(size.rows, size.columns), Streaming::new(redactor)));
        self
    }

    /// Hands on the raw bytes as they came, as the user has asked for.
    #[must_use]
    pub(crate) const fn with_exact_raw_bytes(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, size: Size) {
        if let Some((screen, _)) = &mut self.screen {
            screen.resize(size.rows, size.columns);
        }
    }

    /// What makes one message now.
    pub(crate) const fn messages(&self) -> Messages {
        self.reader.messages
    }

    /// The dialect that the output turned out to speak, when it is not the one that was expected.
    pub fn spoken(&self) -> Option<&'static Dialect> {
        self.reader.adapter.spoken()
    }

    /// Takes bytes of the process; gives those for the raw file, and the events.
    pub fn push<'a>(&mut self, from: Stream, bytes: &'a [u8], out: &mut Vec<Clean<Event>>) -> Clean<Cow<'a, [u8]>> {
        let side = self.side(from);
        let clean = side.bytes.push(bytes);
        let is_clear = side.bytes.is_clear();
        let written = self.read(from, clean, is_clear, out);
        if self.exact { Clean::exact(Cow::Borrowed(bytes)) } else { Clean::made(written) }
    }

    /// Takes bytes of the command that reads standard output in place of an adapter.
    pub(crate) fn push_filtered(&mut self, bytes: &[u8], out: &mut Vec<Clean<Event>>) {
        let Some(side) = &mut self.filter else { return };
        let clean = side.bytes.push(bytes);
        self.reader.lines(side, &clean, Stream::Stdout, false, out);
    }

    /// Takes an event that is not from the agent's own lines.
    pub(crate) fn own(&self, event: Event) -> Clean<Event> {
        self.stdout.fragments.own(event)
    }

    fn side(&mut self, from: Stream) -> &mut Side {
        match from {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// Takes clean bytes; gives those that can be written.
    fn read<'a>(
        &mut self,
        from: Stream,
        clean: Cow<'a, [u8]>,
        is_clear: bool,
        out: &mut Vec<Clean<Event>>,
    ) -> Cow<'a, [u8]> {
        let side = match from {
            Stream::Stdout if self.filter.is_some() => return clean,
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if let Some((screen, bytes)) = self.screen.as_mut().filter(|_| from == Stream::Stdout) {
            let mut drawn = Vec::with_capacity(clean.len());
            screen.push(&clean, &mut drawn);
            // Pieces that were drawn beside each other are one text only now.
            self.reader.lines(side, &bytes.push(&drawn), from, false, out);
            return clean;
        }
        let verdict = self.reader.lines(side, &clean, from, is_clear, out);
        let wait = if side.fragments.holds() { Wait::Yes } else { Wait::No };
        side.raw.pass(clean, verdict, wait)
    }

    /// The process has ended: gives what was held back of the raw bytes, and the events of the last lines.
    pub(crate) fn end_bytes(&mut self, stdout: &mut Vec<Clean<Event>>, stderr: &mut Vec<Clean<Event>>) -> Rest {
        let stdout_rest = self.end_side(Stream::Stdout, stdout);
        let stderr_rest = self.end_side(Stream::Stderr, stderr);
        let rest = |bytes| Clean::made(if self.exact { Vec::new() } else { bytes });
        Rest { stdout: rest(stdout_rest), stderr: rest(stderr_rest) }
    }

    fn end_side(&mut self, from: Stream, out: &mut Vec<Clean<Event>>) -> Vec<u8> {
        let last = self.side(from).bytes.finish();
        let mut raw = self.read(from, Cow::Owned(last), false, out).into_owned();
        if self.filter.is_some() && from == Stream::Stdout {
            return raw;
        }
        let screen = if from == Stream::Stdout { self.screen.take() } else { None };
        let side = match from {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if let Some((mut screen, mut bytes)) = screen {
            let mut drawn = Vec::new();
            screen.finish(&mut drawn);
            let mut clean = bytes.push(&drawn).into_owned();
            clean.extend(bytes.finish());
            self.reader.lines(side, &clean, from, false, out);
        }
        let verdict = self.reader.last_line(side, from, out);
        raw.extend_from_slice(&side.raw.pass(Cow::Borrowed(b""), verdict, Wait::No));
        raw.extend(side.raw.finish());
        if from == Stream::Stderr {
            side.fragments.close(out);
        }
        raw
    }

    /// The command that reads standard output has ended, if there was one.
    pub(crate) fn end_filter(&mut self, out: &mut Vec<Clean<Event>>) {
        let Some(mut side) = self.filter.take() else { return };
        let rest = side.bytes.finish();
        self.reader.lines(&mut side, &rest, Stream::Stdout, false, out);
        self.reader.last_line(&mut side, Stream::Stdout, out);
        side.fragments.close(out);
    }

    /// Everything is over: what the adapter makes of the end.
    pub(crate) fn finish(&mut self, exit: Option<Exit>, out: &mut Vec<Clean<Event>>) {
        self.reader.marks.clear();
        self.reader.adapter.end(exit, &mut self.reader.events);
        self.reader.burst(&mut self.stdout, false, out);
        self.stdout.fragments.close(out);
    }
}

impl Reader {
    /// Splits bytes into lines and gives their events.
    fn lines(
        &mut self,
        side: &mut Side,
        bytes: &[u8],
        from: Stream,
        is_clear: bool,
        out: &mut Vec<Clean<Event>>,
    ) -> Verdict {
        let Self { adapter, events, marks, messages, .. } = self;
        marks.clear();
        marks.resize(side.raw.lines(), 0);
        let is_flood = is_flood(bytes, *messages);
        side.lines.push(bytes, |line| {
            let before = events.len();
            match from {
                Stream::Stdout => adapter.line(line, events),
                Stream::Stderr => adapter.stderr(line, events),
            }
            if is_flood && events.len() == before + 1 {
                join_last(events);
            }
            marks.push(events.len());
        });
        let is_clear = is_clear && !std::mem::replace(&mut side.suspicious, !is_clear);
        self.burst(side, is_clear, out)
    }

    /// The rest of the bytes is a line, too.
    fn last_line(&mut self, side: &mut Side, from: Stream, out: &mut Vec<Clean<Event>>) -> Verdict {
        let Self { adapter, events, marks, .. } = self;
        marks.clear();
        marks.resize(side.raw.lines(), 0);
        side.lines.finish(|line| match from {
            Stream::Stdout => adapter.line(line, events),
            Stream::Stderr => adapter.stderr(line, events),
        });
        self.burst(side, false, out)
    }

    fn burst(&mut self, side: &mut Side, is_clear: bool, out: &mut Vec<Clean<Event>>) -> Verdict {
        // The adapter says that another dialect is spoken, not an event: events of that kind can come from an agent too.
        if let Some(spoken) = self.adapter.spoken().filter(|_| !self.switched) {
            self.switched = true;
            self.messages = spoken.messages;
            side.lines.set_cap(self.line_cap);
        }
        let Self { events, marks, messages, .. } = self;
        side.fragments.take(Burst { events, marks, messages: *messages, is_clear }, out)
    }
}
