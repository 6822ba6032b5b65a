//! What the events of an iteration say that matters before its end: a refused login, and whether anything was said at all.
//! Pure.

use super::reading::Authority;
use crate::event::{Event, FailureClass, Known, Stream, Tag};
use crate::sandbox::complaints;
use crate::signals::markdown::is_invisible;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The model has answered in this iteration.
    answered: bool,
    /// How often the login was refused, and what the agent said about it.
    refusals: u32,
    refusal: String,
    /// Something that can be seen was printed on standard output.
    pub(super) visible: bool,
    /// The agent's own display showed something.
    pub(super) displayed: bool,
    /// Lines of tools that complain of permissions, for an explanation by the wall.
    pub(super) complaints: Vec<String>,
}

/// No more complaints of one iteration are kept.
const MOST_COMPLAINTS: usize = 50;

impl Observed {
    pub(super) fn see(&mut self, from: Stream, event: &Event) {
        match event {
            Event::Text { tag, text, .. } if from == Stream::Stdout => {
                let visible = !text.chars().all(is_invisible);
                self.visible |= visible;
                self.answered |= visible && matches!(tag, Tag::Ai | Tag::Think);
                if *tag == Tag::Tool {
                    self.complain(text);
                }
            }
            Event::Text { text, .. } => self.complain(text),
            Event::ToolStart { .. } => (self.visible, self.answered) = (true, true),
            Event::ToolOutput { text, .. } => {
                self.visible = true;
                self.complain(text);
            }
            Event::Meta { meta } if matches!(meta.kind(), Some("error" | "retry")) => match meta.known() {
                Some(Known::Error { class: FailureClass::Auth, message, .. }) => self.refused(message),
                Some(Known::Retry { class: FailureClass::Auth, message, .. }) => {
                    self.refused(message.unwrap_or_default());
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn complain(&mut self, text: &str) {
        let room = MOST_COMPLAINTS.saturating_sub(self.complaints.len());
        self.complaints.extend(complaints(text).take(room));
    }

    fn refused(&mut self, message: String) {
        self.refusals += 1;
        self.refusal = message;
    }

    /// What the agent said about its login, when retrying is no use: refused before the first answer, or twice after it. A
    /// login that worked a moment ago may have been refused by mistake once. What an agent writes about itself (RTF1) does
    /// not count before its process has failed.
    pub(super) fn refused_login(&self, authority: Authority) -> Option<String> {
        let enough = authority == Authority::Adapter && self.refusals >= if self.answered { 2 } else { 1 };
        let detail = if self.refusal.is_empty() { String::new() } else { format!(": {}", self.refusal) };
        enough.then(|| format!("the login was refused{detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(class: FailureClass) -> Event {
        Known::Retry { class, attempt: Some(1), delay_ms: None, message: Some("401".into()) }.into()
    }

    fn error(class: FailureClass) -> Event {
        let message = "401".to_owned();
        Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None }.into()
    }

    #[test]
    fn a_login_is_refused_at_once_before_an_answer_and_at_the_second_time_after_one() {
        let mut observed = Observed::default();
        observed.see(Stream::Stdout, &retry(FailureClass::Overload));
        assert_eq!(observed.refused_login(Authority::Adapter), None);
        observed.see(Stream::Stdout, &error(FailureClass::Auth));
        assert_eq!(observed.refused_login(Authority::Adapter).as_deref(), Some("the login was refused: 401"));
        let mut observed = Observed::default();
        observed.see(Stream::Stdout, &Event::text(Tag::Ai, "Working."));
        observed.see(Stream::Stdout, &error(FailureClass::Auth));
        assert_eq!(observed.refused_login(Authority::Adapter), None);
        observed.see(Stream::Stdout, &retry(FailureClass::Auth));
        assert!(observed.refused_login(Authority::Adapter).is_some());
    }

    #[test]
    fn blank_lines_are_nothing() {
        let mut observed = Observed::default();
        observed.see(Stream::Stdout, &Event::text(Tag::Ai, " \n\t"));
        assert!(!observed.visible);
    }
}
