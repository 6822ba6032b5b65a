//! RTF1, document 004: lines that begin with the sentinel are events, all others the agent's words.

use super::plain::Plain;
use super::tools::Tools;
use super::{Adapter, Capabilities, Context, Dialect, Messages, excerpt, turn_end};
use crate::event::{Event, Known, SchemaError, Tag};
use crate::process::{Exit, Line, Part};

/// What a line of RTF1 begins with.
pub(crate) const SENTINEL: &str = "@@RALPH@@ ";

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The row of the table.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "rtf1",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Lines,
    speaks: |line| line.starts_with(SENTINEL),
    adapter: |context| Box::new(Rtf1::new(context)),
};

struct Rtf1 {
    plain: Plain,
    tools: Tools,
    begun: bool,
    turn_ended: bool,
}

impl Rtf1 {
    fn new(context: &Context) -> Self {
        Self { plain: Plain::new(context), tools: Tools::default(), begun: false, turn_ended: false }
    }

    fn event(&mut self, event: Event, out: &mut Vec<Event>) {
        if let Event::Meta { meta } = &event
            && meta.kind() == Some("turn_end")
            && std::mem::replace(&mut self.turn_ended, true)
        {
            out.push(Known::Warning { message: "a second `turn_end` was ignored".to_owned() }.into());
            return;
        }
        if let Some(message) = self.tools.see(&event) {
            out.push(Known::Warning { message }.into());
        }
        out.push(event);
    }
}

impl Adapter for Rtf1 {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        let mut bytes = line.bytes;
        if !std::mem::replace(&mut self.begun, true) {
            bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        let sentinel = line.part == Part::Whole || line.part == Part::First;
        let Some(json) = bytes.strip_prefix(SENTINEL.as_bytes()).filter(|_| sentinel) else {
            return self.plain.line(Line { bytes, ..line }, out);
        };
        self.plain.flush(out);
        let read = match line.part {
            Part::Whole => Event::from_json(json),
            _ => Err(SchemaError::Schema("the line is longer than the line cap".to_owned())),
        };
        match read {
            Ok(event) => {
                // The event is passed on: what does fit still counts.
                if let Event::Meta { meta } = &event
                    && let Some(message) = meta.problem()
                {
                    let line = excerpt(&String::from_utf8_lossy(bytes));
                    out.push(Known::ParseError { message, line }.into());
                }
                self.event(event, out);
            }
            Err(error) => {
                let text = String::from_utf8_lossy(bytes);
                out.push(Known::ParseError { message: error.to_string(), line: excerpt(&text) }.into());
                out.push(Event::text(Tag::Sys, super::strip_ansi(&text)));
            }
        }
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.plain.stderr(line, out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.plain.give_up(exit, out);
        self.tools.close(out);
        if !self.turn_ended {
            out.push(turn_end(None, "end of output"));
        }
    }
}

#[cfg(test)]
#[path = "rtf1_tests.rs"]
mod tests;
