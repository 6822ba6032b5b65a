//! What an iteration came to, as callouts: PLAN, ACTIONS, REPORT. From events only; what an adapter does
//! not tell is not guessed, and a callout without events is not shown.

use std::fmt::Write as _;

use super::figures;
use super::style::{Glyphs, Ink};
use super::text::{cut, harmless, width};
use super::tools::{Call, Calls};
use super::words;
use crate::event::{Status, TodoItem, TodoStatus};
use crate::journal::Receipt;

/// How many lines of thinking make a plan.
const PLAN_LINES: usize = 4;
/// So much of a tool's argument is always shown.
const SHORTEST_ARGUMENT: usize = 16;

/// One line of a callout.
pub(crate) struct CalloutRow {
    /// Its name, on its first line only.
    pub name: &'static str,
    pub text: String,
    pub ink: Ink,
}

/// Gathers what the callouts need while the iteration runs.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The first thinking of the iteration.
    thinking: String,
    /// The newest todo list.
    pub todo: Vec<TodoItem>,
    pub calls: Calls,
    /// Whether the agent reported usage.
    pub usage: bool,
}

impl Gathered {
    /// Thinking makes the plan, as far as it is short.
    pub(crate) fn think(&mut self, text: &str, delta: bool) {
        if self.thinking.len() < 4096 {
            if !delta && !self.thinking.is_empty() {
                self.thinking.push('\n');
            }
            self.thinking.push_str(text);
        }
    }

    /// All callouts of the iteration that is over.
    pub(crate) fn rows(&self, receipt: &Receipt, glyphs: &Glyphs, columns: usize) -> Vec<CalloutRow> {
        let mut rows = self.plan(glyphs);
        rows.extend(self.actions(glyphs, columns));
        rows.extend(self.report(receipt, glyphs));
        rows
    }

    fn plan(&self, glyphs: &Glyphs) -> Vec<CalloutRow> {
        let lines: Vec<String> = if self.todo.is_empty() {
            let lines = self.thinking.lines().filter(|line| !line.trim().is_empty());
            lines.take(PLAN_LINES).map(harmless).collect()
        } else {
            let mark = |item: &TodoItem| match item.status {
                TodoStatus::Done => glyphs.ok,
                TodoStatus::InProgress => glyphs.start,
                TodoStatus::Cancelled => glyphs.fail,
                TodoStatus::Pending => glyphs.dot,
            };
            self.todo.iter().map(|item| format!("{} {}", mark(item), harmless(&item.text))).collect()
        };
        named("PLAN", lines.into_iter().map(|line| (line, Ink::None)))
    }

    fn actions(&self, glyphs: &Glyphs, columns: usize) -> Vec<CalloutRow> {
        let calls = self.calls.shown();
        let names = calls.iter().map(|call| width(&harmless(&call.name))).max().unwrap_or(0).min(20);
        let mut lines: Vec<(String, Ink)> = calls.iter().map(|call| action(call, names, glyphs, columns)).collect();
        if self.calls.count() > calls.len() {
            lines.push((format!("and {} more", self.calls.count() - calls.len()), Ink::Dim));
        }
        named("ACTIONS", lines)
    }

    fn report(&self, receipt: &Receipt, glyphs: &Glyphs) -> Vec<CalloutRow> {
        if !self.usage {
            return Vec::new();
        }
        let (parts, ink) = words::report(receipt);
        named("REPORT", [(parts.join(&glyphs.between()), ink)])
    }

    /// True when the report says how the iteration ended.
    pub(crate) const fn has_report(&self) -> bool {
        self.usage
    }
}

/// One line for a tool: status, name, main argument, duration, lines of output. The argument gives way, so that the line
/// keeps to the columns.
pub(crate) fn action(call: &Call, name_width: usize, glyphs: &Glyphs, columns: usize) -> (String, Ink) {
    let (mark, ink) = match call.status {
        Some(Status::Ok) => (glyphs.ok, Ink::Good),
        Some(Status::Fail) => (glyphs.fail, Ink::Bad),
        Some(Status::Unknown) => (glyphs.unknown, Ink::Warn),
        None => (glyphs.start, Ink::None),
    };
    let name = harmless(&call.name);
    let padding = " ".repeat(name_width.saturating_sub(width(&name)));
    let mut line = format!("{mark} {name}{padding}");
    let mut facts = Vec::new();
    facts.extend(call.change.as_ref().map(|change| format!("+{} -{}", change.added, change.removed)));
    facts.extend(call.duration_ms.map(figures::duration));
    if call.lines > 0 {
        facts.push(figures::plural(call.lines as u64, "line"));
    }
    let facts = if facts.is_empty() { String::new() } else { format!("  ({})", facts.join(", ")) };
    if !call.argument.is_empty() {
        let room = columns.saturating_sub(width(&line) + 2 + facts.len()).max(SHORTEST_ARGUMENT);
        let _ = write!(line, "  {}", cut(&harmless(&call.argument), room));
    }
    (line + &facts, ink)
}

fn named(name: &'static str, lines: impl IntoIterator<Item = (String, Ink)>) -> Vec<CalloutRow> {
    let lines = lines.into_iter().enumerate();
    lines.map(|(at, (text, ink))| CalloutRow { name: if at == 0 { name } else { "" }, text, ink }).collect()
}
