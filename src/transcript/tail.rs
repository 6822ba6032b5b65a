//! The last lines that an agent printed outside its protocol: where a process that fails says why.

use std::collections::VecDeque;

use super::failure::{self, Failure};
use super::jsonl::was_stopped;
use crate::event::FailureClass;
use crate::process::Exit;

/// This many lines are searched.
const LINES: usize = 20;
/// So much of each is kept.
const WIDTH: usize = 2000;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: VecDeque<String>,
    /// The agent explained its options.
    help: bool,
}

impl Tail {
    /// Takes note of a line.
    pub(crate) fn push(&mut self, line: &str) {
        let line = super::strip_ansi(line);
        let line = line.trim();
        if line.is_empty() || line.starts_with("at ") {
            return;
        }
        if is_help(line) {
            self.help = true;
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line[..line.floor_char_boundary(WIDTH)].to_owned());
    }

    /// Why the process failed, as far as its last lines tell: the last sentence that names a cause, else the
    /// last line that does, else the last line. `class` is what the exit code means.
    pub(crate) fn failure(&self, exit: Exit, class: Option<FailureClass>) -> Option<Failure> {
        let names_cause = |line: &&String| failure::classify(failure::status_in(line), line).is_some();
        let mut lines = self.lines.iter().rev();
        let sentence = lines.clone().filter(|line| line.split_whitespace().count() > 2).find(names_cause);
        let named = sentence.or_else(|| lines.find(names_cause));
        if let Some(class) = class {
            let line = named.or(self.lines.back()).map_or("the agent failed", String::as_str);
            return Some(Failure { class, ..Failure::read(None, line) });
        }
        if let Some(line) = named {
            return Some(Failure::read(None, line.as_str()));
        }
        if self.help {
            let line = self.lines.back().map_or("the agent explained its options", String::as_str);
            return Some(Failure::of(FailureClass::Config, None, line));
        }
        // Who was stopped gives no reason.
        self.lines
            .back()
            .filter(|_| !was_stopped(exit))
            .map(|line| Failure::of(FailureClass::Agent, None, line.as_str()))
    }
}

/// A line of a help text, which names options, not causes.
fn is_help(line: &str) -> bool {
    line.contains("    ") || line.starts_with('-') && line.contains("  ")
}
