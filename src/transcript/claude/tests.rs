use super::*;
use crate::event::Event;
use crate::event::Known;
use crate::process::Lines;
use crate::transcript::Context;

/// Events in short forms, one string each.
fn read(output: &str) -> Vec<String> {
    let mut adapter = (DIALECT.adapter)(&Context::default());
    let mut out = Vec::new();
    let mut lines = Lines::default();
    lines.push(output.as_bytes(), |line| adapter.line(line, &mut out));
    lines.finish(|line| adapter.line(line, &mut out));
    adapter.end(None, &mut out);
    out.iter().map(shown).collect()
}

fn shown(event: &Event) -> String {
    match event {
        Event::Text { tag, text, delta, parent } => {
            let parent = parent.as_ref().map(|parent| format!(" in {parent}")).unwrap_or_default();
            format!("{}{}{parent} {text}", tag.name(), if *delta { "+" } else { "" })
        }
        Event::Meta { meta } => match meta.known() {
            Some(Known::TurnEnd { success, reason }) => format!("end {success:?} {}", reason.unwrap_or_default()),
            Some(Known::Error { class, message, .. }) => format!("error {} {message}", class.name()),
            Some(Known::Retry { class, .. }) => format!("retry {}", class.name()),
            _ => serde_json::to_string(meta).unwrap(),
        },
        other => serde_json::to_string(other).unwrap(),
    }
}

fn delta(text: &str) -> String {
    format!(r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}"#)
}

#[test]
fn a_wrappers_fragments_and_empty_result_are_the_answer() {
    let output =
        [delta("fixed "), delta("it.\\n"), delta("<<<RALPHEX:COMPLETED>>>"), r#"{"type":"result","result":""}"#.into()];
    assert_eq!(read(&output.join("\n")), ["AI+ fixed ", "AI+ it.\n", "AI+ <<<RALPHEX:COMPLETED>>>", "end None result"]);
}

#[test]
fn a_result_that_was_not_said_is_said() {
    assert_eq!(read(r#"{"type":"result","result":"done"}"#), ["AI done", "end None result"]);
    assert_eq!(read(r#"{"type":"result","result":{"output":"done"}}"#), ["AI done", "end None result"]);
    let both = format!("{}\n{}", delta("done\\n"), r#"{"type":"result","result":"done"}"#);
    assert_eq!(read(&both), ["AI+ done\n", "end None result"]);
    let more = format!("{}\n{}", delta("working\\n"), r#"{"type":"result","result":"done"}"#);
    assert_eq!(read(&more), ["AI+ working\n", "AI done", "end None result"]);
}

#[test]
fn a_message_stop_with_its_message_says_what_fragments_left_out() {
    let stop = r#"{"type":"message_stop","message":{"content":[{"type":"text","text":"one two"}]}}"#;
    assert_eq!(read(&format!("{}\n{stop}", delta("one")))[..2], ["AI+ one", "AI+  two"]);
    assert_eq!(read(stop)[0], "AI one two");
    assert_eq!(read(&format!("{}\n{stop}", delta("one two")))[..1], ["AI+ one two"]);
}

#[test]
fn several_results_are_one_end() {
    let result = |text: &str| format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}"#);
    assert_eq!(
        read(&format!("{}\n{}", result("first"), result("second"))),
        ["AI first", "end Some(true) success", "AI second"]
    );
}

#[test]
fn messages_in_fragments_stay_apart() {
    let event = |event: &str| format!(r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":null}}"#);
    let start = event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
    let text = |text: &str| {
        event(&format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#))
    };
    let output = [start.clone(), text("one"), start, text("two")];
    assert_eq!(read(&output.join("\n"))[..3], ["AI+ one", "AI ", "AI+ two"]);
}

#[test]
fn the_same_words_said_twice_are_two_messages() {
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"again"}]}}"#;
    assert_eq!(read(&format!("{line}\n{line}"))[..2], ["AI again", "AI again"]);
}

#[test]
fn content_of_any_known_shape_is_read() {
    for (content, expected) in [
        (r#""plain""#, "AI plain"),
        (r#"[{"type":"text","text":"a\nb"}]"#, "AI a\nb"),
        (r#"[{"type":"thinking","thinking":"hm","signature":"x"}]"#, "THINK hm"),
        (r#"[{"text":"no type"}]"#, "AI no type"),
        (r#"[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"b"}]"#, "AI b"),
    ] {
        let line = format!(r#"{{"type":"assistant","message":{{"role":"assistant","content":{content}}}}}"#);
        assert_eq!(read(&line)[0], expected, "{content}");
    }
}

#[test]
fn a_hopeless_retry_is_a_failure_at_once_and_any_other_is_progress() {
    let retry = |status: &str, error: &str| {
        format!(r#"{{"type":"system","subtype":"api_retry","attempt":1,"error_status":{status},"error":"{error}"}}"#)
    };
    assert_eq!(read(&retry("401", "authentication_failed"))[0], "error auth authentication_failed");
    assert_eq!(read(&retry("403", "unknown"))[0], "error auth unknown");
    assert_eq!(read(&retry("429", "rate_limit"))[0], "retry rate_limit");
    assert_eq!(read(&retry("529", "overloaded"))[0], "retry overload");
    assert_eq!(read(&retry("null", "unknown"))[0], "retry network");
}

#[test]
fn what_a_sub_agent_says_is_marked() {
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]},"parent_tool_use_id":"t1"}"#;
    assert_eq!(read(line)[0], "AI in t1 x");
    let synthetic = r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error"}]},"error":"server_error","parent_tool_use_id":"t1"}"#;
    assert_eq!(read(synthetic)[..1], ["SYS in t1 API Error"]);
    assert!(!read(synthetic).iter().any(|event| event.starts_with("error")), "its errors are not the iteration's");
}
