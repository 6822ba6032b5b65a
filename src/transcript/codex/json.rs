//! Codex' JSON lines: items that start and complete, and one turn.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::router::Router;
use crate::event::{FailureClass, FileChange, Known, Object, Status, Tag, TodoItem, Usage};
use crate::process::Exit;
use crate::transcript::failure::Failure;
use crate::transcript::jsonl::{Misread, Reader};
use crate::transcript::shape::{self, Text};
use crate::transcript::turn::Turn;
use crate::transcript::{Context, todo, totals};

#[derive(Default)]
pub(crate) struct Items {
    router: Router,
    /// What the thread had used before: Codex reports the thread's total.
    before: Usage,
    todo: Vec<TodoItem>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    item: Option<Item<'a>>,
    #[serde(borrow, default)]
    thread_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<Tokens>,
}

/// Any item. Its id is not here: a web search gives it twice.
#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(borrow, default)]
    command: Option<Text<'a>>,
    #[serde(borrow, default)]
    aggregated_output: Option<Text<'a>>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    changes: Option<&'a RawValue>,
    #[serde(borrow, default)]
    server: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    query: Option<Text<'a>>,
    #[serde(borrow, default)]
    prompt: Option<Text<'a>>,
    #[serde(borrow, default)]
    agents_states: Option<&'a RawValue>,
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cached_input_tokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_write_input_tokens")]
    cache_write: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
    #[serde(rename = "reasoning_output_tokens")]
    reasoning: Option<u64>,
}

/// Where an item is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Updated,
    Completed,
}

impl Items {
    pub(crate) fn new(context: &Context) -> Self {
        Self { before: context.session_usage.clone(), ..Self::default() }
    }

    fn item(&mut self, id: &str, item: Item<'_>, phase: Phase, turn: &mut Turn) -> Result<(), Misread> {
        match &*item.r#type {
            "agent_message" | "assistant_message" => say(Tag::Ai, item.text, phase, turn),
            "reasoning" => say(Tag::Think, item.text, phase, turn),
            "command_execution" => command(id, item, phase, turn),
            "file_change" => patch(id, &item, phase, turn),
            "mcp_tool_call" => mcp(id, &item, phase, turn),
            "collab_tool_call" => collab(id, &item, phase, turn),
            "web_search" => {
                begin(id, "web_search", || object(json!({"query": item.query.as_deref()})), turn);
                if phase == Phase::Completed {
                    turn.tool_end(id, None, Status::Ok, None);
                }
            }
            "todo_list" => self.todo(item.items, turn),
            "error" => {
                let message = item.message.map(Text::into_string).unwrap_or_default();
                turn.meta(Known::Warning { message });
                return Ok(());
            }
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn todo(&mut self, items: Option<&RawValue>, turn: &mut Turn) {
        let list = items.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()).unwrap_or_default();
        let items = todo::items(&list);
        // Told again unchanged when the turn ends.
        if items != self.todo {
            self.todo.clone_from(&items);
            turn.meta(Known::Todo { items });
        }
    }
}

impl Reader for Items {
    const MISSING_END: Option<&'static str> = Some("ended without `turn.completed`");

