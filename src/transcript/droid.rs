//! Droid (Factory): whole messages, tools apart, one completion.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::side_effects::SideEffects;
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, Known, Status, Tag, Usage};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "droid",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: is_own,
    adapter: |context| Box::new(JsonLines::new(context, Exec::default())),
};

#[derive(Default)]
struct Exec {
    effects: SideEffects,
    /// When each running tool started.
    started: BTreeMap<String, u64>,
    /// The id of the last thought: it is reported twice.
    thought: Option<String>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    session_id: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    model: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    role: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default, rename = "toolName")]
    tool_name: Option<Text<'a>>,
    #[serde(borrow, default, rename = "toolId")]
    tool_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    source: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Text<'a>>,
    #[serde(borrow, default, rename = "finalText")]
    final_text: Option<Text<'a>>,
    #[serde(borrow, default)]
    result: Option<Text<'a>>,
    #[serde(default, rename = "is_error")]
    failed: Option<bool>,
    #[serde(default)]
    usage: Maybe<Tokens>,
    #[serde(default)]
    timestamp: Maybe<u64>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default, rename = "input_tokens")]
    input: u64,
    #[serde(default, rename = "output_tokens")]
    output: u64,
    #[serde(default, rename = "cache_read_input_tokens")]
    cache_read: u64,
    #[serde(default, rename = "cache_creation_input_tokens")]
    cache_write: u64,
}

/// How it begins when a command is on the user's or the organization's list.
const BLOCKED: &str = "Error: This command is blocked by";

impl Exec {
    fn tool_ended(&mut self, wire: &Wire<'_>, turn: &mut Turn) {
        let id = wire.id.as_deref().unwrap_or("call");
        if !turn.tools().is_open(id) {
            turn.tool_start(id, None, wire.tool_id.as_deref().unwrap_or("unknown"), None);
        }
        let error = wire.error.map(|raw| {
            let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
            value["message"].as_str().map_or_else(|| shape::flatten_value(&value), str::to_owned)
        });
        let denial = error.clone().filter(|message| message.starts_with(BLOCKED));
        turn.tool_output(id, None, wire.value.map(shape::flatten).or(error.clone()).unwrap_or_default());
        let status = match wire.is_error {
            Some(true) => Status::Fail,
            _ if error.is_some() => Status::Fail,
            Some(false) => Status::Ok,
            None => Status::Unknown,
        };
        let started = self.started.remove(id);
        let duration = wire.timestamp.0.zip(started).and_then(|(ended, started)| ended.checked_sub(started));
        turn.tool_end(id, None, status, duration);
        if let Some(effect) = self.effects.ended(id, status, None) {
            turn.meta(effect);
        }
        if let Some(message) = denial {
            let tool = wire.tool_id.as_deref().unwrap_or("unknown").to_owned();
            turn.meta(Known::Permission { input: None, tool, id: Some(id.to_owned()), message: Some(message) });
        }
    }
}

/// The last line of both formats.
fn finish(answer: Option<Text<'_>>, wire_failed: bool, usage: Option<&Tokens>, turn: &mut Turn) {
    let counted = usage.map(|tokens| tokens.input + tokens.output + tokens.cache_read);
    if let Some(tokens) = usage {
        // Cached tokens are counted apart.
        let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
        turn.usage(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(tokens.output),
            total_tokens: Some(prompt + tokens.output),
            cached_tokens: Some(tokens.cache_read),
            cache_write_tokens: Some(tokens.cache_write),
            model: turn.current_model().map(str::to_owned),
            ..Usage::default()
        });
    }
    let answer = answer.unwrap_or_default();
    if wire_failed {
        turn.text(Tag::Sys, None, &*answer);
        turn.failure(Failure::read(None, &*answer));
    } else {
        turn.answer(answer.0);
        if !turn.has_spoken() {
            turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
        } else if counted == Some(0) {
            // A cut stream is called a good end; only the missing count gives it away.
            turn.failure(Failure::of(FailureClass::Network, None, "the model's answer was cut"));
        }
    }
    turn.end(Some(turn.failed().is_none()), "completion");
}

/// True for an object that no other agent prints.
fn is_own(json: &str) -> bool {
    match shape::kind(json).as_deref() {
        Some("system") => json.contains("\"reasoning_effort\":"),
        Some("tool_call") => json.contains("\"toolId\":"),
        Some("completion") => json.contains("\"finalText\":"),
        Some("error") => json.contains("\"source\":\"agent_loop\""),
        _ => false,
    }
}

impl Reader for Exec {
    fn speaks(json: &str) -> bool {
        const KINDS: [&str; 7] = ["system", "message", "reasoning", "tool_call", "tool_result", "completion", "result"];
        is_own(json)
            || (json.contains("\"session_id\":")
                && shape::kind(json).is_some_and(|kind| KINDS.contains(&&*kind) || kind == "error"))
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let wire: Wire<'_> = serde_json::from_str(json)?;
        let known = ["system", "message", "reasoning", "tool_call", "tool_result", "error", "completion", "result"];
        if !known.contains(&&*wire.r#type) {
            return Err(Misread::Unknown);
        }
        turn.session(wire.session_id.0.as_deref().unwrap_or_default());
        match &*wire.r#type {
            "system" => turn.model(wire.model.0.as_deref().unwrap_or_default()),
            "message" => {
                let tag = match wire.role.0.as_deref() {
                    Some("assistant") => Tag::Ai,
                    Some("user") => Tag::Prompt,
                    _ => Tag::Sys,
                };
                turn.text(tag, None, wire.text.unwrap_or_default().0);
            }
            "reasoning" => {
                let id = wire.id.map(Text::into_string);
                if id.is_none() || id != self.thought {
                    turn.text(Tag::Think, None, wire.text.unwrap_or_default().0);
                }
                self.thought = id;
            }
            "tool_call" => {
                let id = wire.id.as_deref().unwrap_or("call");
                let name = wire.tool_name.or(wire.tool_id).map_or_else(|| "unknown".to_owned(), Text::into_string);
                let input = shape::input(wire.parameters);
                if let Some(time) = wire.timestamp.0 {
                    self.started.insert(id.to_owned(), time);
                }
                self.effects.called(id, &name, input.as_ref());
                turn.tool_start(id, None, name, input);
            }
            "tool_result" => self.tool_ended(&wire, turn),
            "error" => {
                let message = wire.message.0.unwrap_or_default();
                // The last error of a failed run only says that it failed.
                if wire.source.0.as_deref() != Some("cli") {
                    turn.failure(Failure::read(None, &*message));
                } else if turn.failed().is_none() {
                    turn.failure(Failure::of(FailureClass::Agent, None, &*message));
                }
            }
            "completion" => finish(wire.final_text, false, wire.usage.0.as_ref(), turn),
            _ => finish(wire.result, wire.failed == Some(true), wire.usage.0.as_ref(), turn),
        }
        Ok(())
    }
}
