//! Remembers what was said in fragments, so that the whole message which many agents print after them, and
//! the answer repeated in the result line, are never said twice and never lost. Memory is bounded.

use crate::event::Tag;

/// So much of the end of all that was said is compared with the result: two answers that end alike for so
/// long are one.
const REMEMBERED: usize = 16 * 1024;
/// So much of a message is compared with its repetition.
const COMPARED: usize = 256 * 1024;
/// This many messages may wait for their repetition.
const MESSAGES: usize = 16;

/// One message in fragments.
#[derive(Debug)]
struct Fragments {
    tag: Tag,
    parent: Option<String>,
    /// The beginning, at most [`COMPARED`] bytes.
    head: String,
    length: usize,
    /// A fragment would continue it.
    open: bool,
}

/// The words of one iteration, as far as a repetition could name them.
#[derive(Debug, Default)]
pub(crate) struct Words {
    messages: Vec<Fragments>,
    /// The end of the agent's own words.
    said: String,
    /// True: `said` lost its beginning.
    cut: bool,
}

impl Words {
    /// The end of the agent's own words.
    pub(crate) fn last(&self) -> &str {
        &self.said
    }

    /// Takes note of the agent's own words.
    pub(crate) fn said(&mut self, text: &str) {
        if self.said.len() + text.len() > 2 * REMEMBERED {
            let keep = self.said.len().saturating_sub(REMEMBERED);
            self.said.drain(..self.said.ceil_char_boundary(keep));
            self.cut = true;
        }
        let from = text.ceil_char_boundary(text.len().saturating_sub(REMEMBERED));
        self.cut |= from > 0;
        self.said.push_str(&text[from..]);
    }

    /// True when the agent has said nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// True when `answer` is what the agent said last, blanks aside.
    pub(crate) fn ends_with(&self, answer: &str) -> bool {
        fn backwards(text: &str) -> impl Iterator<Item = char> {
            text.chars().rev().filter(|character| !character.is_whitespace())
        }
        let mut said = backwards(&self.said);
        for character in backwards(answer) {
            match said.next() {
                Some(other) if other == character => {}
                Some(_) => return false,
                None => return self.cut,
            }
        }
        true
    }

    /// Takes note of a fragment; true when it is the first of its message.
    pub(crate) fn fragment(&mut self, tag: Tag, parent: Option<&str>, text: &str) -> bool {
        let open = self.messages.iter().rposition(|message| message.open && message.is_of(tag, parent));
        let at = open.unwrap_or_else(|| {
            if self.messages.len() == MESSAGES {
                self.messages.remove(0);
            }
            let parent = parent.map(str::to_owned);
            self.messages.push(Fragments { tag, parent, head: String::new(), length: 0, open: true });
            self.messages.len() - 1
        });
        let message = &mut self.messages[at];
        if message.length == message.head.len() {
            let room = COMPARED.saturating_sub(message.head.len());
            message.head.push_str(&text[..text.floor_char_boundary(room)]);
        }
        message.length += text.len();
        open.is_none()
    }

    /// The message is over: what follows is a new one. Its repetition may still come.
    pub(crate) fn close(&mut self, tag: Tag, parent: Option<&str>) {
        for message in self.messages.iter_mut().filter(|message| message.is_of(tag, parent)) {
            message.open = false;
        }
    }

    /// Nobody will repeat what this speaker has said.
    pub(crate) fn forget(&mut self, parent: Option<&str>) {
        self.messages.retain(|message| message.parent.as_deref() != parent);
    }

    /// How much of a whole message its fragments have said already; `None` when they have not said it.
    pub(crate) fn repeated(&mut self, tag: Tag, parent: Option<&str>, whole: &str) -> Option<usize> {
        let at = self.messages.iter().position(|message| message.is_of(tag, parent) && message.begins(whole))?;
        Some(self.messages.remove(at).length)
    }
}

impl Fragments {
    fn is_of(&self, tag: Tag, parent: Option<&str>) -> bool {
        self.tag == tag && self.parent.as_deref() == parent
    }

    fn begins(&self, whole: &str) -> bool {
        whole.len() >= self.length && whole.starts_with(&self.head) && whole.is_char_boundary(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_known_by_its_fragments() {
        let mut words = Words::default();
        assert!(words.fragment(Tag::Ai, None, "one "));
        assert!(!words.fragment(Tag::Ai, None, "two"));
        assert!(words.fragment(Tag::Ai, Some("sub"), "other"));
        assert_eq!(words.repeated(Tag::Ai, None, "one two three"), Some(7));
        assert_eq!(words.repeated(Tag::Ai, None, "one two three"), None, "each message is repeated once");
        words.fragment(Tag::Ai, None, "one");
        assert_eq!(words.repeated(Tag::Ai, None, "another"), None);
        words.close(Tag::Ai, None);
        assert!(words.fragment(Tag::Ai, None, "two"), "a new message");
        assert_eq!(words.repeated(Tag::Ai, None, "one"), Some(3), "all blocks first, then their repetitions");
        assert_eq!(words.repeated(Tag::Ai, None, "two"), Some(3));
        assert_eq!(words.repeated(Tag::Ai, Some("sub"), "other"), Some(5));
    }

    #[test]
    fn a_long_message_is_known_by_its_beginning() {
        let mut words = Words::default();
        let part = "ä".repeat(1000);
        let mut whole = String::new();
        for _ in 0..2000 {
            words.fragment(Tag::Ai, None, &part);
            words.said(&part);
            whole.push_str(&part);
        }
        assert!(words.said.len() <= 2 * REMEMBERED);
        assert!(words.ends_with(&whole));
        assert!(!words.ends_with("b"));
        assert_eq!(words.repeated(Tag::Ai, None, &whole), Some(whole.len()));
    }

    #[test]
    fn the_last_words_are_known_whatever_the_blanks() {
        let mut words = Words::default();
        assert!(!words.ends_with("x"));
        words.said("first\n");
        words.said("second ");
        assert!(words.ends_with("first second"));
        assert!(words.ends_with("second\n"));
        assert!(!words.ends_with("first"));
        assert!(!words.ends_with("zero first second"));
    }
}
