//! The generic session id of the driver contract: where in an agent's output it stands, in the contract's order. Pure.
//!
//! It must never give a wrong id: what is no id by its place is not taken for one by its looks.

use serde_json::Value;

/// More output than this is read from its lines only.
const LARGEST_DOCUMENT: usize = 64 * 1024 * 1024;

/// The id in the output of one run of an agent.
pub fn extract(output: &[u8]) -> Option<String> {
    let documents = documents(output);
    match documents.as_slice() {
        [] => None,
        [Value::Array(elements)] => of_stream(elements),
        [only] => of_object(only),
        many => of_stream(many),
    }
}

/// The JSON documents of an output: one on each line, with other lines between them, or one over several lines.
fn documents(output: &[u8]) -> Vec<Value> {
    let parse =
        |text: &[u8]| serde_json::from_slice::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
    let lines: Vec<Value> = output.split(|&byte| byte == b'\n').filter_map(parse).collect();
    if !lines.is_empty() || output.len() > LARGEST_DOCUMENT {
        return lines;
    }
    let mut stream = serde_json::Deserializer::from_slice(output).into_iter::<Value>();
    std::iter::from_fn(|| stream.next()?.ok()).collect()
}

/// One document: three keys, in this order.
fn of_object(object: &Value) -> Option<String> {
    [&object["sessionId"], &object["metadata"]["session_id"], &object["session_id"]].into_iter().find_map(id)
}

/// Several documents: by the shape of the stream.
fn of_stream(documents: &[Value]) -> Option<String> {
    let of_type = |name: &'static str| documents.iter().filter(move |document| document["type"] == *name);
    // The thread of codex.
    if let Some(thread) = of_type("thread.started").find_map(|document| id(&document["thread_id"])) {
        return Some(thread);
    }
    // The result of claude and cursor, or how they began.
    let result = documents.iter().rev().find(|document| document["type"] == "result");
    let began = of_type("system").find(|document| document["subtype"] == "init");
    if let Some(found) = [result, began].into_iter().flatten().find_map(|document| id(&document["session_id"])) {
        return Some(found);
    }
    // The session of opencode.
    documents.iter().find_map(|document| {
        [&document["session"]["id"], &document["session_id"], &document["sessionId"]].into_iter().find_map(id)
    })
}

fn id(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    usable(&text)
}

/// The contract takes the word `null` for nothing.
pub fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "null" && !text.contains('\n')).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_is_asked_for_three_keys_in_order() {
        for (output, expected) in [
            (r#"{"sessionId":"a","metadata":{"session_id":"b"},"session_id":"c"}"#, Some("a")),
            (r#"{"metadata":{"session_id":"b"},"session_id":"c"}"#, Some("b")),
            (r#"{"session_id":"c"}"#, Some("c")),
            (r#"{"sessionId":"","session_id":"c"}"#, Some("c")),
            (r#"{"sessionId":null,"session_id":"null"}"#, None),
            (r#"{"session_id":"123456"}"#, Some("123456")),
            (r#"{"session_id":{"x":1}}"#, None),
            (r#"{"id":"x","thread_id":"y"}"#, None),
            ("{\n  \"session_id\": \"pretty\"\n}\n", Some("pretty")),
            ("", None),
            ("plain words with session_id: abc", None),
        ] {
            assert_eq!(extract(output.as_bytes()).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn streams_are_known_by_their_shape() {
        for (lines, expected) in [
            (
                &[r#"{"type":"thread.started","thread_id":"t1"}"#, r#"{"type":"turn.completed","session_id":"no"}"#][..],
                Some("t1"),
            ),
            (
                &[r#"{"type":"system","subtype":"init","session_id":"i"}"#, r#"{"type":"result","session_id":"r"}"#],
                Some("r"),
            ),
            (&[r#"{"type":"system","subtype":"init","session_id":"i"}"#, r#"{"type":"assistant"}"#], Some("i")),
            (&[r#"{"type":"message","session":{"id":"o"}}"#, r#"{"x":1}"#], Some("o")),
            (&[r#"{"x":1}"#, r#"{"session_id":"s"}"#], Some("s")),
            (&["noise", r#"{"session_id":"alone"}"#, "noise"], Some("alone")),
            (
                &[r#"[{"type":"system","subtype":"init","session_id":"i"},{"type":"result","session_id":"r"}]"#],
                Some("r"),
            ),
            (&[r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed"}"#], None),
        ] {
            assert_eq!(extract(lines.join("\n").as_bytes()).as_deref(), expected, "{lines:?}");
        }
    }
}
