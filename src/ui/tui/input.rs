//! The line at the bottom where a person writes, or chooses.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Search,
    /// Words for the next iteration.
    Hint,
    /// The answer to the agent's question.
    Answer,
    Limit,
    /// A file for the transcript.
    Write,
    /// Whether to stop at once.
    StopNow,
    /// What becomes of the run when its view is closed.
    Leave,
}

impl Question {
    /// What is before the answer.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Search => "/",
            Self::Hint => "hint: ",
            Self::Answer => "answer: ",
            Self::Limit => "limit (200, $5 or 2h): ",
            Self::Write => "write to: ",
            Self::StopNow => "stop the agent now? y n",
            Self::Leave => "s stop after this iteration  S stop now  d detach: show lines  Esc cancel",
        }
    }

    /// True when the answer only makes sense while the run is running.
    pub(crate) const fn needs_running_run(self) -> bool {
        matches!(self, Self::Hint | Self::Limit | Self::StopNow | Self::Leave)
    }

    /// True when one key is the answer.
    pub(crate) const fn is_choice(self) -> bool {
        matches!(self, Self::StopNow | Self::Leave)
    }
}

/// A line that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub question: Question,
    text: String,
    /// Where the next letter goes.
    at: usize,
}

/// What a key did to the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    More,
    Done(String),
    /// One key was the answer.
    Chosen(char),
    Away,
}

impl Input {
    /// Asks, with an answer that is there already.
    pub(crate) fn new(question: Question, text: &str) -> Self {
        Self { question, text: text.to_owned(), at: text.len() }
    }

    /// What was written, and where the next letter goes.
    pub(crate) fn text(&self) -> (&str, usize) {
        (&self.text, self.at)
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Typed::Away,
            KeyCode::Char('c') if control => return Typed::Away,
            KeyCode::Char(letter) if self.question.is_choice() => return Typed::Chosen(letter),
            KeyCode::Enter if self.question.is_choice() => {}
            KeyCode::Enter => return Typed::Done(std::mem::take(&mut self.text)),
            KeyCode::Char('u') if control => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('w') if control => {
                let kept = self.text[..self.at].trim_end().rfind(' ').map_or(0, |blank| blank + 1);
                self.text.drain(kept..self.at);
                self.at = kept;
            }
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.text.len(),
            KeyCode::Char(_) if control => {}
            KeyCode::Char(letter) => self.insert(letter),
            KeyCode::Backspace if self.at == 0 && self.text.is_empty() => return Typed::Away,
            KeyCode::Backspace => {
                if let Some(letter) = self.text[..self.at].chars().next_back() {
                    self.at -= letter.len_utf8();
                    self.text.remove(self.at);
                }
            }
            KeyCode::Delete if self.at < self.text.len() => {
                self.text.remove(self.at);
            }
            KeyCode::Left => self.at -= self.text[..self.at].chars().next_back().map_or(0, char::len_utf8),
            KeyCode::Right => self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => {}
        }
        Typed::More
    }

    /// Takes what was pasted: on one line.
    pub(crate) fn paste(&mut self, text: &str) {
        if !self.question.is_choice() {
            text.trim_end().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).for_each(|letter| {
                self.insert(letter);
            });
        }
    }

    fn insert(&mut self, letter: char) {
        self.text.insert(self.at, letter);
        self.at += letter.len_utf8();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(input: &mut Input, codes: &[KeyCode]) {
        for code in codes {
            assert_eq!(input.key(KeyEvent::from(*code)), Typed::More);
        }
    }

    #[test]
    fn a_line_is_edited_by_letters_not_bytes() {
        let mut input = Input::new(Question::Hint, "né");
        typed(&mut input, &[KeyCode::Left, KeyCode::Char('x'), KeyCode::Right, KeyCode::Char('ö'), KeyCode::Backspace]);
        input.paste("two\nlines\n");
        assert_eq!(input.text().0, "nxétwo lines");
        assert_eq!(input.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL)), Typed::More);
        assert_eq!(input.key(KeyEvent::from(KeyCode::Enter)), Typed::Done("nxétwo ".into()));
    }
}
