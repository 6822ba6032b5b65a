//! Events that an agent publishes in its own words: `<event topic="build.done">payload</event>`.
//!
//! Fed line by line with the agent's words only; code blocks and code within a line never publish.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// A longer payload is no message between hats.
const LONGEST_PAYLOAD: usize = 256 * 1024;

const OPEN: &str = "<event";
static OPENING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPEN));
const CLOSE: &str = "</event>";

/// An event as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub topic: String,
    /// What is between the tags.
    pub payload: String,
}

/// Collects the events of one iteration.
#[derive(Debug, Default)]
pub struct Topics {
    /// Everything that was published.
    pub said: Vec<Said>,
    /// What looked like an event and was none, in words.
    pub problems: Vec<String>,
    open: Option<OpenEvent>,
}

#[derive(Debug)]
struct OpenEvent {
    topic: String,
    payload: String,
    /// Events inside the payload are text.
    depth: u32,
}

impl Topics {
    /// True while a payload is open, so that empty lines belong to it.
    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// True when an event may begin in a text.
    pub(crate) fn begins_in(text: &str) -> bool {
        OPENING.find(text.as_bytes()).is_some()
    }

    /// Takes the next line of a message.
    pub(crate) fn line(&mut self, line: &str, fenced: bool) {
        if self.open.is_none() && (fenced || OPENING.find(line.as_bytes()).is_none()) {
            return;
        }
        let mut rest = line;
        loop {
            rest = match &mut self.open {
                Some(_) => match self.inside(rest) {
                    Some(rest) => rest,
                    None => return,
                },
                None => match self.outside(line, rest) {
                    Some(rest) => rest,
                    None => return,
                },
            };
        }
    }

    /// The message is over; an open event stays unfinished.
    pub(crate) fn message_over(&mut self) {
        if let Some(OpenEvent { topic, .. }) = self.open.take() {
            self.problems.push(format!("event `{topic}` has no `{CLOSE}`"));
        }
    }

    /// Looks for the next opening tag. Gives what follows it.
    fn outside<'a>(&mut self, line: &str, rest: &'a str) -> Option<&'a str> {
        let at = rest.find(OPEN)?;
        let after = &rest[at + OPEN.len()..];
        let before = line.len() - rest.len() + at;
        let in_code = line[..before].matches('`').count() % 2 == 1;
        if in_code || !after.starts_with([' ', '\t', '/', '>']) {
            return Some(after);
        }
        let Some((attributes, rest)) = tag_end(after) else {
            self.problems.push(format!("an event tag has no end: {}", shortened(&rest[at..])));
            return None;
        };
        let (attributes, empty) = match attributes.strip_suffix('/') {
            Some(attributes) => (attributes, true),
            None => (attributes, false),
        };
        match topic(attributes) {
            Some(topic) if empty => self.said.push(Said { topic, payload: String::new() }),
            Some(topic) => self.open = Some(OpenEvent { topic, payload: String::new(), depth: 0 }),
            None => {
                self.problems.push(format!("an event has no topic: {}", shortened(&format!("{OPEN}{attributes}>"))));
            }
        }
        Some(rest)
    }

    /// Adds to the payload until its closing tag. Gives what follows that.
    fn inside<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let open = self.open.as_mut()?;
        let mut at = 0;
        while let Some(next) = text[at..].find(['<']).map(|found| at + found) {
            let here = &text[next..];
            if let Some(after) = here.strip_prefix(CLOSE) {
                if open.depth == 0 {
                    open.payload.push_str(&text[..next]);
                    let OpenEvent { topic, payload, .. } = self.open.take()?;
                    self.said.push(Said { topic, payload: payload.trim().to_owned() });
                    return Some(after);
                }
                open.depth -= 1;
            } else if here.starts_with(OPEN) && here[OPEN.len()..].starts_with([' ', '\t', '>']) {
                open.depth += 1;
            }
            at = next + 1;
        }
        open.payload.push_str(text);
        open.payload.push('\n');
        if open.payload.len() > LONGEST_PAYLOAD {
            let topic = std::mem::take(&mut open.topic);
            self.problems.push(format!("event `{topic}` has more than {LONGEST_PAYLOAD} bytes and was dropped"));
            self.open = None;
        }
        None
    }
}

/// The attributes up to the `>` that ends the tag, which may be in quotes before, and what follows.
fn tag_end(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (None, '>') => return Some((&text[..at], &text[at + 1..])),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    None
}

/// The value of `topic`, in double quotes, single quotes or none.
fn topic(attributes: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim().rsplit(char::is_whitespace).next()?;
        let after = after.trim_start();
        let (value, left) = match after.chars().next()? {
            quote @ ('"' | '\'') => after[1..].split_once(quote)?,
            _ => after.split_once(char::is_whitespace).unwrap_or((after, "")),
        };
        if name == "topic" {
            let value = value.trim();
            return (!value.is_empty()).then(|| value.to_owned());
        }
        rest = left.trim_start();
    }
    None
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// True when a topic fits a pattern: exactly, `a.*` for everything below `a`, or `*`.
pub(crate) fn fits(pattern: &str, topic: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) if prefix.ends_with('.') => topic.starts_with(prefix) && topic.len() > prefix.len(),
        _ => pattern == topic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::markdown::Fences;

    fn read(text: &str) -> (Vec<(String, String)>, Vec<String>) {
        let (mut topics, mut fences) = (Topics::default(), Fences::default());
        for line in text.lines() {
            let fenced = fences.line(line);
            topics.line(line, fenced);
        }
        topics.message_over();
        (topics.said.into_iter().map(|said| (said.topic, said.payload)).collect(), topics.problems)
    }

    #[test]
    fn tags_publish_in_any_order_and_quoting() {
        for (text, expected) in [
            (r#"<event topic="a.b">x</event>"#, vec![("a.b", "x")]),
            ("<event topic='a.b'>x</event>", vec![("a.b", "x")]),
            ("<event id=\"1 > 0\" topic = a.b >x</event>", vec![("a.b", "x")]),
            (
                "Done. <event topic=\"one\">1</event> and <event topic=\"two\">2</event>",
                vec![("one", "1"), ("two", "2")],
            ),
            (
                "<event topic=\"a\">\nline <b>one</b>\n\nline two\n</event> tail",
                vec![("a", "line <b>one</b>\n\nline two")],
            ),
            ("<event topic=\"a\"/>", vec![("a", "")]),
            (
                "<event topic=\"a\">see <event topic=\"b\">x</event> there</event>",
                vec![("a", "see <event topic=\"b\">x</event> there")],
            ),
            ("```\n<event topic=\"a\">x</event>\n```", vec![]),
            ("write `<event topic=\"a\">x</event>` when done", vec![]),
            ("<events topic=\"a\">x</events>", vec![]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(topic, payload)| (topic.to_owned(), payload.to_owned())).collect();
            assert_eq!(read(text), (expected, Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_is_no_event_is_reported() {
        assert!(read("<event topic=\"a\">never closed").1[0].contains("`a` has no"));
        assert!(read("<event>x</event>").1[0].contains("no topic"));
        assert!(read("<event topic=\"a\"").1[0].contains("no end"));
    }

    #[test]
    fn patterns_fit_exactly_or_below_or_all() {
        for (pattern, topic, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", true),
            ("a.*", "a", false),
            ("a.*", "ab", false),
            ("*", "anything", true),
        ] {
            assert_eq!(fits(pattern, topic), expected, "{pattern} {topic}");
        }
    }
}
