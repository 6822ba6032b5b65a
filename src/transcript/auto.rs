//! Reads the agent's own dialect, unless the first lines plainly speak another: then that one, from the
//! first line on. Wrappers do that. Nothing may be lost and nothing may come twice.

use super::{Adapter, Context, DIALECTS, Dialect};
use crate::event::{Event, Known, Messages};
use crate::process::{Exit, Line, Part};

/// So much is held back at most while nothing is decided.
const HELD_LINES: usize = 20;
const HELD_BYTES: usize = 64 * 1024;

/// An adapter for the dialect that the output really speaks.
pub fn auto(expected: &'static Dialect, context: &Context) -> Box<dyn Adapter> {
    let adapter = (expected.adapter)(context);
    let undecided = Some(Held::default());
    Box::new(Auto { expected, context: context.clone(), adapter, undecided, other: None, adopted: None })
}

/// The dialect that a line plainly speaks.
pub(crate) fn spoken(line: &str) -> Option<&'static Dialect> {
    let line = line.trim_start_matches('\u{feff}').trim();
    // The agents that speak like Claude know themselves by details, so Claude comes last.
    DIALECTS.iter().filter(|dialect| (dialect.speaks)(line)).max_by_key(|dialect| dialect.name != "claude")
}

struct Auto {
    expected: &'static Dialect,
    context: Context,
    adapter: Box<dyn Adapter>,
    /// What is held back, until it is decided.
    undecided: Option<Held>,
    /// The dialect that was not expected.
    other: Option<&'static Dialect>,
    adopted: Option<Adopted>,
}

/// A dialect that a plain agent turned out to speak. It may be an old log that the agent prints, so its success counts only
/// when it is the end of the output and the process exits with 0.
struct Adopted {
    /// Reads plain lines after the terminal event.
    plain: Box<dyn Adapter>,
    /// The terminal event, held back until the process has ended.
    success: Option<Event>,
    /// Another terminal event was handed on.
    ended: bool,
}

impl Adopted {
    /// Takes the terminal event out of the newest events. Words or tools after it mean that it was not the end.
    fn hold(&mut self, first: usize, out: &mut Vec<Event>) {
        let newest = out.split_off(first);
        for event in newest {
            let known = if let Event::Meta { meta } = &event { meta.known() } else { None };
            match (&event, known) {
                (_, Some(Known::TurnEnd { success: Some(true), .. })) => self.success = Some(event),
                (_, Some(Known::TurnEnd { .. })) => {
                    self.ended = true;
                    out.push(event);
                }
                (Event::Text { .. } | Event::ToolStart { .. }, _) => {
                    self.success = None;
                    out.push(event);
                }
                _ => out.push(event),
            }
        }
    }
}

#[derive(Default)]
struct Held {
    output: Vec<(Vec<u8>, bool)>,
    /// Already read by the expected adapter: nobody should wait for an error.
    errors: Vec<Vec<u8>>,
    /// Lines of an agent without structure, which nobody should wait for either.
    shown: usize,
}

impl Auto {
    /// What a line decides, if anything.
    fn judge(&self, line: &str) -> Option<&'static Dialect> {
        if (self.expected.speaks)(line) {
            return Some(self.expected);
        }
        match spoken(line) {
            Some(other) => Some(if self.understands(line) { self.expected } else { other }),
            None => None,
        }
    }

    /// True when the expected adapter makes sense of a line that looks like another agent's: many are alike.
    fn understands(&self, line: &str) -> bool {
        if self.expected.messages == Messages::Lines {
            return false;
        }
        let mut events = Vec::new();
        let mut adapter = (self.expected.adapter)(&self.context);
        adapter.line(Line::whole(line.as_bytes()), &mut events);
        !events.is_empty()
    }

    fn decide(&mut self, dialect: &'static Dialect, out: &mut Vec<Event>) {
        let Some(held) = self.undecided.take() else { return };
        if dialect.name != self.expected.name {
            if held.shown > 0 {
                // What the expected adapter still holds back belongs before the switch; the end is not there yet.
                let mut rest = Vec::new();
                self.adapter.end(None, &mut rest);
                let is_end = |event: &Event| matches!(event, Event::Meta { meta } if meta.kind() == Some("turn_end"));
                out.extend(rest.into_iter().filter(|event| !is_end(event)));
            }
            self.other = Some(dialect);
            let (from, to) = (self.expected.name.to_owned(), dialect.name.to_owned());
            out.push(Known::Dialect { from, to }.into());
            self.adapter = (dialect.adapter)(&self.context);
            if self.expected.messages == Messages::Lines {
                self.adopted =
                    Some(Adopted { plain: (self.expected.adapter)(&self.context), success: None, ended: false });
            }
            // They were shown; the new adapter must only know them.
            let mut shown = Vec::new();
            for bytes in &held.errors {
                self.adapter.stderr(Line::whole(bytes), &mut shown);
            }
        }
        for (bytes, terminated) in &held.output {
            self.read(Line { bytes, part: Part::Whole, terminated: *terminated }, out);
        }
    }

    /// Reads a line once the dialect is decided.
    fn read(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        let Some(adopted) = &mut self.adopted else { return self.adapter.line(line, out) };
        let first = out.len();
        let text = line.bytes.trim_ascii();
        if adopted.success.is_some() && !text.is_empty() && !text.starts_with(b"{") {
            adopted.plain.line(line, out);
        } else {
            self.adapter.line(line, out);
        }
        adopted.hold(first, out);
    }
}

