//! Cline: JSON lines of hooks and agent events, the session id in none of them.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::claude::side_effects::SideEffects;
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, Known, Status, Tag, Usage};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "cline",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: false, session: false },
    messages: Messages::Whole,
    speaks: Run::speaks,
    adapter: |context| Box::new(JsonLines::new(context, Run::default())),
};

#[derive(Default)]
struct Run {
    effects: SideEffects,
    /// Running tools that have printed.
    printed: Vec<String>,
    /// What the run has cost up to the last report.
    cost: f64,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    event: Option<Event<'a>>,
    #[serde(borrow, default, rename = "finishReason")]
    finish: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    text: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    model: Maybe<Model<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    content_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    update: Maybe<Update<'a>>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    duration_ms: Maybe<u64>,
    #[serde(default)]
    recoverable: Maybe<bool>,
    #[serde(borrow, default)]
    error_class: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
    #[serde(default)]
    total_cost: Option<f64>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, default)]
    chunk: Option<Text<'a>>,
}

impl Run {
    fn event(&mut self, event: Event<'_>, turn: &mut Turn) -> Result<(), Misread> {
        let content = event.content_type.as_deref();
        match (&*event.r#type, content) {
            ("content_start", Some("text")) => turn.fragment(Tag::Ai, None, event.text.unwrap_or_default().0),
            ("content_start", Some("reasoning")) => {
                turn.fragment(Tag::Think, None, event.reasoning.unwrap_or_default().0);
            }
            ("content_end", Some("text")) => turn.whole(Tag::Ai, None, event.text.unwrap_or_default().0),
            ("content_end", Some("reasoning")) => turn.whole(Tag::Think, None, event.reasoning.unwrap_or_default().0),
            ("content_start", Some("tool")) => {
                let input = shape::input(event.input);
                let id = event.tool_call_id.as_deref().unwrap_or("call");
                let name = event.tool_name.map_or_else(|| "unknown".to_owned(), Text::into_string);
                self.effects.called(id, &name, input.as_ref());
                turn.tool_start(id, None, name, input);
            }
            ("content_update", Some("tool")) => {
                let id = event.tool_call_id.as_deref().unwrap_or("call");
                if let Some(chunk) = event.update.0.and_then(|update| update.chunk).filter(|chunk| !chunk.is_empty()) {
                    if !self.printed.iter().any(|known| known == id) {
                        self.printed.push(id.to_owned());
                    }
                    turn.tool_output_fragment(id, None, chunk.0);
                }
            }
            ("content_end", Some("tool")) => self.tool_ended(&event, turn),
            ("usage", _) => self.usage(&event, turn),
            ("error", _) => error(&event, turn),
            ("notice", _) => turn.text(Tag::Sys, None, event.message.unwrap_or_default().0),
            ("content_update" | "iteration_start" | "iteration_end" | "done", _) => {}
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn tool_ended(&mut self, event: &Event<'_>, turn: &mut Turn) {
        let id = event.tool_call_id.as_deref().unwrap_or("call");
        let name = event.tool_name.as_deref().unwrap_or("unknown");
        if !turn.tools().is_open(id) {
            turn.tool_start(id, None, name, None);
        }
        let output: Value = event.output.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let error = event.error.map(shape::flatten);
        let printed = self.printed.iter().position(|known| known == id).map(|at| self.printed.remove(at)).is_some();
        if !printed {
            turn.tool_output(id, None, words(&output));
        }
        let denial = output["error"].as_str().or(error.as_deref()).filter(|text| text.contains("requires approval"));
        let status = if error.is_some() || failed(&output) { Status::Fail } else { Status::Ok };
        turn.tool_end(id, None, status, event.duration_ms.0);
        if let Some(effect) = self.effects.ended(id, status, None) {
            turn.meta(effect);
        }
        if let Some(message) = denial {
            let message = Some(message.to_owned());
            turn.meta(Known::Permission { input: None, tool: name.to_owned(), id: Some(id.to_owned()), message });
        }
    }

    /// One call of the model; only the cost is a total.
    fn usage(&mut self, event: &Event<'_>, turn: &mut Turn) {
        let total = event.total_cost.unwrap_or(0.0);
        let cost = (total - self.cost).max(0.0);
        self.cost = self.cost.max(total);
        let sum = event.input_tokens.zip(event.output_tokens).map(|(prompt, completion)| prompt + completion);
        let usage = Usage {
            prompt_tokens: event.input_tokens,
            completion_tokens: event.output_tokens,
            total_tokens: sum,
            cached_tokens: event.cache_read_tokens,
            cache_write_tokens: event.cache_write_tokens,
            cost_usd: (cost > 0.0).then_some(cost),
            ..Usage::default()
        };
        turn.call(&usage);
        turn.usage(usage);
    }
}

impl Reader for Run {
    fn speaks(json: &str) -> bool {
        let own = |kind: &str| matches!(kind, "agent_event" | "hook_event" | "run_result" | "run_aborted");
        json.starts_with("{\"ts\":") && shape::kind(json).is_some_and(|kind| own(&kind))
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let wire: Wire<'_> = serde_json::from_str(json)?;
        match &*wire.r#type {
            "agent_event" => {
                let event = wire.event.ok_or(Misread::Shape("an event without its content"))?;
                self.event(event, turn)?;
            }
            "run_result" => {
                if let Some(model) = wire.model.0.and_then(|model| model.id) {
                    turn.model(&model);
                }
                let reason = wire.finish.0.as_deref().unwrap_or("unknown").to_owned();
                if reason == "completed" {
                    turn.answer(wire.text.0.unwrap_or_default().0);
                } else if turn.failed().is_none() {
                    turn.failure(Failure::of(FailureClass::Agent, None, reason.as_str()));
                }
                turn.end(Some(reason == "completed"), &reason);
            }
            "run_aborted" => turn.text(Tag::Sys, None, wire.message.0.unwrap_or_default().0),
            "hook_event" => {}
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    /// Fatal errors are reported there as JSON.
    fn stderr(&mut self, line: &str, turn: &mut Turn) {
        if let Ok(wire) = serde_json::from_str::<Wire<'_>>(line)
            && &*wire.r#type == "error"
            && let Some(message) = wire.message.0
            && turn.failed().is_none()
        {
            turn.failure(failure(None, &message));
        }
    }
}

/// What a tool gave back: a list of `{query, result}`, one of them, or `{error}`.
fn words(output: &Value) -> String {
    match output {
        Value::Array(items) => items.iter().map(words).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Object(object) => {
            let text = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            match (text("result"), text("error")) {
                (Some(result), Some(error)) => format!("{result}\n{error}"),
                (Some(text), None) | (None, Some(text)) => text.to_owned(),
                (None, None) if object.contains_key("success") => String::new(),
                (None, None) => shape::flatten_value(output),
            }
        }
        other => shape::flatten_value(other),
    }
}

fn failed(output: &Value) -> bool {
    match output {
        Value::Array(items) => items.iter().any(failed),
        Value::Object(object) => {
            object.get("success") == Some(&Value::Bool(false))
                || (object.contains_key("error") && !object.contains_key("success"))
        }
        _ => false,
    }
}

fn error(event: &Event<'_>, turn: &mut Turn) {
    let error: Value = event.error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let message = error["message"].as_str().map_or_else(|| shape::flatten_value(&error), str::to_owned);
    if event.recoverable.0 == Some(true) {
        turn.meta(Known::Warning { message });
    } else if error["name"] == "ContextWindowOverflowError" {
        turn.failure(Failure::of(FailureClass::Context, None, message));
    } else {
        turn.failure(failure(event.error_class.0.as_deref(), &message));
    }
}

fn failure(class: Option<&str>, message: &str) -> Failure {
    match class {
        Some("auth") => Failure::of(FailureClass::Auth, None, message),
        _ if message.contains("maximum output token limit") => Failure::of(FailureClass::AgentLimit, None, message),
        _ => Failure::read(None, message),
    }
}
