//! Cursor speaks like Claude, with tool calls, thoughts and retries of its own shape. Built from documented
//! forms: it must take any other shape without harm.

use serde::Deserialize;
use serde_json::Value;

use super::claude::{CAPABILITIES, Cached, Claude, Flavour, OwnErrors, UsageFrom};
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Dialect, Messages, todo};
use crate::event::{FailureClass, FileChange, Known, Object, Status, Tag};
use crate::process::Exit;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "cursor",
    capabilities: CAPABILITIES,
    messages: Messages::Whole,
    speaks: |json| match shape::kind(json).as_deref() {
        Some("tool_call" | "interaction_query") => true,
        Some("thinking") => json.contains("\"subtype\":"),
        Some("system") => json.contains("\"apiKeySource\":") && !json.contains("\"claude_code_version\":"),
        _ => false,
    },
    adapter: |context| Box::new(JsonLines::new(context, Cursor::new())),
};

const CURSOR: Flavour = Flavour {
    user_text: Tag::Prompt,
    usage: UsageFrom::Result,
    cached: Cached::Apart,
    own_errors: OwnErrors::Synthetic,
};

/// Outcomes of a tool call, by the only key of its `result` that says one.
const SUCCEEDED: &[&str] = &["success", "complete", "registered", "startSuccess", "saveSuccess", "discardSuccess"];
const FAILED: &[&str] = &[
    "failure",
    "error",
    "timeout",
    "spawnError",
    "fileNotFound",
    "invalidFile",
    "notFile",
    "fileBusy",
    "noSpace",
    "sandboxUnsupported",
    "notFound",
    "serverNotFound",
    "toolNotFound",
];
const REFUSED: &[&str] =
    &["rejected", "permissionDenied", "readPermissionDenied", "writePermissionDenied", "needsConfirmation"];

struct Cursor {
    claude: Claude,
    /// What was said since the last other event: with partial output it comes again as a whole.
    collected: String,
    /// Calls without an id are numbered.
    calls: u64,
}

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    #[serde(default)]
    timestamp_ms: Maybe<u64>,
    #[serde(borrow, default)]
    model_call_id: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    session_id: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Thinking<'a> {
    #[serde(borrow, default)]
    subtype: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    text: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    subtype: Maybe<String>,
    #[serde(default, rename = "call_id")]
    id: Maybe<String>,
    #[serde(rename = "tool_call")]
    body: Object,
}

impl Cursor {
    fn new() -> Self {
        Self { claude: Claude::new(&CURSOR), collected: String::new(), calls: 0 }
    }

    fn assistant(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Spoken<'_> = serde_json::from_str(json)?;
        turn.session(line.session_id.0.as_deref().unwrap_or_default());
        let text: String = line.message.content.iter().filter_map(|block| block.text.as_deref()).collect();
        if text.is_empty() || text == self.collected {
            self.collected.clear();
            turn.messages_over(None);
        } else if line.timestamp_ms.0.is_some() && line.model_call_id.0.is_none() {
            self.collect(&text);
            turn.fragment(Tag::Ai, None, text);
        } else {
            self.collect(&text);
            turn.whole(Tag::Ai, None, text);
        }
        Ok(())
    }

    /// Remembers a bounded amount: a longer repetition is rather shown twice than kept.
    fn collect(&mut self, text: &str) {
        const MOST: usize = 1024 * 1024;
        if self.collected.len() + text.len() <= MOST {
            self.collected.push_str(text);
        }
    }

    fn thinking(json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Thinking<'_> = serde_json::from_str(json)?;
        if line.subtype.0.as_deref() == Some("completed") {
            turn.message_over(Tag::Think, None);
        }
        turn.fragment(Tag::Think, None, line.text.0.unwrap_or_default().0);
        Ok(())
    }

