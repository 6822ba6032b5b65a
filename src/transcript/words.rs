//! Remembers what was said in fragments, so that the whole message which many agents print after them, and
//! the answer repeated in the result line, are never said twice and never lost. Memory is bounded.

use crate::event::Tag;

/// So much of a message is compared with its repetition, and so much of all that was said with the result.
const REMEMBERED: usize = 1024 * 1024;

/// The fragments of one open message.
#[derive(Debug)]
struct Fragments {
    tag: Tag,
    parent: Option<String>,
    /// The beginning, at most [`REMEMBERED`] bytes.
    head: String,
    length: usize,
}

/// The words of one iteration, as far as a repetition could name them.
#[derive(Debug, Default)]
pub struct Words {
    open: Vec<Fragments>,
    /// The end of the agent's own words.
    said: String,
    /// True: `said` lost its beginning.
    cut: bool,
}

impl Words {
    /// Takes note of the agent's own words.
    pub fn said(&mut self, text: &str) {
        if self.said.len() + text.len() > 2 * REMEMBERED {
            let keep = self.said.len().saturating_sub(REMEMBERED);
            let from = (keep..=self.said.len()).find(|&at| self.said.is_char_boundary(at)).unwrap_or(0);
            self.said.drain(..from);
            self.cut = true;
        }
        let most = text.len().saturating_sub(REMEMBERED);
        let from = (most..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        self.cut |= from > 0;
        self.said.push_str(&text[from..]);
    }

    /// True when the agent has said nothing.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// True when `answer` is what the agent said last, blanks aside.
    pub fn ends_with(&self, answer: &str) -> bool {
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
    pub fn fragment(&mut self, tag: Tag, parent: Option<&str>, text: &str) -> bool {
        let at = self.find(tag, parent).unwrap_or_else(|| {
            self.open.push(Fragments { tag, parent: parent.map(str::to_owned), head: String::new(), length: 0 });
            self.open.len() - 1
        });
        let fragments = &mut self.open[at];
        let first = fragments.length == 0;
        if fragments.length == fragments.head.len() {
            let room = REMEMBERED.saturating_sub(fragments.head.len()).min(text.len());
            let end = (0..=room).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            fragments.head.push_str(&text[..end]);
        }
        fragments.length += text.len();
        first
    }

    /// The message is over, and nobody will repeat it.
    pub fn close(&mut self, tag: Tag, parent: Option<&str>) {
        if let Some(at) = self.find(tag, parent) {
            self.open[at].head.clear();
            self.open[at].length = 0;
        }
    }

    /// How much of a whole message its fragments have said already; `None` when there were none, or when
    /// they said something else. The message is over then.
    pub fn repeated(&mut self, tag: Tag, parent: Option<&str>, whole: &str) -> Option<usize> {
        let fragments = &self.open[self.find(tag, parent)?];
        let length = fragments.length;
        let same = length > 0 && whole.starts_with(&fragments.head) && whole.is_char_boundary(length);
        self.close(tag, parent);
        (same && whole.len() >= length).then_some(length)
    }

    fn find(&self, tag: Tag, parent: Option<&str>) -> Option<usize> {
        self.open.iter().position(|open| open.tag == tag && open.parent.as_deref() == parent)
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
