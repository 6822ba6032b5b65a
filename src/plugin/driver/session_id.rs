//! The generic session id of the driver contract: where in an agent's output it is, in the contract's order.
//!
//! It must never give a wrong id: what is no id by its place is not taken for one by its looks. Memory does not grow with
//! the output.

use std::io::{self, Read};

use serde::Deserialize;
use serde_json::Value;

use crate::process::{Lines, Part};

/// A document over several lines is not read when it is larger.
const LARGEST_DOCUMENT: usize = 8 * 1024 * 1024;

/// The id in the output of one run of an agent.
pub(super) fn extract(mut output: impl Read) -> io::Result<Option<String>> {
    let (mut lines, mut found) = (Lines::default(), SessionIds::default());
    // The output as far as it may be one document over several lines.
    let mut whole = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let bytes = match output.read(&mut chunk)? {
            0 => break,
            count => &chunk[..count],
        };
        lines.push(bytes, |line| found.line(line.part, line.bytes));
        if found.documents == 0 && whole.len() <= LARGEST_DOCUMENT {
            whole.extend_from_slice(bytes);
        }
    }
    lines.finish(|line| found.line(line.part, line.bytes));
    if found.documents == 0 && whole.len() <= LARGEST_DOCUMENT {
        let stream = serde_json::Deserializer::from_slice(&whole).into_iter::<OneOrMore>();
        stream.map_while(Result::ok).for_each(|document| found.take(document));
    }
    Ok(found.id())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    // First: a list would pass for the fields of one.
    More(Vec<Document>),
    One(Box<Document>),
}

/// What matters of a document.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    r#type: Value,
    subtype: Value,
    thread_id: Value,
    session_id: Value,
    #[serde(rename = "sessionId")]
    camel: Value,
    metadata: Value,
    session: Value,
}

/// What the documents have told so far.
#[derive(Default)]
struct SessionIds {
    documents: usize,
    /// By the rules for a single document: three keys, in this order.
    alone: Option<String>,
    thread: Option<String>,
    /// The result of claude and cursor, or how they began.
    result: Option<String>,
    has_begun: bool,
    began: Option<String>,
    /// The session of opencode.
    session: Option<String>,
}

impl SessionIds {
    fn line(&mut self, part: Part, line: &[u8]) {
        if part == Part::Whole
            && matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
            && let Ok(document) = serde_json::from_slice(line)
        {
            self.take(document);
        }
    }

    fn take(&mut self, document: OneOrMore) {
        match document {
            OneOrMore::One(document) => self.see(&document),
            OneOrMore::More(documents) => {
                for document in &documents {
                    self.see(document);
                }
                // A list is a stream, however short.
                self.documents = self.documents.max(2);
            }
        }
    }

    fn see(&mut self, document: &Document) {
        self.documents += 1;
        if self.documents == 1 {
            let places = [&document.camel, &document.metadata["session_id"], &document.session_id];
            self.alone = places.into_iter().find_map(id);
        }
        if document.r#type == "thread.started" && self.thread.is_none() {
            self.thread = id(&document.thread_id);
        }
        if document.r#type == "result" {
            self.result = id(&document.session_id);
        }
        if document.r#type == "system" && document.subtype == "init" && !self.has_begun {
            (self.has_begun, self.began) = (true, id(&document.session_id));
        }
        if self.session.is_none() {
            let places = [&document.session["id"], &document.session_id, &document.camel];
            self.session = places.into_iter().find_map(id);
        }
    }

    fn id(self) -> Option<String> {
        match self.documents {
            1 => self.alone,
            _ => self.thread.or(self.result).or(self.began).or(self.session),
        }
    }
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
pub(crate) fn usable(text: &str) -> Option<String> {
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
            assert_eq!(extract(output.as_bytes()).unwrap().as_deref(), expected, "{output}");
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
            assert_eq!(extract(lines.join("\n").as_bytes()).unwrap().as_deref(), expected, "{lines:?}");
        }
    }
}
