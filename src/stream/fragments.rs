//! Events without secrets. Fragments of one message are one text: a secret that is cut between them is found, because what
//! may be its beginning waits for the next fragment. What comes together is joined on the way.

use std::borrow::Cow;

use super::raw::Piece;
use crate::event::{Event, Messages};
use crate::redact::{Clean, Redactor, Streaming};

/// More plain lines than this in one burst are a flood.
const FLOOD_LINES: usize = 64;

/// Fragments are joined up to this size.
const MOST_JOINED: usize = 1024 * 1024;

/// Shorter texts are searched again without asking whether that is needed.
const SHORT: usize = 256;

/// The events of one of the agent's streams.
#[derive(Debug)]
pub(super) struct Fragments {
    redactor: Redactor,
    /// The message or tool output that is coming in fragments.
    open: Option<OpenMessage>,
}

#[derive(Debug)]
struct OpenMessage {
    /// The last fragment, without its text.
    like: Event,
    stream: Streaming,
}

/// What the lines of a burst gave.
pub(super) struct Burst<'a> {
    pub(super) events: &'a mut Vec<Event>,
    /// How many events there were after each line.
    pub(super) marks: &'a [usize],
    pub(super) messages: Messages,
    /// The bytes had nothing in them that a secret could be made of, so that whole texts need not be searched again.
    pub(super) is_clear: bool,
}

/// What the raw file must do about the lines of a burst.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// These fragments hold parts of a secret.
    pub(super) secret: Vec<Piece>,
    /// These may: nobody can tell yet.
    pub(super) waiting: Vec<Piece>,
    /// Those that waited before this burst turned out to be parts of a secret.
    pub(super) earlier: bool,
}

impl Verdict {
    /// Finds the pieces that a secret is made of, one after the other.
    fn about(&mut self, pieces: Vec<Piece>, mut stream: Streaming) {
        for piece in pieces {
            let (taken, held) = (stream.taken(), stream.holds());
            stream.push(piece.text.as_bytes());
            if stream.taken() > taken {
                self.earlier |= held;
                self.secret.append(&mut self.waiting);
                self.secret.push(piece);
            } else if stream.holds() {
                self.waiting.push(piece);
            } else {
                self.waiting.clear();
            }
        }
    }
}

