//! What the scripted agent says in a dialect is what the adapter hears: two independent writers of each dialect
//! must agree, or tests of the loop would prove nothing about it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::process::{Command, Output, Stdio};

use fake_agent::{Dialect, Iteration, Script, Tokens, silent, thinks};
use ralph::event::{Event, Known, Status, Tag, Usage};
use ralph::process::{Exit, Lines};
use ralph::transcript::{Context, dialect};
use serde_json::json;

/// What an iteration said, as a reader of its events puts it together.
#[derive(Debug, Default)]
struct Heard {
    messages: Vec<String>,
    thoughts: Vec<String>,
    tools: Vec<(String, Status)>,
    outputs: String,
    usage: Usage,
    session: Option<String>,
    failure: Option<&'static str>,
    ends: Vec<Option<bool>>,
}

fn hear(spoken: Dialect, iteration: Iteration) -> Heard {
    let directory = tempfile::tempdir().unwrap();
    let script = Script::from(iteration).dialect(spoken).session("20260101_7").model("fake-model");
    let path = script.write(directory.path()).unwrap();
    let agent = Command::new(fake_agent::binary()).arg(path).stdin(Stdio::null()).output().unwrap();
    let mut heard = Heard::default();
    let mut open = None;
    for event in read(spoken, &agent) {
        let mut speaking = None;
        match event {
            Event::Text { tag: tag @ (Tag::Ai | Tag::Think), text, delta, .. } => {
                let said = if tag == Tag::Ai { &mut heard.messages } else { &mut heard.thoughts };
                match said.last_mut() {
                    Some(last) if delta && open == Some(tag) => last.push_str(&text),
                    _ => said.push(text),
                }
                speaking = Some(tag);
            }
            Event::ToolStart { tool, .. } => heard.tools.push((tool.name, Status::Unknown)),
            Event::ToolOutput { text, .. } => heard.outputs.push_str(&text),
            Event::ToolEnd { tool, .. } => heard.tools.last_mut().expect("a start").1 = tool.status,
            Event::Usage { usage } => heard.usage.add(&usage),
            Event::Meta { meta } => match meta.known().expect("a known kind") {
                Known::Session { id } => heard.session = Some(id),
                Known::Error { class, .. } => heard.failure = Some(class.name()),
                Known::TurnEnd { success, .. } => heard.ends.push(success),
                _ => {}
            },
            Event::Text { .. } => {}
        }
        open = speaking;
    }
    heard
}

fn read(spoken: Dialect, agent: &Output) -> Vec<Event> {
    let mut adapter = (dialect(spoken.adapter()).unwrap().adapter)(&Context::default());
    let mut out = Vec::new();
    let mut lines = Lines::default();
    lines.push(&agent.stderr, |line| adapter.stderr(line, &mut out));
    lines.finish(|line| adapter.stderr(line, &mut out));
    let mut lines = Lines::default();
    lines.push(&agent.stdout, |line| adapter.line(line, &mut out));
    lines.finish(|line| adapter.line(line, &mut out));
    adapter.end(agent.status.code().map(Exit::Code), &mut out);
    out
}

/// Dialects that tell more than lines.
fn structured() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Plain)
}

#[test]
fn every_word_and_tool_is_heard_once_and_in_order() {
    for spoken in structured() {
        let iteration = thinks("Let me see.")
            .says("First I look: größer ✅ \"quoted\" \\ done.")
            .in_pieces(5)
            .runs_tool("shell", json!({"command": "ls"}))
            .printing("a.txt")
            .runs_tool("shell", json!({"command": "false"}))
            .printing("boom")
            .fails()
            .reports(Tokens { input: 1200, output: 60, cached: 200, reasoning: 10, cost_usd: Some(0.25) })
            .says("All done.\n<promise>COMPLETE</promise>")
            .in_pieces(3);
        let heard = hear(spoken, iteration);
        let expected = ["First I look: größer ✅ \"quoted\" \\ done.", "All done.\n<promise>COMPLETE</promise>"];
        assert_eq!(heard.messages, expected, "{spoken:?}");
        let statuses: Vec<Status> = heard.tools.iter().map(|(_, status)| *status).collect();
        assert_eq!(statuses, [Status::Ok, Status::Fail], "{spoken:?}: {:?}", heard.tools);
        assert!(heard.outputs.contains("a.txt") && heard.outputs.contains("boom"), "{spoken:?}: {}", heard.outputs);
        if spoken != Dialect::Gemini {
            assert_eq!(heard.thoughts, ["Let me see."], "{spoken:?}");
        }
        if !matches!(spoken, Dialect::Cline) {
            assert_eq!(heard.session.as_deref(), Some("20260101_7"), "{spoken:?}");
        }
        match spoken {
            // Nothing in the stream tells it.
            Dialect::Copilot => {}
            Dialect::CodexText => assert_eq!(heard.usage.total_tokens, Some(1060)),
            _ => {
                assert_eq!(heard.usage.prompt_tokens, Some(1200), "{spoken:?}");
                assert_eq!(heard.usage.completion_tokens, Some(60), "{spoken:?}");
                assert_eq!(heard.usage.cached_tokens, Some(200), "{spoken:?}");
            }
        }
        assert_eq!(heard.failure, None, "{spoken:?}");
        let success = if spoken == Dialect::CodexText { None } else { Some(true) };
        assert_eq!(heard.ends, [success], "{spoken:?}");
    }
}

#[test]
fn a_limit_of_the_model_is_a_rate_limit_in_every_dialect() {
    for spoken in structured() {
        let heard = hear(spoken, silent().breaks_with_status(429, "Rate limit reached. Please try again in 20s."));
        if spoken != Dialect::Rtf1 {
            assert_eq!(heard.failure, Some("rate_limit"), "{spoken:?}");
        }
        assert_eq!(heard.ends, [Some(false)], "{spoken:?}");
    }
}

#[test]
fn a_tool_that_never_ends_is_unknown_in_every_dialect() {
    // OpenCode tells a tool only when it has ended.
    for spoken in structured().filter(|spoken| *spoken != Dialect::Opencode) {
        let iteration = silent().says("I start.").runs_tool("shell", json!({"command": "sleep 99"})).never_ends();
        let heard = hear(spoken, iteration.without_terminal_event());
        let statuses: Vec<Status> = heard.tools.iter().map(|(_, status)| *status).collect();
        assert_eq!(statuses, [Status::Unknown], "{spoken:?}");
        assert_eq!(heard.ends.len(), 1, "{spoken:?}");
    }
}
