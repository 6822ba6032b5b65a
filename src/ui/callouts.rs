//! What an iteration came to, as callouts: PLAN, ACTIONS, REPORT. From events only; what an adapter does
//! not tell is not guessed, and a callout without events is not shown.

use std::fmt::Write as _;

use super::figures;
use super::model::{Call, Iteration, MOST_LISTED};
use super::style::{Glyphs, Ink};
use super::text::{cut, harmless, width};
use super::words;
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

/// All callouts of an iteration that is over.
pub(crate) fn rows(iteration: &Iteration, receipt: &Receipt, glyphs: &Glyphs, columns: usize) -> Vec<CalloutRow> {
    let mut rows = named("PLAN", plan(iteration, glyphs));
    let calls = &iteration.calls.kept()[..iteration.calls.kept().len().min(MOST_LISTED)];
    let names = calls.iter().map(|call| width(&harmless(&call.name))).max().unwrap_or(0).min(20);
    let more = iteration.calls.count() - calls.len();
    let more = (more > 0).then(|| (format!("and {more} more"), Ink::Dim));
    rows.extend(named("ACTIONS", calls.iter().map(|call| action(call, names, glyphs, columns)).chain(more)));
    if iteration.usage.is_some() {
        let (parts, ink) = words::report(receipt);
        rows.extend(named("REPORT", [(parts.join(&glyphs.between()), ink)]));
    }
    rows
}

/// The agent's plan, or what it thought first.
fn plan(iteration: &Iteration, glyphs: &Glyphs) -> Vec<(String, Ink)> {
    let lines: Vec<String> = if iteration.plan.is_empty() {
        let lines = iteration.thinking.lines().filter(|line| !line.trim().is_empty());
        lines.take(PLAN_LINES).map(harmless).collect()
    } else {
        let mark = |status| words::plan_mark(status, glyphs).0;
        iteration.plan.iter().map(|item| format!("{} {}", mark(item.status), harmless(&item.text))).collect()
    };
    lines.into_iter().map(|line| (line, Ink::None)).collect()
}

/// One line for a tool: status, name, main argument, duration, lines of output. The argument gives way, so that the line
/// keeps to the columns.
pub(crate) fn action(call: &Call, name_width: usize, glyphs: &Glyphs, columns: usize) -> (String, Ink) {
    let (mark, ink) = words::tool_mark(call.status, glyphs);
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
