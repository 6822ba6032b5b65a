//! JSON lines: what every structured dialect shares. A dialect only reads objects.
//!
//! Agents, wrappers and shells print other things between the objects: banners, warnings, two objects on
//! a line, half a line when they are killed. None of it may be lost, taken for the agent's words, or
//! swallow the line after it.

use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::failure::Failure;
use super::plain::Plain;
use super::tail::Tail;
use super::turn::Turn;
use super::{Adapter, Context, stderr_text};
use crate::event::{Event, FailureClass, Tag};
use crate::process::{Exit, Line, Part};

/// Plain lines that are held back until a JSON line shows that they were none of the agent's words.
const HELD_LINES: usize = 200;
const HELD_BYTES: usize = 64 * 1024;
/// A document that is printed over many lines may have this many bytes.
const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
/// This many braces of a broken line are tried as the beginning of an object.
const TRIES: usize = 64;
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads the objects of one dialect.
pub(crate) trait Reader: Send {
    /// What is said of a stream that ends without the dialect's terminal event; `None` where it has none.
    const MISSING_END: Option<&'static str> = Some("ended without a result");

    /// True for an object that plainly belongs to this dialect.
    fn speaks(json: &str) -> bool;

    /// True for a line that changes nothing, told by its first bytes, before it is even read as text.
    fn changes_nothing(_line: &[u8]) -> bool {
        false
    }

    /// Takes one object. When it is not understood, nothing may have been told to the turn.
    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread>;

    /// True for a line outside the objects that the program prints about itself; it is shown as such.
    fn banner(&mut self, _line: &str, _turn: &mut Turn) -> bool {
        false
    }

    /// Takes a line of standard error that has been shown already.
    fn stderr(&mut self, _line: &str, _turn: &mut Turn) {}

    /// What kind of failure an exit code of this agent means.
    fn class_of(_exit: Exit) -> Option<FailureClass> {
        None
    }

    /// The streams are over.
    fn end(&mut self, _exit: Option<Exit>, _turn: &mut Turn) {}
}

/// Why an object was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misread {
    /// No event of this dialect.
    Unknown,
    /// An event of this dialect with a field of another shape, or no JSON at all.
    Shape(&'static str),
}

impl From<serde_json::Error> for Misread {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Data => Self::Shape("unexpected shape"),
            _ => Self::Shape("broken JSON"),
        }
    }
}

/// What the output has shown itself to be.
enum Mode {
    /// No object yet: lines are held.
    Undecided(Vec<Vec<u8>>),
    Json,
    /// The agent's text format.
    Text,
}

/// The adapter of a dialect of JSON lines, whose agent may also have been started with its text format.
pub(crate) struct JsonLines<R> {
    reader: R,
    turn: Turn,
    mode: Mode,
    plain: Plain,
    /// The lines so far of an object or array that is printed over many lines.
    document: String,
    tail: Tail,
}

impl<R: Reader> JsonLines<R> {
    /// An adapter that reads objects with `reader`.
    pub(crate) fn new(context: &Context, reader: R) -> Self {
        Self {
            reader,
            turn: Turn::default(),
            mode: Mode::Undecided(Vec::new()),
            plain: Plain::new(context),
            document: String::new(),
            tail: Tail::default(),
        }
    }

    /// Takes a line that is whole.
    fn whole(&mut self, bytes: &[u8]) {
        match self.mode {
            // Lines that only get counted may be most of a stream.
            Mode::Json if bytes.ends_with(b"}") && (R::changes_nothing(bytes) || self.turn.is_unknown(bytes)) => return,
            Mode::Text => {
                if !self.is_banner(bytes) {
                    self.words(bytes);
                }
                return;
            }
            _ => {}
        }
        let text = Line::whole(bytes).text();
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
        if !self.document.is_empty() || matches!(text, "{" | "[") {
            return self.document_line(text);
        }
        let json = text.trim_ascii();
        match json.as_bytes().first() {
            None => self.blank(bytes),
            Some(b'{') if self.object(json) => {}
            Some(b'[') if self.array(json) => {}
            Some(_) if matches!(self.mode, Mode::Undecided(_)) && !Self::recovers(json) => self.hold(bytes),
            Some(_) => self.pieces(json),
        }
    }

    /// The hot path: the line is one object that the dialect understands.
    fn object(&mut self, json: &str) -> bool {
        if !matches!(self.mode, Mode::Json) {
            return self.first_object(json);
        }
        match self.reader.object(json, &mut self.turn) {
            Ok(()) => true,
            Err(Misread::Unknown) => self.turn.unknown(json),
            Err(Misread::Shape(_)) => false,
        }
    }

