//! A batch in words: a line for each thing that happens, the report, and the same for programs. Every view of a batch uses these.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::figures;
use super::history::clock;
use super::style::{Ink, Palette};
use super::table::{self, Align, Cell};
use super::text::{cut, harmless, width};
use crate::batch::state::{Batch, Fact, Stage, TaskState};

/// The place of the reason in a row.
const WHY: usize = 4;
/// The columns of the longest id that is shown whole.
const LONGEST_ID: usize = 40;

/// Where a task is, in a word.
pub(crate) const fn stage(batch: &Batch, state: &TaskState) -> (&'static str, Ink) {
    match &state.stage {
        Stage::Waiting if state.paused || batch.paused => ("paused", Ink::Warn),
        Stage::Running if state.paused || batch.paused => ("pausing", Ink::Warn),
        Stage::Waiting => ("waiting", Ink::Dim),
        Stage::Running => ("running", Ink::Agent),
        Stage::Checking { .. } => ("checking", Ink::Tool),
        Stage::Merging { .. } => ("merging", Ink::Tool),
        Stage::Merged { .. } => ("merged", Ink::Good),
        Stage::Stuck => ("stuck", Ink::Bad),
        Stage::Skipped => ("skipped", Ink::Dim),
    }
}

/// What a batch does, or how it ended.
pub(crate) const fn state(batch: &Batch, is_running: bool) -> (&'static str, Ink) {
    match (is_running, batch.paused, &batch.end) {
        (true, true, _) => ("paused", Ink::Warn),
        (true, false, _) => ("running", Ink::Agent),
        (false, _, Some((0, _))) => ("complete", Ink::Good),
        (false, _, Some((1, _))) => ("stuck", Ink::Bad),
        (false, _, Some((5, _))) => ("limit reached", Ink::Warn),
        (false, _, _) => ("interrupted", Ink::Warn),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

/// The first line of a reason, without control characters.
pub(crate) fn why(state: &TaskState) -> String {
    harmless(state.why.as_deref().unwrap_or_default().lines().next().unwrap_or_default())
}

/// What a record says to someone who watches; `None` for what is of no interest.
pub(crate) fn line(fact: &Fact, batch: &Batch) -> Option<String> {
    let first = |text: &str| harmless(text.lines().next().unwrap_or_default());
    Some(match fact {
        Fact::Started { task, attempt: 1 } => format!("started {task} ({})", batch.branch(task)),
        Fact::Started { task, attempt } => format!("started {task} again (attempt {attempt})"),
        Fact::Completed { task, .. } => format!("checking {task} on top of `{}`", batch.start.target),
        Fact::Held { agent, until } => {
            format!("rate limit of `{}`: its tasks wait until {}", harmless(agent), clock(*until))
        }
        Fact::Again { task, why, .. } if why != "rate limit" => format!("{task} will run again: {}", first(why)),
        Fact::Merged { task, commit: Some(commit) } => {
            format!("merged {task} into `{}` as {}", batch.start.target, short(commit))
        }
        Fact::Merged { task, commit: None } => format!("{task} had nothing to change"),
        Fact::Unmerged { task, why, .. } => format!("{task} did not merge: {}; its loop is resumed", first(why)),
        Fact::Stuck { task, why, .. } => format!("stuck {task}: {}", first(why)),
        Fact::Skipped { task } => format!("skipped {task}"),
        Fact::Hinted { task, words } => format!("hint for {task}: {}", first(words)),
        Fact::Paused { task: Some(task) } => format!("paused {task}"),
        Fact::Paused { task: None } => "paused".to_owned(),
        Fact::Continued { task: Some(task) } => format!("continuing {task}"),
        Fact::Continued { task: None } => "continuing".to_owned(),
        Fact::Cancelled => "cancelled".to_owned(),
        Fact::Retried { task } => format!("retrying {task}"),
        Fact::Added { task } if batch.began_work() => format!("added {}", task.id),
        _ => return None,
    })
}

/// How many tasks are where: `2 running, 3 waiting, 5 merged`.
pub(crate) fn counts(batch: &Batch) -> String {
    let order = ["running", "pausing", "paused", "checking", "merging", "waiting", "merged", "stuck", "skipped"];
    let count = |word: &str| batch.tasks.iter().filter(|state| stage(batch, state).0 == word).count();
    let counted = order.iter().map(|word| (count(word), word)).filter(|(count, _)| *count > 0);
    counted.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// What became of each task, what it cost, where the work is, and what to do next.
pub(crate) fn report(batch: &Batch, is_running: bool, palette: Palette, columns: usize) -> String {
    let head = ["state", "task", "commit", "cost", "why"].map(|name| Cell { text: name.to_owned(), ink: Ink::Dim });
    let mut rows = vec![head.to_vec()];
    for state in &batch.tasks {
        let (word, ink) = stage(batch, state);
        let commit = if let Stage::Merged { commit: Some(commit) } = &state.stage { short(commit) } else { "" };
        rows.push(vec![
            Cell { text: word.to_owned(), ink },
            Cell::from(cut(state.task.id.as_str(), LONGEST_ID)),
            Cell::from(commit.to_owned()),
            Cell::from(state.cost_usd.map_or_else(String::new, figures::money)),
            Cell { text: why(state), ink: Ink::Dim },
        ]);
    }
    // A reason is cut, not wrapped: `--json` has it whole.
    let widest = |at: usize| rows.iter().map(|row| width(&row[at].text)).max().unwrap_or(0);
    let room = columns.saturating_sub((0..WHY).map(|at| widest(at) + 2).sum()).max(20);
    for row in &mut rows {
        row[WHY].text = cut(&row[WHY].text, room);
    }
    for at in (2..=WHY).rev() {
        if rows[1..].iter().all(|row| row[at].text.is_empty()) {
            for row in &mut rows {
                row.remove(at);
            }
        }
    }
    let mut text = table::painted(&vec![Align::Left; rows[0].len()], &rows, palette).join("\n");
    text.push('\n');
    let merged = batch.tasks.iter().filter(|state| matches!(state.stage, Stage::Merged { .. })).count();
    let _ = write!(text, "\n{merged} of {} merged into `{}`", batch.tasks.len(), batch.start.target);
    if batch.cost() > 0.0 {
        let _ = write!(text, ", {}", figures::money(batch.cost()));
    }
    match &batch.end {
        _ if is_running => text += if batch.paused { ": paused" } else { ": running" },
        // Someone may have skipped tasks since.
        Some(_) if batch.tasks.iter().all(|state| state.stage.satisfies()) => {
            text += ": all tasks are merged or skipped";
        }
        Some((_, why)) => drop(write!(text, ": {why}")),
        None => text += ": interrupted",
    }
    text.push('\n');
    text += &next(batch, is_running);
    text
}

/// The commands to type now.
fn next(batch: &Batch, is_running: bool) -> String {
    if is_running {
        return String::new();
    }
    let mut text = String::new();
    let stuck = batch.tasks.iter().find(|state| state.stage == Stage::Stuck);
    if let Some(state) = stuck {
        let id = &state.task.id;
        if let Some(run) = &state.run {
            let _ = writeln!(text, "see why: `ralph show {run}`");
        }
        let _ = writeln!(text, "run it again: `ralph batch retry {id}`");
        let _ = writeln!(text, "leave it out: `ralph batch skip {id}`");
    }
    if batch.tasks.iter().any(|state| !state.stage.is_over()) {
        text += "continue: `ralph batch resume`\n";
    }
    let merged = batch.tasks.iter().any(|state| matches!(state.stage, Stage::Merged { .. }));
    if merged && batch.start.target.starts_with("ralph/batch/") {
        let _ = writeln!(text, "take the work over: `git merge {}`", batch.start.target);
    }
    text
}

/// The same for programs.
pub(crate) fn json(batch: &Batch, is_running: bool) -> Value {
    let tasks: Vec<Value> = batch
        .tasks
        .iter()
        .map(|state| {
            let commit = if let Stage::Merged { commit } = &state.stage { commit.as_ref() } else { None };
            json!({
                "id": state.task.id, "state": stage(batch, state).0, "branch": batch.branch(&state.task.id),
                "commit": commit, "cost_usd": state.cost_usd, "why": state.why, "title": state.task.title, "run": state.run,
            })
        })
        .collect();
    json!({ "batch": batch.start.batch, "running": is_running, "target": batch.start.target, "tasks": tasks })
}
