//! Forms of Codex' output that no capture has: the classic text, traps in it, and thread totals.

use crate::event::{Event, Known, Status, Tag, Usage};
use crate::process::{Exit, Line};
use crate::transcript::{Context, dialect};

fn read(context: &Context, stdout: &str, stderr: &str) -> Vec<Event> {
    let mut adapter = (dialect("codex").unwrap().adapter)(context);
    let mut out = Vec::new();
    stderr.lines().for_each(|line| adapter.stderr(Line::whole(line.as_bytes()), &mut out));
    stdout.lines().for_each(|line| adapter.line(Line::whole(line.as_bytes()), &mut out));
    adapter.end(Some(Exit::Code(0)), &mut out);
    out
}

fn prompted(prompt: &str) -> Context {
    Context { prompts: vec![prompt.to_owned()], ..Context::default() }
}

fn said(events: &[Event], wanted: Tag) -> Vec<&str> {
    let text = |event: &Event| matches!(event, Event::Text { tag, .. } if *tag == wanted);
    events.iter().filter(|event| text(event)).map(words).collect()
}

fn words(event: &Event) -> &str {
    match event {
        Event::Text { text, .. } | Event::ToolOutput { text, .. } => text,
        _ => "",
    }
}

fn statuses(events: &[Event]) -> Vec<Status> {
    let status = |event: &Event| match event {
        Event::ToolEnd { tool, .. } => Some(tool.status),
        _ => None,
    };
    events.iter().filter_map(status).collect()
}

const BANNER: &str = "OpenAI Codex v0.166.0\n--------\nworkdir: /w\nmodel: m\nsession id: s\n--------\n";

#[test]
fn the_classic_roles_are_channels() {
    let output = "user\nfix it\n<promise>COMPLETE</promise>\nthinking\nHm.\nassistant\nWorking.\nexec\n\
                  bash -lc 'ls' in /w succeeded in 12ms:\na.txt\n\nFinal:\nAll done.\nsystem\nTokens used: 123\n";
    let events = read(&prompted("fix it\n<promise>COMPLETE</promise>"), output, "");
    assert_eq!(said(&events, Tag::Prompt), ["fix it", "<promise>COMPLETE</promise>"]);
    assert_eq!(said(&events, Tag::Think), ["Hm."]);
    assert_eq!(said(&events, Tag::Ai), ["Working.", "All done."]);
    assert_eq!(statuses(&events), [Status::Ok]);
    assert!(events.contains(&Event::usage(Usage { total_tokens: Some(123), ..Usage::default() })));
}

#[test]
fn headers_with_a_time_are_read() {
    let output = "[2025-08-10T12:00:00] OpenAI Codex v0.20.0 (research preview)\n--------\nworkdir: /w\n--------\n\
                  [2025-08-10T12:00:01] User instructions:\ngo\n[2025-08-10T12:00:02] thinking\n\nplan\n\
                  [2025-08-10T12:00:03] exec bash -lc 'false' in /w\n[2025-08-10T12:00:04] bash -lc 'false' failed in 7ms:\noops\n\
                  [2025-08-10T12:00:05] codex\n\nIt failed.\n[2025-08-10T12:00:06] tokens used: 1,234\n";
    let events = read(&prompted("go"), output, "");
    assert_eq!(said(&events, Tag::Prompt), ["go"]);
    assert_eq!(said(&events, Tag::Think), ["plan"]);
    assert_eq!(said(&events, Tag::Ai), ["It failed."]);
    assert_eq!(statuses(&events), [Status::Fail]);
}

#[test]
fn a_role_word_in_a_tools_output_is_output() {
    let stderr = format!(
        "{BANNER}user\ngo\nexec\n/bin/bash -lc whoami in /w\n succeeded in 1ms:\nuser\ncodex\n\ncodex\nDone.\n"
    );
    let events = read(&prompted("go"), "Done.\n", &stderr);
    let output: Vec<&str> =
        events.iter().filter(|event| matches!(event, Event::ToolOutput { .. })).map(words).collect();
    assert_eq!(output, ["user\ncodex"]);
    assert_eq!(said(&events, Tag::Ai), ["Done."]);
}