    fn tool_call(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let call: Call = serde_json::from_str(json)?;
        let named = call.body.iter().find(|(key, value)| key.ends_with("ToolCall") && value.is_object());
        let (name, body) =
            named.map_or(("unknown", &Value::Null), |(key, body)| (key.trim_end_matches("ToolCall"), body));
        let args = body.get("args").and_then(Value::as_object);
        let id = call.id.0.filter(|id| !id.is_empty());
        let id = id.or_else(|| Some(args?.get("toolCallId")?.as_str()?.to_owned()));
        let started = call.subtype.0.as_deref() == Some("started");
        let id = id.unwrap_or_else(|| {
            self.calls += u64::from(started);
            format!("call-{}", self.calls)
        });
        turn.tool_start(&id, None, name, args.cloned());
        if !started {
            let outcome = body.get("result").and_then(Value::as_object);
            Self::ended(&id, name, args, outcome, turn);
        }
        Ok(())
    }

    fn ended(id: &str, name: &str, args: Option<&Object>, outcome: Option<&Object>, turn: &mut Turn) {
        let find = |keys: &[&str]| outcome?.iter().find(|(key, _)| keys.contains(&key.as_str()));
        let (status, details) = if let Some((_, details)) = find(SUCCEEDED) {
            let exit = details.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
            (if exit == 0 { Status::Ok } else { Status::Fail }, Some(details))
        } else if let Some((_, details)) = find(FAILED).or_else(|| find(REFUSED)) {
            (Status::Fail, Some(details))
        } else {
            (Status::Unknown, outcome.and_then(|outcome| outcome.values().next()))
        };
        turn.tool_output(id, None, details.map(output).unwrap_or_default());
        let duration = details.and_then(|details| details.get("executionTime")?.as_u64());
        turn.tool_end(id, None, status, duration);
        if let Some((word, details)) = find(REFUSED) {
            let message = details.get("reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
            let message = Some(message.unwrap_or(word).to_owned());
            turn.meta(Known::Permission { input: None, tool: name.to_owned(), id: Some(id.to_owned()), message });
        } else if status == Status::Ok {
            let text = |key: &str| args?.get(key)?.as_str().map(str::to_owned);
            let path = text("path").or_else(|| text("filePath")).or_else(|| text("file_path"));
            match (name, path) {
                ("write" | "edit" | "delete", Some(path)) => {
                    turn.meta(Known::Files { changes: vec![FileChange { path, change: Some(name.to_owned()) }] });
                }
                ("updateTodos", _) => {
                    let todos = args.and_then(|args| args.get("todos")).or_else(|| details?.get("todos"));
                    turn.meta(Known::Todo { items: todos.map(todo::items).unwrap_or_default() });
                }
                _ => {}
            }
        }
    }

    fn retry(json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Value = serde_json::from_str(json)?;
        let word = line.get("subtype").and_then(Value::as_str).unwrap_or_default();
        if matches!(word, "starting" | "reconnecting") {
            let attempt = line.get("attempt").and_then(Value::as_u64);
            turn.retry(Failure::of(FailureClass::Network, None, word), attempt, None);
        }
        Ok(())
    }
}

/// What a tool printed: its streams, a diff, or the JSON of its outcome without whole files.
fn output(details: &Value) -> String {
    let text = |key: &str| details.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let streams: Vec<&str> = ["stdout", "stderr"].into_iter().filter_map(text).collect();
    if !streams.is_empty() {
        return streams.join("\n");
    }
    if let Some(text) =
        ["diffString", "content", "output", "error", "errorMessage", "reason"].into_iter().find_map(text)
    {
        return text.to_owned();
    }
    match details {
        Value::Object(object) if object.is_empty() || object.contains_key("exitCode") => String::new(),
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| !key.ends_with("FullFileContent"));
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect()).to_string()
        }
        other => shape::flatten_value(other),
    }
}

impl Reader for Cursor {
    fn speaks(json: &str) -> bool {
        (DIALECT.speaks)(json) || Claude::speaks(json)
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let kind = shape::kind(json);
        if !matches!(kind.as_deref(), Some("assistant" | "result")) {
            self.collected.clear();
        }
        match kind.as_deref() {
            Some("assistant") => self.assistant(json, turn)?,
            Some("thinking") => Self::thinking(json, turn)?,
            Some("tool_call") => self.tool_call(json, turn)?,
            Some("retry" | "connection") => Self::retry(json, turn)?,
            Some("interaction_query") => {}
            _ => return self.claude.object(json, turn),
        }
        Ok(())
    }

    fn end(&mut self, exit: Option<Exit>, turn: &mut Turn) {
        self.claude.end(exit, turn);
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
