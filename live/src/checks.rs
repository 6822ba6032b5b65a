//! What was seen against what must come out. Each sentence is one thing that is not as it should be.

use std::os::unix::process::ExitStatusExt;

use serde_json::Value;

use crate::clis::Cli;
use crate::place::only_run;
use crate::scenario::{Scenario, Seen};
use crate::trial::Observed;

/// All that is wrong.
pub fn faults(cli: &Cli, scenario: &Scenario, seen: &Observed) -> Vec<String> {
    let expect = &scenario.expect;
    let mut wrong = Vec::new();
    let mut unless = |good: bool, why: String| {
        if !good {
            wrong.push(why);
        }
    };
    let status = seen.exit;
    let ended = match (expect.exit, expect.signal) {
        (Some(code), _) => status.and_then(|status| status.code()) == Some(code),
        (None, signal) => status.and_then(|status| status.signal()) == signal,
    };
    let why = seen.end().and_then(|end| end["reason"].as_str()).unwrap_or("no run_end");
    unless(ended, format!("{} after {} s: {why}", seen.ending(), seen.took.as_secs()));
    if let (Some(wanted), Some(end)) = (expect.iterations, seen.end()) {
        unless(end["iterations"] == wanted, format!("{} iterations instead of {wanted}", end["iterations"]));
    }
    for (name, content) in &expect.files {
        let found = std::fs::read_to_string(seen.workspace.join(name)).unwrap_or_default();
        unless(found == *content, format!("`{name}` is {found:?}"));
    }
    for name in &expect.absent {
        unless(!seen.workspace.join(name).exists(), format!("`{name}` is there"));
    }
    for kind in expect.events.iter().filter(|kind| !cli.lacks.contains_key(kind)) {
        unless(has(*kind, scenario, &seen.records), format!("no {kind:?} event"));
    }
    let last = seen.exchanges.iter().rev().find(|exchange| exchange.turn.is_some());
    for needle in &expect.heard {
        unless(last.is_some_and(|last| last.body.contains(needle)), format!("the model was not told `{needle}`"));
    }
    unless(seen.left.is_empty(), format!("left behind: {}", seen.left.join(", ")));
    unless(seen.complaint.is_empty(), format!("standard error: {}", seen.complaint.lines().next().unwrap_or_default()));
    wrong.extend(incomplete(seen));
    wrong
}

fn has(kind: Seen, scenario: &Scenario, records: &[Value]) -> bool {
    let agent = || records.iter().filter(|record| record["by"] == "agent");
    let meta = |kind: &str| agent().find(|record| record["meta"]["kind"] == kind).map(|record| &record["meta"]);
    match kind {
        Seen::Text => {
            let said: String = agent()
                .filter(|record| record["type"] == "text" && record["tag"] == "AI")
                .filter_map(|record| record["text"].as_str())
                .flat_map(|text| text.split_whitespace())
                .collect();
            let wanted = |text: &str| text.split_whitespace().collect::<String>();
            scenario.model.turns.iter().all(|turn| said.contains(&wanted(&turn.text)))
        }
        Seen::Tool => {
            let count = |kind: &str| agent().filter(|record| record["type"] == kind).count();
            let wanted: usize = scenario.model.turns.iter().map(|turn| turn.calls.len()).sum();
            count("tool_start") >= wanted && count("tool_end") >= wanted
        }
        Seen::FailedTool => agent().any(|record| record["tool"]["status"] == "fail"),
        Seen::Usage => agent().any(|record| {
            let usage = &record["usage"];
            usage["prompt_tokens"].as_u64() > Some(0) && usage["completion_tokens"].as_u64() > Some(0)
        }),
        Seen::Session => meta("session").is_some_and(|meta| meta["id"].as_str().is_some_and(|id| !id.is_empty())),
    }
}

/// The journal on disk: from the first record to the last, without a gap, and as it was printed.
fn incomplete(seen: &Observed) -> Option<String> {
    let Some(run) = only_run(&seen.home) else { return Some("no journal".to_owned()) };
    let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    let gap = records.iter().zip(0_u64..).find(|(record, seq)| record["seq"] != *seq);
    if let Some((_, seq)) = gap {
        return Some(format!("the journal has no record {seq}"));
    }
    if records.last().is_none_or(|last| last["meta"]["kind"] != "run_end") {
        return Some("the journal does not end with `run_end`".to_owned());
    }
    (records != seen.records).then(|| "the journal is not what was printed".to_owned())
}
