//! Codex: JSON lines or text, seen from the first lines. The text form talks on standard error and repeats
//! its last message on standard output; merged, everything comes on one stream.
//!
//! Neither form tells of calls that were refused or malformed: only the log lines on standard error do.

mod json;
mod line;
mod message;
mod patch;
mod router;
mod running;
mod text;

use super::jsonl::{JsonLines, Reader};
use super::{Adapter, Capabilities, Context, Dialect, Messages};
use crate::event::Event;
use crate::process::{Exit, Line, Part};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "codex",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: |line| text::is_banner(line) || json::is_own(line),
    adapter: |context| Box::new(Codex::new(context)),
};

/// This many lines are held until one shows which form this is.
const HELD: usize = 200;

struct Codex {
    json: JsonLines<json::Items>,
    text: text::Text,
    form: Form,
}

enum Form {
    /// Nothing seen yet that tells: lines of standard output are held.
    Undecided(Vec<Vec<u8>>),
    Json,
    Text,
}

impl Codex {
    fn new(context: &Context) -> Self {
        let json = JsonLines::new(context, json::Items::new(context));
        Self { json, text: text::Text::new(context), form: Form::Undecided(Vec::new()) }
    }

    fn decide(&mut self, form: Form, out: &mut Vec<Event>) {
        if let Form::Undecided(held) = std::mem::replace(&mut self.form, form) {
            for line in held {
                self.adapter().line(Line::whole(&line), out);
            }
        }
    }

    /// Until it is decided, standard error goes to the JSON form, which shows it as it is.
    fn adapter(&mut self) -> &mut dyn Adapter {
        match self.form {
            Form::Undecided(_) | Form::Json => &mut self.json,
            Form::Text => &mut self.text,
        }
    }
}

impl Adapter for Codex {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        if let Form::Undecided(held) = &mut self.form {
            let said = line.text();
            if text::opens(&said) {
                self.decide(Form::Text, out);
            } else if line.part != Part::Whole || json::Items::speaks(said.trim_ascii()) || held.len() == HELD {
                self.decide(Form::Json, out);
            } else {
                return held.push(line.bytes.to_vec());
            }
        }
        self.adapter().line(line, out);
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        if matches!(self.form, Form::Undecided(_)) && text::is_banner(&line.text()) {
            self.decide(Form::Text, out);
        }
        self.adapter().stderr(line, out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        // Words without any header: the JSON form takes them for the answer, or for the error of a process
        // that failed.
        if matches!(self.form, Form::Undecided(_)) {
            self.decide(Form::Json, out);
        }
        self.adapter().end(exit, out);
    }
}

#[cfg(test)]
#[path = "../codex_tests.rs"]
mod tests;