    fn speaks(json: &str) -> bool {
        is_own(json) || shape::kind(json).is_some_and(|kind| kind == "error")
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let wire: Wire<'_> = serde_json::from_str(json)?;
        match &*wire.r#type {
            kind @ ("item.started" | "item.updated" | "item.completed") => {
                let item = wire.item.ok_or(Misread::Shape("an item event without an item"))?;
                let phase = match kind {
                    "item.started" => Phase::Started,
                    "item.updated" => Phase::Updated,
                    _ => Phase::Completed,
                };
                self.item(&item_id(json), item, phase, turn)?;
            }
            "thread.started" => turn.session(wire.thread_id.as_deref().unwrap_or_default()),
            "turn.started" => {}
            "turn.completed" => {
                if let Some(tokens) = &wire.usage {
                    turn.usage(totals::share(usage(tokens), &self.before));
                }
                let answered = turn.has_spoken();
                if !answered {
                    turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
                }
                turn.end(Some(answered), "turn.completed");
            }
            "turn.failed" => {
                let message = wire.error.map(error_message).or(wire.message.map(Text::into_string)).unwrap_or_default();
                turn.failure(failure(message));
                turn.end(Some(false), "turn.failed");
            }
            "error" => {
                let message = wire.message.map(Text::into_string).unwrap_or_default();
                match reconnecting(&message) {
                    Some((attempt, retried)) => turn.retry(retried, attempt, None),
                    None => turn.failure(failure(message)),
                }
            }
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn stderr(&mut self, line: &str, turn: &mut Turn) {
        self.router.line(line, turn);
    }

    fn end(&mut self, _exit: Option<Exit>, _turn: &mut Turn) {}
}

fn usage(tokens: &Tokens) -> Usage {
    let sum = tokens.input.zip(tokens.output).map(|(prompt, completion)| prompt + completion);
    Usage {
        prompt_tokens: tokens.input,
        completion_tokens: tokens.output,
        total_tokens: sum,
        cached_tokens: tokens.cached,
        cache_write_tokens: tokens.cache_write,
        reasoning_tokens: tokens.reasoning,
        ..Usage::default()
    }
}

/// True for an object that no other agent prints.
pub(crate) fn is_own(json: &str) -> bool {
    shape::kind(json).is_some_and(|kind| ["thread.", "turn.", "item."].iter().any(|family| kind.starts_with(family)))
}

/// The first id of a line's item.
fn item_id(json: &str) -> String {
    const BEFORE: &str = "\"item\":{\"id\":\"";
    let head = &json.as_bytes()[..json.len().min(80)];
    let quick = memchr::memmem::find(head, BEFORE.as_bytes()).and_then(|at| {
        let rest = &json[at + BEFORE.len()..];
        rest.find(['"', '\\']).filter(|&end| rest.as_bytes()[end] == b'"').map(|end| rest[..end].to_owned())
    });
    let slow = || {
        let value: Value = serde_json::from_str(json).ok()?;
        Some(value["item"]["id"].as_str()?.to_owned())
    };
    quick.or_else(slow).unwrap_or_else(|| "item".to_owned())
}

/// Messages come whole; an item that starts or changes has not been said yet.
fn say(tag: Tag, text: Option<Text<'_>>, phase: Phase, turn: &mut Turn) {
    if let (Phase::Completed, Some(text)) = (phase, text) {
        turn.text(tag, None, text.into_string());
    }
}

/// A call begins, unless it runs already: its end repeats everything.
fn begin(id: &str, name: &str, input: impl FnOnce() -> Option<Object>, turn: &mut Turn) {
    if !turn.tools().is_open(id) {
        turn.tool_start(id, None, name, input());
    }
}

fn command(id: &str, item: Item<'_>, phase: Phase, turn: &mut Turn) {
    begin(id, "shell", || object(json!({"command": item.command.as_deref()})), turn);
    if phase != Phase::Completed {
        return;
    }
    turn.tool_output(id, None, item.aggregated_output.map(Text::into_string).unwrap_or_default());
    let declined = item.status.as_deref() == Some("declined");
    let status = match (item.exit_code, item.status.as_deref()) {
        (_, Some("failed" | "declined")) => Status::Fail,
        (Some(0), _) => Status::Ok,
        (Some(_), _) => Status::Fail,
        (None, _) => Status::Unknown,
    };
    turn.tool_end(id, None, status, None);
    if declined {
        turn.meta(Known::Permission { input: None, tool: "shell".into(), id: Some(id.to_owned()), message: None });
    }
}

fn patch(id: &str, item: &Item<'_>, phase: Phase, turn: &mut Turn) {
    let list: Value = item.changes.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    begin(id, "apply_patch", || object(json!({"changes": list})), turn);
    if phase != Phase::Completed {
        return;
    }
    let status = finished(item);
    turn.tool_end(id, None, status, None);
    if status != Status::Fail {
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let change = |value: &Value| Some(FileChange { path: word(&value["path"])?, change: word(&value["kind"]) });
        let changes: Vec<FileChange> = list.as_array().into_iter().flatten().filter_map(change).collect();
        if !changes.is_empty() {
            turn.meta(Known::Files { changes });
        }
    }
}

fn mcp(id: &str, item: &Item<'_>, phase: Phase, turn: &mut Turn) {
    let word = |text: &Option<Text<'_>>| text.as_deref().unwrap_or("unknown").to_owned();
    let name = format!("mcp:{}/{}", word(&item.server), word(&item.tool));
    begin(id, &name, || shape::input(item.arguments), turn);
    if phase == Phase::Completed {
        let result: Value = item.result.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let said = shape::flatten_value(&result["content"]);
        let said = if said.is_empty() { item.error.map(error_message).unwrap_or_default() } else { said };
        turn.tool_output(id, None, said);
        turn.tool_end(id, None, if item.error.is_some() { Status::Fail } else { finished(item) }, None);
    }
}

/// Talk between agents. What the other agent says and does is not in the stream.
fn collab(id: &str, item: &Item<'_>, phase: Phase, turn: &mut Turn) {
    let name = format!("collab:{}", item.tool.as_deref().unwrap_or("unknown"));
    begin(id, &name, || object(json!({"prompt": item.prompt.as_deref()})), turn);
    if phase == Phase::Completed {
        let states: Object =
            item.agents_states.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let said: Vec<&str> = states.values().filter_map(|state| state["message"].as_str()).collect();
        turn.tool_output(id, None, said.join("\n"));
        turn.tool_end(id, None, finished(item), None);
    }
}

fn finished(item: &Item<'_>) -> Status {
    match item.status.as_deref() {
        Some("completed") => Status::Ok,
        Some("failed" | "declined") => Status::Fail,
        _ => Status::Unknown,
    }
}

/// The fields that are known.
fn object(value: Value) -> Option<Object> {
    match value {
        Value::Object(object) => Some(object.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        _ => None,
    }
}

/// `{"message": …}`, or a plain string.
fn error_message(raw: &RawValue) -> String {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    value["message"].as_str().map_or_else(|| shape::flatten_value(&value), str::to_owned)
}

/// A failure in Codex' words.
pub(crate) fn failure(message: String) -> Failure {
    if message.starts_with("Missing environment variable") {
        return Failure::of(FailureClass::Auth, None, message);
    }
    if message.contains("experiencing high demand") {
        return Failure::of(FailureClass::Overload, None, message);
    }
    Failure::read(None, message)
}

/// An error that is only the news of a retry: `Reconnecting... 1/5 (why)`.
pub(crate) fn reconnecting(message: &str) -> Option<(Option<u64>, Failure)> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let attempt = rest.split('/').next().and_then(|number| number.parse().ok());
    let mut failure = match rest.split_once('(') {
        Some((_, why)) => failure(why.trim_end_matches(')').to_owned()),
        None => Failure::of(FailureClass::Network, None, message),
    };
    // Whatever it is (a proxy that knows no web sockets answers 404), it is a connection that Codex makes again.
    if matches!(failure.class, FailureClass::Config | FailureClass::Agent) {
        failure.class = FailureClass::Network;
    }
    message.clone_into(&mut failure.message);
    Some((attempt, failure))
}