impl Fragments {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Self { redactor: redactor.clone(), open: None }
    }

    /// True while the beginning of a secret may be under way.
    pub(super) fn holds(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.stream.holds())
    }

    /// Takes the secrets out of a burst.
    pub(super) fn take(&mut self, burst: Burst<'_>, out: &mut Vec<Clean<Event>>) -> Verdict {
        let Burst { events, marks, messages, is_clear } = burst;
        let mut verdict = Verdict::default();
        let mut events = events.drain(..).enumerate().peekable();
        while let Some((index, mut event)) = events.next() {
            if fragment(&mut event).is_none() {
                self.close(out);
                self.whole(&mut event, is_clear, messages);
                out.push(Clean::made(event));
                continue;
            }
            let mut pieces = vec![piece(&mut event, index, marks)];
            if self.open.as_ref().is_none_or(|open| open.like != event) {
                self.close(out);
            }
            let mut length = pieces[0].text.len();
            while length < MOST_JOINED
                && let Some((index, mut next)) = events.next_if(|(_, next)| is_same_message(&event, next))
            {
                let next = piece(&mut next, index, marks);
                length += next.text.len();
                pieces.push(next);
            }
            self.fragments(event, pieces, &mut verdict, out);
        }
        verdict
    }

    /// Fragments of one message that came together.
    fn fragments(&mut self, event: Event, pieces: Vec<Piece>, verdict: &mut Verdict, out: &mut Vec<Clean<Event>>) {
        let open = self.open.get_or_insert_with(|| OpenMessage { like: event, stream: Streaming::new(&self.redactor) });
        let text = match &pieces[..] {
            [only] => Cow::Borrowed(&only.text),
            _ => Cow::Owned(pieces.iter().map(|piece| piece.text.as_str()).collect()),
        };
        let before = open.stream.clone();
        let clean = open.stream.push(text.as_bytes());
        if !clean.is_empty() || text.is_empty() {
            let mut event = open.like.clone();
            set(&mut event, into_text(clean.into_owned()));
            out.push(Clean::made(event));
        }
        if open.stream.taken() > before.taken() || open.stream.holds() {
            verdict.about(pieces, before);
        } else {
            verdict.waiting.clear();
        }
    }

    /// The message is over: what was held back is no secret.
    pub(super) fn close(&mut self, out: &mut Vec<Clean<Event>>) {
        let Some(mut open) = self.open.take() else { return };
        let rest = open.stream.finish();
        if !rest.is_empty() {
            set(&mut open.like, into_text(rest));
            out.push(Clean::made(open.like));
        }
    }

    /// An event that is no fragment. Its bytes are clean already, but an adapter may have put them together.
    fn whole(&self, event: &mut Event, is_clear: bool, messages: Messages) {
        match event {
            Event::Text { text, .. } | Event::ToolOutput { text, .. } => {
                // Where each line is an event, nothing is put together.
                if !is_clear || (text.len() < SHORT && messages != Messages::Lines) {
                    self.redactor.clean(text);
                }
            }
            Event::ToolStart { tool, .. } => {
                if let Some(input) = &mut tool.input {
                    self.redactor.clean_object(input);
                }
            }
            Event::Meta { meta } => self.redactor.clean_object(&mut meta.0),
            Event::ToolEnd { .. } | Event::Usage { .. } => {}
        }
    }

    /// An event that ralph itself makes.
    pub(super) fn own(&self, mut event: Event) -> Clean<Event> {
        self.whole(&mut event, false, Messages::Whole);
        Clean::made(event)
    }
}

/// Takes the text out of a fragment.
fn piece(event: &mut Event, index: usize, marks: &[usize]) -> Piece {
    let text = fragment(event).map(std::mem::take).unwrap_or_default();
    Piece { line: marks.partition_point(|&after| after <= index), text }
}

/// The text of a fragment.
fn fragment(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::Text { text, delta: true, .. } | Event::ToolOutput { text, delta: true, .. } => Some(text),
        _ => None,
    }
}

/// Nearly all text is whole, and checking that is many times faster than repairing it.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn set(event: &mut Event, new: String) {
    if let Some(text) = fragment(event) {
        *text = new;
    }
}

/// Whether a fragment continues the message of another.
fn is_same_message(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (
            Event::Text { tag, parent, delta: true, .. },
            Event::Text { tag: other_tag, parent: other_parent, delta: true, .. },
        ) => tag == other_tag && parent == other_parent,
        (
            Event::ToolOutput { tool, parent, delta: true, .. },
            Event::ToolOutput { tool: other_tool, parent: other_parent, delta: true, .. },
        ) => tool == other_tool && parent == other_parent,
        _ => false,
    }
}

/// True for more plain lines at once than become events of their own.
pub(super) fn is_flood(bytes: &[u8], messages: Messages) -> bool {
    messages == Messages::Lines && memchr::memchr_iter(b'\n', bytes).nth(FLOOD_LINES).is_some()
}

/// Joins the last line of a flood with those before it.
pub(super) fn join_last(events: &mut Vec<Event>) {
    if let [.., before, last] = &mut events[..]
        && let Some((text, more)) = as_lines(before, last)
    {
        text.push('\n');
        text.push_str(more);
        events.pop();
    }
}

/// The texts of two lines that can be one record.
fn as_lines<'a>(one: &'a mut Event, other: &'a Event) -> Option<(&'a mut String, &'a str)> {
    match (one, other) {
        (
            Event::Text { tag, text, delta: false, parent },
            Event::Text { tag: other, text: more, delta: false, parent: other_parent },
        ) if tag == other && parent == other_parent => Some((text, more)),
        _ => None,
    }
}

