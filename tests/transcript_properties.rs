//! What holds for any bytes and any dialect, and what holds for any conversation that a dialect can carry.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use proptest::prelude::*;
use ralph::event::{Event, Tag};
use ralph::process::{Exit, Lines};
use ralph::transcript::{Adapter, Context, DIALECTS, auto, dialect};
use serde_json::{Value, json};

/// Feeds an adapter; `cuts` say how long the pieces are.
fn read(adapter: &mut dyn Adapter, bytes: &[u8], cuts: &[usize]) -> Vec<Event> {
    let mut out = Vec::new();
    let mut lines = Lines::default();
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take(bytes.len() + 1) {
        let (piece, after) = rest.split_at((*cut).clamp(1, rest.len().max(1)).min(rest.len()));
        lines.push(piece, |line| adapter.line(line, &mut out));
        rest = after;
    }
    lines.push(rest, |line| adapter.line(line, &mut out));
    lines.finish(|line| adapter.line(line, &mut out));
    adapter.end(Some(Exit::Code(0)), &mut out);
    out
}

fn fresh(name: &str) -> Box<dyn Adapter> {
    (dialect(name).unwrap().adapter)(&Context::default())
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::Meta { meta } if meta.kind() == Some("turn_end"))
}

/// The agent's own words, all together.
fn said(events: &[Event]) -> String {
    let words = events.iter().filter_map(|event| match event {
        Event::Text { tag: Tag::Ai, text, parent: None, .. } => Some(text.as_str()),
        _ => None,
    });
    words.collect()
}

/// Bytes that come near to what dialects read: lines of JSON, cut, joined and mixed with noise.
fn near_misses() -> impl Strategy<Value = Vec<u8>> {
    let object = prop_oneof![
        Just(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}"#.to_owned()),
        Just(r#"{"type":"assistant","message":{"content":"hi"},"parent_tool_use_id":"t"}"#.to_owned()),
        Just(r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"a"}}}"#.to_owned()),
        Just(
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{}]}]}}"#
                .to_owned()
        ),
        Just(r#"{"type":"result","result":"hi","is_error":true,"usage":{"input_tokens":-1}}"#.to_owned()),
        Just(r#"{"type":"message","role":"assistant","content":"x","delta":true}"#.to_owned()),
        Just(r#"{"type":"tool_use","tool_id":"t","tool_name":"run_shell_command","parameters":[]}"#.to_owned()),
        Just(
            r#"{"type":"tool_call","subtype":"completed","tool_call":{"shellToolCall":{"result":{"success":{}}}}}"#
                .to_owned()
        ),
        Just(r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"x"}}"#.to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just(r#"@@RALPH@@ {"type":"text","tag":"AI","text":"x"}"#.to_owned()),
        "\\PC{0,12}",
        r#"\{"type":"[a-z_]{1,12}"(,"[a-z]{1,4}":(null|1|"x"|\[\]|\{\})){0,3}\}"#,
    ];
    let piece = (object, any::<u16>(), prop_oneof![3 => Just("\n"), 1 => Just(""), 1 => Just("\r\n"), 1 => Just(" ")]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| {
        let mut bytes = Vec::new();
        for (text, cut, end) in pieces {
            // One in eight is cut somewhere, one in sixteen has a byte that is no text.
            let keep = if cut % 8 == 0 { usize::from(cut / 8) % (text.len() + 1) } else { text.len() };
            bytes.extend_from_slice(&text.as_bytes()[..keep]);
            if cut % 16 == 1 {
                bytes.push(0xff);
            }
            bytes.extend_from_slice(end.as_bytes());
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_bytes_give_the_same_events_wherever_they_are_cut(
        bytes in near_misses(),
        cuts in prop::collection::vec(1_usize..40, 1..6),
    ) {
        for dialect in DIALECTS {
            let whole = read(&mut *fresh(dialect.name), &bytes, &[usize::MAX]);
            let pieces = read(&mut *fresh(dialect.name), &bytes, &cuts);
            prop_assert_eq!(whole, pieces, "{}", dialect.name);
        }
    }

    #[test]
    fn any_bytes_give_one_terminal_fact_and_balanced_tools(bytes in prop_oneof![near_misses(), prop::collection::vec(any::<u8>(), 0..300)]) {
        for dialect in DIALECTS {
            for mut adapter in [fresh(dialect.name), auto(dialect, &Context::default())] {
                let events = read(&mut *adapter, &bytes, &[usize::MAX]);
                prop_assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1, "{}", dialect.name);
                for event in &events {
                    if let Event::ToolStart { tool, .. } = event {
                        let ends = events.iter().filter(|end| matches!(end, Event::ToolEnd { tool: end, .. } if end.id == tool.id));
                        prop_assert!(ends.count() > 0, "{}: tool {} never ends", dialect.name, tool.id);
                    }
                }
            }
        }
    }

    #[test]
    fn claude_says_every_word_once_with_or_without_fragments(messages in conversation(), partial in any::<bool>(), result in any::<bool>()) {
        let mut lines = vec![json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m"})];
        for message in &messages {
            let event = |event: Value| json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
            if partial {
                lines.push(event(json!({"type": "message_start", "message": {"content": []}})));
                lines.push(event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})));
                for piece in pieces(message) {
                    lines.push(event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})));
                }
            }
            lines.push(json!({"type": "assistant", "message": {"content": [{"type": "text", "text": message}]}}));
            if partial {
                lines.push(event(json!({"type": "content_block_stop", "index": 0})));
                lines.push(event(json!({"type": "message_stop"})));
            }
        }
        if result {
            lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": messages.last()}));
        }
        prop_assert_eq!(said(&read(&mut *fresh("claude"), joined(&lines).as_bytes(), &[7])), messages.concat());
    }

    #[test]
    fn gemini_says_every_word_once(messages in conversation()) {
        let mut lines = vec![json!({"type": "init", "session_id": "s", "model": "m"})];
        for (at, message) in messages.iter().enumerate() {
            for piece in pieces(message) {
                lines.push(json!({"type": "message", "role": "assistant", "content": piece, "delta": true}));
            }
            lines.push(json!({"type": "tool_use", "tool_id": at.to_string(), "tool_name": "read_file", "parameters": {}}));
            lines.push(json!({"type": "tool_result", "tool_id": at.to_string(), "status": "success"}));
        }
        lines.push(json!({"type": "result", "status": "success"}));
        prop_assert_eq!(said(&read(&mut *fresh("gemini"), joined(&lines).as_bytes(), &[7])), messages.concat());
    }
}

/// Messages of any characters, none empty.
fn conversation() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("(\\PC|\n|\"|\\\\|\u{1}){1,30}", 1..5)
        .prop_map(|messages| messages.into_iter().map(|message| format!("{message}.")).collect())
}

/// A message in three pieces, cut between characters.
fn pieces(message: &str) -> Vec<String> {
    let characters: Vec<char> = message.chars().collect();
    characters.chunks(characters.len().div_ceil(3).max(1)).map(|chunk| chunk.iter().collect()).collect()
}

fn joined(lines: &[Value]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
