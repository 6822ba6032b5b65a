//! Lines of an agent's output into canonical events: one file for each dialect, one table of all.
//!
//! An adapter is total: any bytes in, never a panic, nothing lost. It does no I/O and holds no clock, so
//! the same bytes always give the same events.

mod aider;
mod amounts;
mod amp;
mod ansi;
mod auto;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod echo;
pub(crate) mod failure;
mod gemini;
mod goose;
mod jsonl;
mod kiro;
mod opencode;
mod pi;
mod plain;
mod qwen;
pub(crate) mod reset;
mod rtf1;
mod screen;
mod select;
mod shape;
mod tail;
mod todo;
mod tools;
mod totals;
mod turn;
mod words;

pub(crate) use crate::event::Messages;
use crate::event::{Event, Known, Tag};
use crate::process::{Exit, Line};

pub(crate) use ansi::strip as strip_ansi;
pub use auto::auto;
pub(crate) use plain::DIALECT as PLAIN;
pub(crate) use rtf1::{DIALECT as RTF1, SENTINEL};
pub(crate) use screen::Screen;
pub use select::Choice;
pub use select::Selected;
pub(crate) use select::names;
pub use select::select;

/// Reads one dialect.
pub trait Adapter: Send {
    /// Takes one line of standard output.
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>);

    /// Takes one line of standard error. Most agents only complain there: it is shown and kept as SYS.
    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        out.push(stderr_text(line));
    }

    /// The dialect that the output turned out to speak, when it is not the one that was expected.
    fn spoken(&self) -> Option<&'static Dialect> {
        None
    }

    /// The streams are over. `exit` is how the process ended, `None` when it is unknown (a filter).
    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>);
}

/// What an adapter is told about the iteration before the first line.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The prompt as sent, then the user's part of it: an echo of either is PROMPT, not the agent's words.
    pub prompts: Vec<String>,
    /// What earlier iterations of the same session have reported, for agents that report totals.
    pub session_usage: crate::event::Usage,
    /// How the agent's own error lines begin, besides the usual forms.
    pub errors: Vec<String>,
}

/// What an adapter can tell. Views show only what the adapter really knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts, named as in document 004")]
pub struct Capabilities {
    /// Distinguishes THINK and SYS from AI.
    pub roles: bool,
    /// Reports tool calls.
    pub tools: bool,
    /// Reports tokens.
    pub usage: bool,
    /// Recognises an echo of the prompt.
    pub prompt_hiding: bool,
    /// Reports a session id.
    pub session: bool,
}

/// One row of the table of dialects.
pub struct Dialect {
    /// The name for `--transcript` and `--from`.
    pub name: &'static str,
    /// What its adapter can tell.
    pub capabilities: Capabilities,
    /// What makes one message.
    pub messages: Messages,
    /// True for a line that plainly speaks this dialect, and no other agent's.
    pub speaks: fn(&str) -> bool,
    /// Makes the adapter for one iteration.
    pub adapter: fn(&Context) -> Box<dyn Adapter>,
}

/// All dialects that are built.
pub const DIALECTS: &[Dialect] = &[
    claude::DIALECT,
    codex::DIALECT,
    gemini::DIALECT,
    amp::DIALECT,
    qwen::DIALECT,
    opencode::DIALECT,
    copilot::DIALECT,
    cursor::DIALECT,
    cline::DIALECT,
    pi::DIALECT,
    goose::DIALECT,
    droid::DIALECT,
    kiro::DIALECT,
    aider::DIALECT,
    plain::DIALECT,
    rtf1::DIALECT,
];

/// Looks a dialect up by name.
pub fn dialect(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.name == name)
}

/// A line of standard error as an event.
pub(crate) fn stderr_text(line: Line<'_>) -> Event {
    Event::Text { tag: Tag::Sys, text: strip_ansi(&line.text()).into_owned(), delta: false, parent: None }
}

/// The terminal fact of an iteration.
pub(crate) fn turn_end(success: Option<bool>, reason: &str) -> Event {
    Known::TurnEnd { success, reason: Some(reason.to_owned()) }.into()
}

/// A line for a message: short enough to show, cut between characters.
pub(crate) fn excerpt(line: &str) -> String {
    const MOST: usize = 500;
    if line.len() <= MOST {
        return line.to_owned();
    }
    format!("{}… ({} bytes)", &line[..line.floor_char_boundary(MOST)], line.len())
}