    /// An object before anything is decided: one that is not understood is a plain line, for all that is known.
    fn first_object(&mut self, json: &str) -> bool {
        let mut told = Vec::new();
        self.turn.swap(&mut told);
        let read = self.reader.object(json, &mut self.turn);
        self.turn.swap(&mut told);
        if read.is_ok() {
            self.decide_json();
            self.turn.append(told);
        }
        read.is_ok()
    }

    /// All events in one array.
    fn array(&mut self, json: &str) -> bool {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else { return false };
        let speaks = items.iter().any(|item| R::speaks(item.get()));
        if speaks {
            self.decide_json();
            for item in items {
                if !self.object(item.get()) {
                    self.pieces(item.get());
                }
            }
        }
        speaks
    }

    /// True when a line that is no object has one of the dialect's in it.
    fn recovers(line: &str) -> bool {
        line.match_indices("{\"").take(TRIES).any(|(at, _)| first_value(&line[at..]).is_some_and(R::speaks))
    }

    /// Takes a line apart: objects of the dialect, and what is between them.
    fn pieces(&mut self, line: &str) {
        let mut rest = line;
        let mut from = 0;
        for _ in 0..TRIES {
            let Some(at) = rest[from..].find('{').map(|at| from + at) else { break };
            match first_value(&rest[at..]) {
                Some(object) if R::speaks(object) => {
                    self.decide_json();
                    self.stray(&rest[..at]);
                    if let Err(misread) = self.reader.object(object, &mut self.turn) {
                        self.misread(object, &misread);
                    }
                    rest = &rest[at + object.len()..];
                    from = 0;
                }
                Some(other) => from = at + other.len(),
                None => from = at + 1,
            }
        }
        self.stray(rest);
    }

    /// A piece that is no event of the dialect.
    fn stray(&mut self, piece: &str) {
        let piece = piece.trim();
        if piece.is_empty() {
        } else if piece.starts_with('{') {
            self.turn.stray(piece, "broken JSON");
        } else {
            self.tail.push(piece);
            self.turn.stray(piece, "not JSON");
        }
    }

    /// A well-formed object that the dialect does not understand.
    fn misread(&mut self, object: &str, misread: &Misread) {
        match misread {
            Misread::Unknown => _ = self.turn.unknown(object),
            Misread::Shape(reason) => {
                // With a key given twice the last one counts, as for every JavaScript agent.
                let once = serde_json::from_str::<Value>(object).map(|value| value.to_string()).unwrap_or_default();
                if once.len() < object.len() && self.reader.object(&once, &mut self.turn).is_ok() {
                    self.turn.unparsed(object, "a key is given twice: the last one counts");
                } else {
                    self.turn.stray(object, reason);
                }
            }
        }
    }

    /// A document that is printed over many lines: an opening line, indented lines, a closing line.
    fn document_line(&mut self, text: &str) {
        let opens = self.document.is_empty();
        let closes = text.starts_with(['}', ']']);
        if !(opens || closes || text.starts_with([' ', '\t'])) || self.document.len() > DOCUMENT_BYTES {
            self.break_document();
            return self.whole(text.as_bytes());
        }
        self.document.push_str(text);
        self.document.push('\n');
        if closes {
            let document = std::mem::take(&mut self.document);
            let json = document.trim_ascii();
            let understood = if json.starts_with('{') { self.object(json) } else { self.array(json) };
            if !understood {
                self.document = document;
                self.break_document();
            }
        }
    }

    /// It was no document after all.
    fn break_document(&mut self) {
        for line in std::mem::take(&mut self.document).lines() {
            match &mut self.mode {
                Mode::Undecided(_) => self.hold(line.as_bytes()),
                Mode::Json => self.turn.stray(line, "not JSON"),
                Mode::Text => self.words(line.as_bytes()),
            }
        }
    }

    fn blank(&mut self, bytes: &[u8]) {
        if matches!(&self.mode, Mode::Undecided(held) if !held.is_empty()) {
            self.hold(bytes);
        }
    }

    /// True for a line that the program prints about itself; it has been told then.
    fn is_banner(&mut self, bytes: &[u8]) -> bool {
        let text = Line::whole(bytes).text();
        let banner = self.reader.banner(&text, &mut self.turn);
        if banner {
            self.turn.text(Tag::Sys, None, super::strip_ansi(&text));
        }
        banner
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.is_banner(bytes) {
            return;
        }
        let Mode::Undecided(held) = &mut self.mode else { return };
        held.push(bytes.to_vec());
        if held.len() > HELD_LINES || held.iter().map(Vec::len).sum::<usize>() > HELD_BYTES {
            self.decide_text();
        }
    }

    fn decide_json(&mut self) {
        if let Mode::Undecided(held) = std::mem::replace(&mut self.mode, Mode::Json) {
            for line in held {
                let line = String::from_utf8_lossy(&line);
                if !line.trim().is_empty() {
                    self.tail.push(&line);
                    self.turn.stray(&line, "not JSON");
                }
            }
        }
    }

