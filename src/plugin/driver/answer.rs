//! The answer of an agent whose whole output is JSON in a shape that no dialect knows: one object without a type, a flat
//! status, a list, a document over many lines, the messages of an older opencode. The analyser of the driver contract
//! accepts all of them.

use serde_json::Value;

use crate::event::{Event, Messages, Tag, denied};
use crate::signals::promise::{Heard, Rule, Watch};
use crate::signals::status_block::{self, StatusBlock};

/// A larger output is a stream of events, which a dialect reads.
pub(super) const LARGEST: u64 = 2 * 1024 * 1024;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The agent's words.
    pub(super) text: String,
    /// What the fields of the object say about the work.
    fields: Option<StatusBlock>,
    /// What it was not permitted.
    pub(super) denied: Vec<String>,
}

impl Answer {
    /// Reads a whole output; nothing when it is not JSON from its first to its last byte.
    pub(super) fn read(output: &[u8]) -> Option<Self> {
        let documents: Vec<Value> =
            serde_json::Deserializer::from_slice(output).into_iter().collect::<Result<_, _>>().ok()?;
        let mut answer = Self::default();
        let mut found = false;
        for document in documents {
            match document {
                Value::Array(items) => items.iter().for_each(|item| found |= answer.take(item)),
                other => found |= answer.take(&other),
            }
        }
        found.then_some(answer)
    }

    /// Takes one object; true when it has an answer in it.
    fn take(&mut self, document: &Value) -> bool {
        let word = |key: &str| document[key].as_str().map(str::to_owned);
        match word("type").as_deref() {
            Some("message.updated" | "message.completed") if document["message"]["role"] == "assistant" => {
                let parts = document["message"]["parts"].as_array().into_iter().flatten();
                let parts = parts.filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
                // A message comes again when it has grown.
                self.text = parts.collect();
                true
            }
            Some("result") | None if document["result"].is_string() => {
                self.text = word("result").unwrap_or_default();
                let complete = document["metadata"]["completion_status"] == "complete";
                self.fields =
                    complete.then(|| StatusBlock { status: Some("COMPLETE".to_owned()), ..StatusBlock::default() });
                let denials = document["permission_denials"].as_array().into_iter().flatten();
                self.denied = denials
                    .filter_map(|denial| {
                        let input = denial["tool_input"]["command"].as_str();
                        Some(denied(denial["tool_name"].as_str()?, input))
                    })
                    .collect();
                true
            }
            None if document["exit_signal"].is_boolean() || document["status"].is_string() => {
                let exit_signal = document["exit_signal"].as_bool();
                let status = word("status").map(|status| status.to_ascii_uppercase());
                self.fields = Some(StatusBlock { status, exit_signal, ..StatusBlock::default() });
                self.text = word("summary").unwrap_or_default();
                true
            }
            _ => false,
        }
    }

    /// What it says to the loop. A status block in the words is nearer to the agent than the fields around them.
    pub(super) fn heard(&self, rule: Rule) -> Heard {
        let words = Event::text(Tag::Ai, &self.text);
        let (mut promise, mut blocks) = (Watch::new(rule, Messages::Whole), status_block::Watch::default());
        promise.see(&words);
        blocks.see(&words);
        let mut heard = promise.end();
        if let Some(block) = blocks.end().or_else(|| self.fields.clone()) {
            heard.signal = block.over(heard.signal.take());
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Signal;
    use crate::signals::promise::Match;

    const BLOCK: &str = r"Done.\n---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";

    fn is_done(output: &str) -> bool {
        let answer = Answer::read(output.as_bytes()).unwrap_or_default();
        matches!(answer.heard(Rule::new(None, Match::LastLine)).signal, Some(Signal::Complete { .. }))
    }

    #[test]
    fn every_shape_of_the_analyser_is_an_answer() {
        let updated = |text: &str| {
            format!(
                r#"{{"type":"message.updated","message":{{"role":"assistant","parts":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        };
        for output in [
            format!(r#"{{"result":"{BLOCK}","sessionId":"s"}}"#),
            format!("{{\n  \"result\": \"{BLOCK}\",\n  \"sessionId\": \"s\"\n}}\n"),
            r#"{"status":"COMPLETE","exit_signal":true}"#.to_owned(),
            r#"{"result":"Done.","metadata":{"completion_status":"complete"}}"#.to_owned(),
            format!(r#"[{{"type":"system","subtype":"init"}},{{"type":"result","result":"{BLOCK}"}}]"#),
            format!("{}\n{}\n", updated("Wor"), updated(BLOCK)),
        ] {
            assert!(is_done(&output), "{output}");
        }
        for output in [
            r#"{"status":"COMPLETE","exit_signal":false}"#.to_owned(),
            r#"{"status":"IN_PROGRESS"}"#.to_owned(),
            format!("{}\n{}\n", updated(BLOCK), updated("Not yet.")),
            format!("Look:\n{{\"result\":\"{BLOCK}\"}}"),
            format!("{{\"result\":\"{BLOCK}\"}}\nand more"),
            r#"{"type":"user","status":"COMPLETE","exit_signal":true}"#.to_owned(),
        ] {
            assert!(!is_done(&output), "{output}");
        }
    }

    #[test]
    fn denials_name_the_command() {
        let output = r#"{"result":"x","permission_denials":[{"tool_name":"Bash","tool_input":{"command":"npm install"}},{"tool_name":"Write"}]}"#;
        assert_eq!(Answer::read(output.as_bytes()).unwrap().denied, ["Bash(npm install)", "Write"]);
    }
}