impl Adapter for Auto {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        if self.undecided.is_none() {
            return self.read(line, out);
        }
        let decided = if line.part == Part::Whole { self.judge(&line.text()) } else { Some(self.expected) };
        if let Some(dialect) = decided {
            self.decide(dialect, out);
            return self.read(line, out);
        }
        if let Some(held) = &mut self.undecided {
            let blank = line.bytes.trim_ascii().is_empty();
            if self.expected.messages == Messages::Lines && !(blank && held.shown == 0) {
                // An agent without structure is read as it comes: a banner before the first structured line.
                for (bytes, terminated) in held.output.drain(..) {
                    self.adapter.line(Line { bytes: &bytes, part: Part::Whole, terminated }, out);
                }
                held.shown += 1;
                if held.shown > HELD_LINES {
                    self.undecided = None;
                }
                return self.adapter.line(line, out);
            }
            held.output.push((line.bytes.to_vec(), line.terminated));
            let bytes: usize = held.output.iter().map(|(bytes, _)| bytes.len()).sum();
            if held.output.len() > HELD_LINES || bytes > HELD_BYTES {
                self.decide(self.expected, out);
            }
        }
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        if let Some(held) = self.undecided.as_mut().filter(|held| held.errors.len() < HELD_LINES) {
            held.errors.push(line.bytes.to_vec());
        }
        self.adapter.stderr(line, out);
    }

    fn spoken(&self) -> Option<&'static Dialect> {
        self.other
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.decide(self.expected, out);
        let first = out.len();
        self.adapter.end(exit, out);
        if let Some(adopted) = &mut self.adopted {
            adopted.hold(first, out);
            match adopted.success.take().filter(|_| exit.is_none_or(Exit::success)) {
                Some(success) => out.push(success),
                // Its success does not count, but every output has an end.
                None if !adopted.ended => {
                    out.push(Known::TurnEnd { success: None, reason: Some("end of output".to_owned()) }.into());
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::dialect;

    fn read(expected: &str, output: &str) -> Vec<String> {
        let mut adapter = auto(dialect(expected).unwrap(), &Context::default());
        events(&mut *adapter, output)
    }

    fn events(adapter: &mut dyn Adapter, output: &str) -> Vec<String> {
        let mut out = Vec::new();
        for line in output.lines() {
            adapter.line(Line::whole(line.as_bytes()), &mut out);
        }
        adapter.end(Some(Exit::Code(0)), &mut out);
        out.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
    }

    #[test]
    fn a_banner_before_a_structured_stream_is_shown_and_the_stream_is_read() {
        let read = read("plain", &format!("Starting the agent\n{CLAUDE}"));
        assert_eq!(read[0], r#"{"type":"text","tag":"AI","text":"Starting the agent"}"#);
        assert_eq!(read[1], r#"{"type":"meta","meta":{"kind":"dialect","from":"plain","to":"claude"}}"#);
        assert_eq!(read[2..], plainly("claude", CLAUDE)[..]);
    }

    #[test]
    fn a_line_that_looks_structured_late_in_a_plain_text_is_text() {
        let output = format!("{}{CLAUDE}", "words\n".repeat(HELD_LINES + 1));
        assert!(read("plain", &output).iter().all(|event| !event.contains("dialect")));
    }

    fn plainly(name: &str, output: &str) -> Vec<String> {
        events(&mut *(dialect(name).unwrap().adapter)(&Context::default()), output)
    }

    const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","claude_code_version":"2"}
{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]},"session_id":"s"}
{"type":"result","subtype":"success","is_error":false,"result":"hi","session_id":"s"}"#;
    const GEMINI: &str = r#"{"type":"init","timestamp":"2026-11-15T19:32:20.202Z","session_id":"s","model":"m"}
{"type":"message","role":"assistant","content":"hi","delta":true}
{"type":"result","status":"success","stats":{"models":{}}}"#;

    #[test]
    fn the_expected_dialect_is_read_as_if_nobody_had_looked() {
        for (name, output) in
            [("claude", CLAUDE), ("gemini", GEMINI), ("plain", "hello\nthere"), ("claude", "hello\nthere")]
        {
            assert_eq!(read(name, output), plainly(name, output), "{name}");
        }
        assert_eq!(read("claude", ""), plainly("claude", ""));
    }

    #[test]
    fn another_dialect_is_read_from_its_first_line_and_the_switch_is_told() {
        for (expected, output, real) in
            [("claude", GEMINI, "gemini"), ("gemini", CLAUDE, "claude"), ("plain", CLAUDE, "claude")]
        {
            let output = format!("\n{output}");
            let mut events = read(expected, &output);
            let switch = format!(r#"{{"type":"meta","meta":{{"kind":"dialect","from":"{expected}","to":"{real}"}}}}"#);
            assert_eq!(events.remove(0), switch);
            assert_eq!(events, plainly(real, &output), "{expected} → {real}");
        }
    }

    #[test]
    fn a_dialect_that_a_plain_agent_speaks_gives_a_verdict_only_at_a_clean_end() {
        let ends = |output: &str, exit: i32| {
            let mut adapter = auto(dialect("plain").unwrap(), &Context::default());
            let mut out = Vec::new();
            output.lines().for_each(|line| adapter.line(Line::whole(line.as_bytes()), &mut out));
            assert!(!out.iter().any(|event| serde_json::to_string(event).unwrap().contains("turn_end")));
            adapter.end(Some(Exit::Code(exit)), &mut out);
            out.iter().any(|event| serde_json::to_string(event).unwrap().contains(r#""success":true"#))
        };
        assert!(ends(CLAUDE, 0));
        assert!(!ends(CLAUDE, 1), "an old log, and then a failure");
        assert!(!ends(&format!("{CLAUDE}\nStill working."), 0), "an old log, and then words");
    }

    #[test]
    fn lines_before_the_decision_are_kept() {
        let output = format!("a banner\n{GEMINI}");
        let events = read("claude", &output);
        assert!(events.iter().any(|event| event.contains("a banner")), "{events:?}");
        assert_eq!(events[1..], plainly("gemini", &output)[..]);
    }

    #[test]
    fn errors_are_shown_at_once_and_only_once() {
        let mut adapter = auto(dialect("claude").unwrap(), &Context::default());
        let mut out = Vec::new();
        adapter.stderr(Line::whole(b"Error: 401 Unauthorized"), &mut out);
        assert_eq!(out.len(), 1);
        let first = GEMINI.lines().next().unwrap();
        adapter.line(Line::whole(first.as_bytes()), &mut out);
        adapter.end(Some(Exit::Code(1)), &mut out);
        let shown: Vec<String> = out.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let shown_once = shown.iter().filter(|event| event.contains(r#""tag":"SYS""#)).count();
        assert_eq!(shown_once, 1, "{shown:?}");
        assert!(shown.iter().any(|event| event.contains(r#""class":"auth""#)), "the new adapter knows them: {shown:?}");
    }

    #[test]
    fn agents_that_speak_like_claude_are_not_mistaken_for_it() {
        let amp = CLAUDE.replace(r#""session_id":"s""#, r#""session_id":"T-1""#);
        assert_eq!(spoken(amp.lines().next().unwrap()).unwrap().name, "amp");
        assert_eq!(spoken(CLAUDE.lines().next().unwrap()).unwrap().name, "claude");
        for expected in ["amp", "qwen", "cursor"] {
            assert_eq!(read(expected, CLAUDE), plainly(expected, CLAUDE), "{expected} understands it");
        }
    }
}