/// Joins plain lines that came together: a flood of them is one message by definition, so that it can be one record.
pub(crate) fn join_flood(events: &mut Vec<Clean<Event>>, first: usize, messages: Messages) {
    if messages != Messages::Lines || events.len() - first <= FLOOD_LINES {
        return;
    }
    let mut joined: Vec<Event> = Vec::with_capacity(16);
    for event in events.drain(first..).map(Clean::into_inner) {
        if let Some((text, more)) = joined.last_mut().and_then(|last| as_lines(last, &event)) {
            text.push('\n');
            text.push_str(more);
        } else {
            joined.push(event);
        }
    }
    events.extend(joined.into_iter().map(Clean::made));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Tag;

    const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    const VALUE: &str = "Tr0ub4dor&3 \"quoted\"/x";

    fn burst(fragments: &mut Fragments, mut events: Vec<Event>, messages: Messages) -> Vec<Event> {
        let marks: Vec<usize> = (1..=events.len()).collect();
        let mut out = Vec::new();
        fragments.take(Burst { events: &mut events, marks: &marks, messages, is_clear: false }, &mut out);
        out.into_iter().map(Clean::into_inner).collect()
    }

    fn joined(events: Vec<Event>, messages: Messages) -> Vec<Event> {
        burst(&mut Fragments::new(&Redactor::off()), events, messages)
    }

    #[test]
    fn a_secret_that_is_cut_between_fragments_is_found() {
        for (secret, name) in [(TOKEN, "github-token"), (VALUE, "DEPLOY_TOKEN")] {
            for cut in 1..secret.len() {
                let redactor = Redactor::new([("DEPLOY_TOKEN".to_owned(), VALUE.to_owned())]);
                let mut fragments = Fragments::new(&redactor);
                let (head, tail) = secret.split_at(cut);
                let mut out = Vec::new();
                for text in [&format!("see {head}"), tail, " and on"] {
                    out.extend(burst(&mut fragments, vec![Event::delta(Tag::Ai, text)], Messages::Whole));
                }
                let mut rest = Vec::new();
                fragments.close(&mut rest);
                out.extend(rest.into_iter().map(Clean::into_inner));
                let text: String = out.iter_mut().filter_map(fragment).map(|text| text.as_str()).collect();
                assert_eq!(text, format!("see [redacted:{name}] and on"), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_flood_of_lines_becomes_blocks_and_a_few_lines_stay_apart() {
        let lines = |count| -> Vec<Event> {
            (0..count).map(|number: usize| Event::text(Tag::Ai, number.to_string())).collect()
        };
        let joined = |count, messages| {
            let mut events = lines(count).into_iter().map(Clean::made).collect();
            join_flood(&mut events, 0, messages);
            events
        };
        assert_eq!(joined(FLOOD_LINES, Messages::Lines).len(), FLOOD_LINES);
        let many = joined(FLOOD_LINES + 1, Messages::Lines);
        assert!(matches!(&*many[0], Event::Text { text, .. } if text.starts_with("0\n1\n2")) && many.len() == 1);
        let messages = joined(FLOOD_LINES + 1, Messages::Whole);
        assert_eq!(messages.len(), FLOOD_LINES + 1, "messages of a dialect are never joined");
    }

    #[test]
    fn fragments_of_one_message_become_one_record() {
        let ai = |text| Event::delta(Tag::Ai, text);
        let mut events = vec![Event::text(Tag::Ai, "whole"), ai("a"), ai("b"), Event::delta(Tag::Think, "t"), ai("c")];
        events.push(ai("d").within("x"));
        let expected =
            [Event::text(Tag::Ai, "whole"), ai("ab"), Event::delta(Tag::Think, "t"), ai("c"), ai("d").within("x")];
        assert_eq!(joined(events, Messages::Whole), expected);
    }
}
