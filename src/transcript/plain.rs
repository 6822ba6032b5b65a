//! Plain text: each line is the agent's words, except a verbatim echo of the prompt.

use std::collections::VecDeque;

use super::echo::Echo;
use super::tail::Tail;
use super::{Adapter, Capabilities, Context, Dialect, Messages, stderr_text, turn_end};
use crate::event::{Event, FailureClass, Tag};
use crate::process::{Exit, Line, Part};

/// The row of the table.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "plain",
    capabilities: Capabilities { roles: false, tools: false, usage: false, prompt_hiding: true, session: false },
    messages: Messages::Lines,
    speaks: |_| false,
    adapter: |context| Box::new(Plain::new(context)),
};

/// Also the base of dialects that mix structure with plain lines.
pub(crate) struct Plain {
    echo: Echo,
    recent: Recent,
}

impl Plain {
    pub(crate) fn new(context: &Context) -> Self {
        let recent = Recent { errors: context.errors.clone(), ..Recent::default() };
        Self { echo: Echo::new(&context.prompts), recent }
    }

    /// The streams are over: what is held back comes, and what the last words say of a failure.
    pub(crate) fn give_up(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.flush(out);
        self.recent.explain(exit, out);
    }

    /// Lines of the echo that could still turn out to be the agent's words.
    pub(crate) fn flush(&mut self, out: &mut Vec<Event>) {
        self.echo.flush(&mut |tag, line| out.push(Event::text(tag, line)));
    }
}

impl Adapter for Plain {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        Recent::push(&mut self.recent.lines, line.bytes);
        let text = line.text();
        let text = super::strip_ansi(&text);
        if line.part == Part::Whole {
            self.echo.line(&text, &mut |tag, line| out.push(Event::text(tag, line)));
        } else {
            self.flush(out);
            out.push(Event::Text {
                tag: Tag::Ai,
                text: text.into_owned(),
                delta: line.part != Part::First,
                parent: None,
            });
        }
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        Recent::push(&mut self.recent.complaints, line.bytes);
        out.push(stderr_text(line));
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.give_up(exit, out);
        out.push(turn_end(None, "end of output"));
    }
}

/// The last lines of both streams: where a plain agent that failed says why. Kept as they came, because
/// almost always nobody asks.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    lines: VecDeque<Vec<u8>>,
    /// Those of standard error, apart: a flood on the other must not wash the reason away.
    complaints: VecDeque<Vec<u8>>,
    /// How this agent's own errors begin, besides the usual forms.
    errors: Vec<String>,
}

impl Recent {
    const LINES: usize = 20;
    const WIDTH: usize = 2000;

    fn push(lines: &mut VecDeque<Vec<u8>>, line: &[u8]) {
        // The oldest line's memory serves the newest.
        let mut kept = if lines.len() == Self::LINES { lines.pop_front() } else { None }.unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(&line[..line.len().min(Self::WIDTH)]);
        lines.push_back(kept);
    }

    /// Names the failure of a process that failed, when its last words do.
    fn explain(&self, exit: Option<Exit>, out: &mut Vec<Event>) {
        let Some(exit) = exit.filter(|exit| !exit.success()) else { return };
        let failure = [&self.complaints, &self.lines].into_iter().find_map(|lines| {
            let mut tail = Tail::default();
            for line in lines {
                let line = String::from_utf8_lossy(line);
                let line = super::strip_ansi(&line);
                if super::failure::is_own_error(&line, &self.errors) {
                    tail.push(&line);
                }
            }
            tail.failure(exit, None).filter(|failure| failure.class != FailureClass::Agent)
        });
        out.extend(failure.map(super::failure::Failure::into_event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Known;

    fn class(output: &str, exit: Exit) -> Option<FailureClass> {
        let mut adapter = Plain::new(&Context::default());
        let mut events = Vec::new();
        output.lines().for_each(|line| adapter.line(Line::whole(line.as_bytes()), &mut events));
        adapter.end(Some(exit), &mut events);
        events.iter().find_map(|event| match event {
            Event::Meta { meta } => match meta.known() {
                Some(Known::Error { class, .. }) => Some(class),
                _ => None,
            },
            _ => None,
        })
    }

    #[test]
    fn last_words_name_a_failure_only_when_the_process_failed() {
        let limited = "Working.\nError: 429 rate limit exceeded, try again in 20s";
        assert_eq!(class(limited, Exit::Code(1)), Some(FailureClass::RateLimit));
        assert_eq!(class(limited, Exit::Code(0)), None);
        assert_eq!(class("Something else broke.", Exit::Code(1)), None);
        let long_ago = format!("{limited}\n{}", "more work\n".repeat(20));
        assert_eq!(class(&long_ago, Exit::Code(1)), None);
    }
}
