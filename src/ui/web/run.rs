//! A run as the page shows it: its header, its iterations, and its line in the list of all runs.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pages::Newest;
use super::rows::{check, class, plain};
use crate::journal::Outcome;
use crate::journal::summary::IterationSummary;
use crate::ui::figures;
use crate::ui::history::{RunDetails, last_reason};
use crate::ui::model::RunState;
use crate::ui::words;

fn millisecond(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millisecond)
}

/// What a list of runs shows of one, and what every header begins with.
pub(super) fn short(run: &RunDetails, workspace: &Path, newest: &Newest) -> Value {
    let RunDetails { summary, state, words: goal, .. } = run;
    let (word, ink) = words::state_in_full(run);
    // A running state keeps its colour; the page shows a rejected claim beside it.
    let ink = if state.is_alive() { words::state(*state).1 } else { ink };
    let until = match state {
        RunState::Waiting { until } => Some(until.as_millisecond()),
        _ => None,
    };
    let word = match state {
        RunState::Pausing => "pausing after this iteration".to_owned(),
        _ => word.strip_suffix(", rejected").map_or(word.clone(), str::to_owned),
    };
    let line = if state.is_alive() { newest.short() } else { String::new() };
    json!({
        "id": summary.run,
        "state": words::state_key(*state),
        "word": word,
        "ink": class(ink),
        "rejected": summary.last_claim_was_rejected(),
        "alive": state.is_alive(),
        "until": until,
        "goal": plain(goal),
        "project": plain(&workspace.file_name().unwrap_or(workspace.as_os_str()).to_string_lossy()),
        "workspace": plain(&beside_home(workspace, std::env::var_os("HOME").as_deref().map(Path::new))),
        "branch": branch(run).map(plain),
        "agent": plain(summary.newest_agent()),
        "iteration": summary.count(),
        "of": summary.max_iterations,
        "started": millisecond(summary.started),
        "newest": millisecond(summary.newest),
        "ms": run.duration_ms(),
        "cost": summary.cost().map(figures::short_cost),
        "tokens": summary.tokens(),
        "line": line,
    })
}

/// A path as people write it: `~` for their home directory.
fn beside_home(path: &Path, home: Option<&Path>) -> String {
    let inside = home.filter(|home| home.components().count() > 1).and_then(|home| path.strip_prefix(home).ok());
    inside.map_or_else(|| path.to_string_lossy().into_owned(), |rest| Path::new("~").join(rest).display().to_string())
}

/// The branch of the run's own, or the one on which it was when its last iteration ended.
fn branch(run: &RunDetails) -> Option<&str> {
    let mut receipts = run.summary.iterations.iter().rev().filter_map(|tried| tried.receipt.as_deref());
    let own = run.place.as_ref().map(|place| place.branch.as_str());
    own.or_else(|| receipts.find_map(|receipt| receipt.branch.as_deref()))
}

/// The header of a run: everything but its iterations.
pub(super) fn header(run: &RunDetails, workspace: &Path, newest: &Newest) -> Value {
    let summary = &run.summary;
    let mut header = short(run, workspace, newest);
    let end = summary.end.as_ref().filter(|_| !run.state.is_alive());
    let receipt = || summary.iterations.iter().rev().filter_map(|tried| tried.receipt.as_deref());
    let waits_for_answer = end.is_some_and(|end| end.outcome == Outcome::Human && end.question.is_some());
    let more = json!({
        "model": receipt().find_map(|receipt| receipt.usage.model.as_deref()).map(plain),
        "max_ms": summary.max_seconds.map(|seconds| seconds.saturating_mul(1000)),
        "max_cost": summary.max_cost_usd,
        "usd": summary.cost().map(|cost| cost.usd),
        "reason": last_reason(run).map(plain),
        "question": end.and_then(|end| end.question.as_deref()).map(plain),
        "asks": waits_for_answer,
        "next": end.and_then(|end| words::next_step(end.outcome, waits_for_answer)),
        "command": plain(&summary.command.join(" ")),
        "prompt": plain(&summary.prompt),
        "ralph": plain(&summary.ralph),
        "resumed": summary.resumed,
        "length": summary.covers,
        "plan": newest.plan,
        "tries": summary.iterations.len(),
    });
    if let (Value::Object(header), Value::Object(more)) = (&mut header, more) {
        header.extend(more);
    }
    header
}

/// The iterations from a place in their list on.
pub(super) fn iterations(run: &RunDetails, from: usize) -> Vec<Value> {
    let alive = run.state.is_alive();
    let last = run.summary.iterations.len().saturating_sub(1);
    let tried = run.summary.iterations.iter().enumerate().skip(from);
    tried.map(|(index, tried)| iteration(tried, index, alive && index == last)).collect()
}

fn iteration(tried: &IterationSummary, index: usize, alive: bool) -> Value {
    let (word, ink) = words::iteration_word(tried, alive);
    let receipt = tried.receipt.as_deref();
    let checks: Vec<Value> = tried.checks.iter().map(check).collect();
    json!({
        "index": index,
        "n": tried.iteration,
        "from": tried.from,
        "to": tried.to,
        "started": millisecond(tried.started),
        "word": word,
        "ink": class(ink),
        "running": tried.ended.is_none() && alive,
        "ms": tried.ended.map(|ended| ended.duration_ms),
        "tokens": tried.ended.and_then(|ended| ended.tokens),
        "cost": tried.ended.and_then(|ended| ended.cost).map(figures::short_cost),
        "usd": tried.ended.and_then(|ended| ended.cost).map(|cost| cost.usd),
        "hat": tried.hat.as_deref().map(plain),
        "agent": tried.agent.as_deref().map(plain),
        "why": receipt.filter(|receipt| !receipt.success()).map(|receipt| plain(&receipt.ended)),
        "files": receipt.map(crate::journal::Receipt::file_count),
        "lines": receipt.and_then(|receipt| receipt.lines).map(words::plus_minus),
        "commit": receipt.and_then(|receipt| receipt.commits.first()).map(|commit| plain(commit)),
        "tools": receipt.map(|receipt| receipt.tools),
        "failed": receipt.map(|receipt| receipt.tools_failed),
        "checks": checks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_is_a_tilde() {
        let home = Some(Path::new("/home/me"));
        assert_eq!(beside_home(Path::new("/home/me/code/csv"), home), "~/code/csv");
        assert_eq!(beside_home(Path::new("/home/meadow"), home), "/home/meadow");
        assert_eq!(beside_home(Path::new("/srv/csv"), Some(Path::new("/"))), "/srv/csv");
    }
}