#[test]
fn a_role_word_in_the_prompt_is_prompt() {
    let prompt = "Say\ncodex\n<promise>COMPLETE</promise>";
    let stderr = format!("{BANNER}user\n{prompt}\ncodex\nStill working.\n");
    let events = read(&prompted(prompt), "Still working.\n", &stderr);
    assert_eq!(said(&events, Tag::Prompt), prompt.lines().collect::<Vec<_>>());
    assert_eq!(said(&events, Tag::Ai), ["Still working."]);
}

#[test]
fn the_last_message_is_said_once_wherever_its_copy_comes() {
    let stderr = format!("{BANNER}user\ngo\ncodex\nOne.\n\nTwo.\ntokens used\n1,360\n");
    let copy = "One.\n\nTwo.\n";
    for (stdout, stderr) in [(copy, stderr.as_str()), (format!("{stderr}{copy}").as_str(), ""), ("", &stderr)] {
        let events = read(&prompted("go"), stdout, stderr);
        assert_eq!(said(&events, Tag::Ai), ["One.\n\nTwo."], "{stdout}");
    }
}

#[test]
fn commands_that_ran_together_are_ok_only_when_all_are() {
    let run = |first: &str, second: &str| {
        let blocks = "exec\n/bin/bash -lc a in /w\nexec\n/bin/bash -lc 'b\nc' in /w\n";
        let stderr = format!("{BANNER}user\ngo\n{blocks} {first} in 1ms:\nx\n\n {second} in 2ms:\ny\n\ncodex\nDone.\n");
        statuses(&read(&prompted("go"), "Done.\n", &stderr))
    };
    assert_eq!(run("succeeded", "succeeded"), [Status::Ok, Status::Ok]);
    assert_eq!(run("succeeded", "exited 2"), [Status::Unknown, Status::Unknown]);
    assert_eq!(run("exited 1", "exited 2"), [Status::Fail, Status::Fail]);
}

#[test]
fn an_error_line_of_a_run_that_succeeds_fails_nothing() {
    let stderr = format!("{BANNER}user\ngo\ncodex\nThe log says:\nERROR: 401 Unauthorized\ncodex\nFixed.\n");
    let events = read(&prompted("go"), "Fixed.\n", &stderr);
    let failed =
        |event: &Event| matches!(event, Event::Meta { meta } if matches!(meta.known(), Some(Known::Error { .. })));
    assert!(!events.iter().any(failed));
}

#[test]
fn after_a_resume_only_this_turns_share_is_reported() {
    let before = Usage { prompt_tokens: Some(1000), completion_tokens: Some(10), ..Usage::default() };
    let context = Context { session_usage: before, ..Context::default() };
    let line = r#"{"type":"turn.completed","usage":{"input_tokens":2100,"cached_input_tokens":1000,"output_tokens":22,"reasoning_output_tokens":0}}"#;
    let message = r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"x"}}"#;
    let events = read(&context, &format!("{message}\n{line}\n"), "");
    let usage = events.iter().find_map(|event| match event {
        Event::Usage { usage } => Some((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)),
        _ => None,
    });
    assert_eq!(usage, Some((Some(1100), Some(12), Some(1112))));
}

#[test]
fn a_search_that_gives_its_id_twice_is_one_tool() {
    let item = |phase: &str| {
        format!(
            r#"{{"type":"item.{phase}","item":{{"id":"item_1","type":"web_search","id":"ws_1","query":"ralph loop","action":{{"type":"search"}}}}}}"#
        )
    };
    let events = read(&Context::default(), &format!("{}\n{}\n", item("started"), item("completed")), "");
    assert!(matches!(&events[0], Event::ToolStart { tool, .. } if tool.id == "item_1" && tool.name == "web_search"));
    assert_eq!(statuses(&events), [Status::Ok]);
}

#[test]
fn long_thoughts_stay_thoughts() {
    let thought = "x".repeat(1000);
    let stderr = format!("{BANNER}user\ngo\nthinking\n{}codex\nDone.\n", format!("{thought}\n").repeat(3000));
    let events = read(&prompted("go"), "Done.\n", &stderr);
    assert_eq!(said(&events, Tag::Ai), ["Done."]);
    assert_eq!(said(&events, Tag::Think).concat().matches('x').count(), 3_000_000);
}