    fn decide_text(&mut self) {
        if let Mode::Undecided(held) = std::mem::replace(&mut self.mode, Mode::Text) {
            for line in held {
                self.words(&line);
            }
        }
    }

    /// A line of the agent's words.
    fn words(&mut self, bytes: &[u8]) {
        self.tail.push(&Line::whole(bytes).text());
        let mut out = Vec::new();
        self.plain.line(Line::whole(bytes), &mut out);
        // What a terminal is sent when the agent leaves it is not text.
        let silent = |event: &Event| matches!(event, Event::Text { text, .. } if !text.is_empty() && text.chars().all(|it| it.is_control() && it != '\t'));
        out.retain(|event| !silent(event));
        self.plain_events(out);
    }

    /// The lines of the text format are one message, until something else comes between them.
    fn plain_events(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Text { tag: Tag::Ai, text, .. } if self.turn.is_open(Tag::Ai, None) => {
                    self.turn.fragment(Tag::Ai, None, format!("\n{text}"));
                }
                Event::Text { tag: Tag::Ai, text, .. } => self.turn.fragment(Tag::Ai, None, text),
                other => self.turn.event(other),
            }
        }
    }

    /// A line longer than the cap, in parts.
    fn part(&mut self, line: Line<'_>) {
        self.decide_json();
        let text = line.text();
        if line.part == Part::First {
            self.turn.stray(&text, "the line is longer than the line cap");
        } else {
            self.turn.event(Event::Text { tag: Tag::Sys, text: text.into_owned(), delta: true, parent: None });
        }
    }

    /// What was held when the streams ended: the words of the text format, unless they are the error of a
    /// process that failed, or the half of a first JSON line.
    fn end_undecided(&mut self, exit: Option<Exit>) {
        let Mode::Undecided(held) = &self.mode else { return };
        let text: String = held.iter().map(|line| String::from_utf8_lossy(line) + "\n").collect();
        let half = text.starts_with("{\"") && serde_json::from_str::<&RawValue>(text.trim()).is_err();
        let failed = exit.is_some_and(|exit| !exit.success()) && super::failure::classify(None, &text).is_some();
        if held.is_empty() {
        } else if half {
            self.decide_json();
        } else if failed {
            self.mode = Mode::Text;
            for line in text.lines() {
                self.tail.push(line);
                self.turn.text(Tag::Sys, None, line);
            }
        } else {
            self.decide_text();
        }
    }
}

impl<R: Reader> Adapter for JsonLines<R> {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        match line.part {
            Part::Whole => self.whole(line.bytes),
            _ => self.part(line),
        }
        self.turn.swap(out);
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        let text = line.text();
        self.tail.push(&text);
        self.turn.event(stderr_text(line));
        self.reader.stderr(&text, &mut self.turn);
        self.turn.swap(out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        if !self.document.is_empty() {
            self.break_document();
        }
        self.end_undecided(exit);
        let mut rest = Vec::new();
        self.plain.flush(&mut rest);
        self.plain_events(rest);
        self.reader.end(exit, &mut self.turn);
        let failed = exit.is_some_and(|exit| !exit.success());
        if !self.turn.judged() && self.turn.failed().is_none() {
            let silent = matches!(&self.mode, Mode::Undecided(held) if held.is_empty());
            let failure = match exit {
                Some(exit) if exit.success() && silent => {
                    Some(Failure::of(FailureClass::Agent, None, "the answer was empty"))
                }
                Some(exit) if !exit.success() => self.tail.failure(exit, R::class_of(exit)),
                _ => None,
            };
            if let Some(failure) = failure {
                self.turn.failure(failure);
            }
        }
        let (success, reason) = match (&self.mode, R::MISSING_END) {
            _ if exit.is_some_and(was_stopped) => (Some(false), "stopped"),
            _ if failed || self.turn.failed().is_some() => (Some(false), "the agent failed"),
            (Mode::Json, Some(reason)) => (Some(false), reason),
            _ => (None, "end of output"),
        };
        self.turn.close(success, reason);
        self.turn.swap(out);
    }
}

/// True when a Unix signal ended the process, or it says so by its exit code.
pub(crate) fn was_stopped(exit: Exit) -> bool {
    matches!(exit, Exit::Signal(_) | Exit::Code(130 | 143))
}

/// The JSON value that a text begins with.
fn first_value(text: &str) -> Option<&str> {
    let value = Deserializer::from_str(text).into_iter::<&RawValue>().next()?;
    value.ok().map(RawValue::get)
}

#[cfg(test)]
#[path = "jsonl_tests.rs"]
mod tests;
