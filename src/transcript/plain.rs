//! Plain text: each line is the agent's words, except a verbatim echo of the prompt.

use super::echo::Echo;
use super::{Adapter, Capabilities, Context, Dialect, Messages, turn_end};
use crate::event::{Event, Tag};
use crate::process::{Exit, Line, Part};

pub const DIALECT: Dialect = Dialect {
    name: "plain",
    capabilities: Capabilities { roles: false, tools: false, usage: false, prompt_hiding: true, session: false },
    messages: Messages::Lines,
    speaks: |_| false,
    adapter: |context| Box::new(Plain::new(context)),
};

/// Also the base of dialects that mix structure with plain lines.
pub struct Plain {
    echo: Echo,
}

impl Plain {
    pub fn new(context: &Context) -> Self {
        Self { echo: Echo::new(&context.prompts) }
    }

    /// Lines of the echo that could still turn out to be the agent's words.
    pub fn flush(&mut self, out: &mut Vec<Event>) {
        self.echo.flush(&mut |tag, line| out.push(Event::text(tag, line)));
    }
}

impl Adapter for Plain {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
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

    fn end(&mut self, _exit: Option<Exit>, out: &mut Vec<Event>) {
        self.flush(out);
        out.push(turn_end(None, "end of output"));
    }
}
