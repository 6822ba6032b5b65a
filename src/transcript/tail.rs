//! The last lines that an agent printed outside its protocol: where a process that fails says why.

use std::collections::VecDeque;

use super::failure::{self, Failure};
use super::jsonl::was_stopped;
use crate::event::FailureClass;
use crate::process::Exit;

/// So many lines are searched.
const LINES: usize = 20;
/// So much of each is kept.
const WIDTH: usize = 2000;

/// The last lines.
#[derive(Debug, Default)]
pub struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    /// Takes note of a line.
    pub fn push(&mut self, line: &str) {
        let line = super::strip_ansi(line);
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        let end = (0..=WIDTH.min(line.len())).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
        self.lines.push_back(line[..end].to_owned());
    }

    /// Why the process failed, as far as its last lines tell: the last line that names a cause, else the
    /// last line.
    pub fn failure(&self, exit: Exit) -> Option<Failure> {
        let named = self.lines.iter().rev().find(|line| failure::classify(failure::status_in(line), line).is_some());
        if let Some(line) = named {
            return Some(Failure::read(None, line.as_str()));
        }
        // Who was stopped gives no reason.
        self.lines
            .back()
            .filter(|_| !was_stopped(exit))
            .map(|line| Failure::of(FailureClass::Agent, None, line.as_str()))
    }
}
