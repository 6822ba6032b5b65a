//! A project of ralphex: `.ralphex/config` names a command that speaks Claude, the plan is in `docs/plans`. And the other way
//! round: its reader, rebuilt after its rules, in front of `ralph as-claude`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::support::Test;
use super::world;

const WORLD: &str = "002-ralphex";
const PLAN: &str = "docs/plans/2026-11-02-health-endpoint.md";

/// What the wrapper prints for this text.
fn delta(text: &str) -> String {
    let delta = serde_json::json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}});
    format!("cat <<'END'\n{delta}\n{{\"type\":\"result\",\"result\":\"\"}}\nEND")
}

#[test]
fn a_bare_run_works_on_the_only_plan_until_its_items_are_done() {
    let tick =
        format!("cat > /dev/null\n[ $CALLS = 1 ] || sed -i 's/- \\[ \\]/- [x]/' {PLAN}\necho $CALLS > moved-$CALLS");
    let body = format!("{tick}\n{}", delta("Done.\n<<<RALPHEX:ALL_TASKS_DONE>>>\n"));
    let ran = world(WORLD).stands_for("codex-as-claude", &body).repository().run().complete().after_iterations(2);
    let ran = ran.shows("this is a ralphex project (`.ralphex/config`): see `docs/coming-from.md#ralphex`");
    let ran = ran.shows("codex-as-claude").shows("(from .ralphex/config:3)");
    let argv = ran.argv(1);
    assert!(argv.iter().any(|word| word.starts_with("# Health endpoint")), "the plan is the prompt: {argv:?}");
    assert!(ran.facts("decision")[0]["reason"].as_str().unwrap().contains('3'), "{:?}", ran.facts("decision"));
}

#[test]
fn words_on_the_command_line_are_not_held_to_the_plan() {
    let body = format!("cat > /dev/null\n{}", delta("Done.\n<<<RALPHEX:ALL_TASKS_DONE>>>\n"));
    let ran = world(WORLD).stands_for("codex-as-claude", &body).prompt("Fix the typo.").run().complete();
    ran.after_iterations(1);
}

// Its reader.

/// What its loop does next.
#[derive(Debug, PartialEq, Eq)]
enum Reaction {
    /// The signal that it saw.
    Signal(&'static str),
    /// It waits for the limit, or ends with a hint at it.
    Limit,
    /// The next iteration after a pause.
    Retry,
    /// It ends with this pattern.
    Error(&'static str),
    /// The exit code ends the whole plan.
    Abort,
    /// The next iteration.
    Next,
}

/// Reads lines as it does: text blocks and deltas are text, a line that is no event is text without signals; a string `result`
/// and `is_error` mean nothing. Patterns are looked for in the last ten texts: retry, then limit, then error.
fn react(stdout: &str, exit_code: i32) -> Reaction {
    let (mut texts, mut signal) = (Vec::<String>::new(), None);
    for line in stdout.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            texts.push(line.to_owned());
            continue;
        };
        let text = match event["type"].as_str() {
            Some("assistant") => {
                let blocks = event["message"]["content"].as_array().cloned().unwrap_or_default();
                blocks.iter().filter_map(|block| block["text"].as_str()).collect::<String>()
            }
            Some("content_block_delta") => event["delta"]["text"].as_str().unwrap_or_default().to_owned(),
            _ => continue,
        };
        let seen =
            ["ALL_TASKS_DONE", "TASK_FAILED"].into_iter().find(|name| text.contains(&format!("<<<RALPHEX:{name}>>>")));
        signal = seen.or(signal);
        texts.push(text);
    }
    let last = texts[texts.len().saturating_sub(10)..].join("\n").to_lowercase();
    let has = |pattern: &&&'static str| last.contains(&pattern.to_lowercase());
    let find = |patterns: &[&'static str]| patterns.iter().find(has).copied();
    if signal.is_none() && find(&["API Error: 529", "API Error: 502", "API Error: 503", "API Error: 504"]).is_some() {
        return Reaction::Retry;
    }
    if find(&["You've hit your limit", "You've hit your session limit"]).is_some() {
        return Reaction::Limit;
    }
    if let Some(pattern) = find(&["API Error: 401", "API Error: 403", "API Error: 500", "Not logged in"]) {
        return Reaction::Error(pattern);
    }
    match (signal, exit_code) {
        (Some(signal), _) => Reaction::Signal(signal),
        (None, 0) => Reaction::Next,
        (None, _) => Reaction::Abort,
    }
}

/// Its loop with `ralph as-claude codex` as its command, in front of a codex that does this.
fn reaction_to(codex: &str) -> Reaction {
    let test = Test::new().stands_for("codex", &format!("cat > /dev/null\n{codex}"));
    let mut command = test.tool();
    command.args([
        "as-claude",
        "codex",
        "--dangerously-skip-permissions",
        "--output-format",
        "stream-json",
        "--verbose",
    ]);
    command.arg("--print").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Do one task, then <<<RALPHEX:ALL_TASKS_DONE>>>.").unwrap();
    let output = child.wait_with_output().unwrap();
    react(&String::from_utf8_lossy(&output.stdout), output.status.code().unwrap())
}

fn failed(message: &str) -> String {
    let line = serde_json::json!({"type": "turn.failed", "error": {"message": message}});
    format!("cat <<'END'\n{line}\nEND\nexit 1")
}

fn said(text: &str) -> String {
    let line =
        serde_json::json!({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": text}});
    format!("cat <<'END'\n{line}\n{{\"type\":\"turn.completed\"}}\nEND")
}

#[test]
fn its_reader_reacts_rightly_to_every_failure_behind_as_claude() {
    for (codex, reaction) in [
        (failed("You've hit your usage limit. Try again at 3:00 PM."), Reaction::Limit),
        (failed("exceeded retry limit, last status: 429 Too Many Requests"), Reaction::Limit),
        (failed("unexpected status 529: overloaded"), Reaction::Retry),
        (failed("stream error: exceeded retry limit, last status: 503 Service Unavailable"), Reaction::Retry),
        (failed("unexpected status 401 Unauthorized: bad key"), Reaction::Error("Not logged in")),
        ("echo 'thread main panicked' >&2; exit 101".to_owned(), Reaction::Abort),
        (said("Task 1 is done."), Reaction::Next),
        (said("All done.\n<<<RALPHEX:ALL_TASKS_DONE>>>"), Reaction::Signal("ALL_TASKS_DONE")),
    ] {
        assert_eq!(reaction_to(&codex), reaction, "{codex}");
    }
}
