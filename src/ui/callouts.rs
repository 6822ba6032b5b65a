//! What an iteration came to, as callouts: PLAN, ACTIONS, REPORT. From events only; what an adapter does
//! not tell is not guessed, and a callout without events is not shown.

use jiff::Timestamp;

use super::figures;
use super::model::{Call, Iteration, MOST_LISTED};
use super::style::{Glyphs, Ink};
use super::styled::Styled;
use super::text::{cut, harmless, width};
use super::words;
use crate::journal::Receipt;

/// So much of a tool's argument is always shown.
const SHORTEST_ARGUMENT: usize = 16;

/// One line of a callout.
pub(crate) struct CalloutRow {
    /// Its name, on its first line only.
    pub name: &'static str,
    pub line: Styled,
}

/// What is said about the tools of an iteration that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actions {
    /// Each was shown when it ended: their number is enough.
    Counted,
    /// Each one.
    Listed,
}

/// All callouts of an iteration that is over.
pub(crate) fn rows(
    iteration: &Iteration,
    receipt: &Receipt,
    actions: Actions,
    glyphs: &Glyphs,
    columns: usize,
) -> Vec<CalloutRow> {
    let mut rows = named("PLAN", plan(iteration, glyphs));
    match actions {
        Actions::Counted if iteration.calls.count() > 0 => {
            rows.extend(named("ACTIONS", [counts(iteration, receipt, glyphs)]));
        }
        Actions::Counted => {}
        Actions::Listed => rows.extend(named("ACTIONS", each(iteration, glyphs, columns))),
    }
    if iteration.usage.is_some() {
        rows.extend(named("REPORT", [report(receipt, glyphs)]));
    }
    rows
}

fn plan(iteration: &Iteration, glyphs: &Glyphs) -> Vec<Styled> {
    let item = |item: &crate::event::TodoItem| {
        let (mark, ink) = words::plan_mark(item.status, glyphs);
        let mut line = Styled::new(mark, ink);
        line.push(&format!(" {}", harmless(&item.text)), Ink::None);
        line
    };
    iteration.plan.iter().map(item).collect()
}

/// `6 tools · 1 failed · 2 files +14 -3`.
fn counts(iteration: &Iteration, receipt: &Receipt, glyphs: &Glyphs) -> Styled {
    let calls = &iteration.calls;
    let mut line = Styled::new(figures::plural(calls.count() as u64, "tool"), Ink::None);
    let mut add = |text: &str, ink| {
        line.push(&glyphs.between(), Ink::Dim);
        line.push(text, ink);
    };
    if calls.failed > 0 {
        add(&format!("{} failed", calls.failed), Ink::Bad);
    }
    // What the diff says is nearer to the truth than what the tools say that they did.
    let told = (calls.added + calls.removed > 0).then_some((calls.added, calls.removed));
    let seen = receipt.lines.map(|lines| (lines.added as usize, lines.removed as usize));
    let lines = seen.or(told).map(|(added, removed)| words::lines_changed(added, removed, glyphs));
    let files = Some(receipt.file_count()).filter(|files| *files > 0).map(|files| figures::plural(files, "file"));
    match (files, lines) {
        (Some(files), Some(lines)) => add(&format!("{files} {lines}"), Ink::None),
        (Some(one), None) | (None, Some(one)) => add(&one, Ink::None),
        (None, None) => {}
    }
    line
}

fn each(iteration: &Iteration, glyphs: &Glyphs, columns: usize) -> Vec<Styled> {
    let calls = &iteration.calls.kept()[..iteration.calls.kept().len().min(MOST_LISTED)];
    let names = calls.iter().map(|call| width(&harmless(&call.name))).max().unwrap_or(0).min(20);
    let more = iteration.calls.count() - calls.len();
    let more = (more > 0).then(|| Styled::new(format!("and {more} more"), Ink::Dim));
    calls.iter().map(|call| action(call, names, glyphs, columns, None)).chain(more).collect()
}

/// How it ended, in its colour, and what it used.
pub(crate) fn report(receipt: &Receipt, glyphs: &Glyphs) -> Styled {
    let (parts, ink) = words::report(receipt);
    let dot = glyphs.between();
    let mut parts = parts.into_iter();
    let ended = parts.next().unwrap_or_default();
    let mut line = Styled::new(words::signed(receipt.outcome, &ended, glyphs), ink);
    parts.for_each(|part| line.push(&format!("{dot}{part}"), Ink::None));
    line
}

/// One line for a tool: status, name, main argument, duration, lines of output. The argument gives way, so that the line
/// keeps to the columns. `now` is for a tool that is still running.
pub(crate) fn action(
    call: &Call,
    name_width: usize,
    glyphs: &Glyphs,
    columns: usize,
    now: Option<Timestamp>,
) -> Styled {
    let (mark, ink) = words::tool_mark(call.status, glyphs);
    let name = harmless(&call.name);
    let padding = " ".repeat(name_width.saturating_sub(width(&name)));
    let mut facts = Vec::new();
    facts.extend(call.change.as_ref().map(|change| words::lines_changed(change.added, change.removed, glyphs)));
    facts.extend(call.took_ms().or_else(|| call.runs_for_ms(now?)).map(figures::duration));
    if call.lines > 0 {
        facts.push(figures::plural(call.lines as u64, "line"));
    }
    let facts = if facts.is_empty() { String::new() } else { format!("  ({})", facts.join(", ")) };
    let mut line = Styled::new(mark, ink);
    line.push(&format!(" {name}{padding}"), Ink::Strong);
    if !call.argument.is_empty() {
        let room = columns.saturating_sub(line.width() + 2 + width(&facts)).max(SHORTEST_ARGUMENT);
        line.push(&format!("  {}", cut(&harmless(&call.argument), room)), Ink::None);
    }
    line.push(&facts, Ink::Dim);
    line
}

fn named(name: &'static str, lines: impl IntoIterator<Item = Styled>) -> Vec<CalloutRow> {
    let lines = lines.into_iter().enumerate();
    lines.map(|(at, line)| CalloutRow { name: if at == 0 { name } else { "" }, line }).collect()
}
