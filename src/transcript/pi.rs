//! Pi: JSON lines that repeat the whole message with every fragment.
//!
//! Only the fragments are read. There is no terminal event, and the exit code is 0 whatever happened: the last
//! message's stop reason tells.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::claude::side_effects::SideEffects;
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, Known, Status, Tag, Usage};
use crate::process::Exit;

/// What replaces a tool's output when an extension of the user's blocks it and gives no reason.
const BLOCKED: &str = "Tool execution was blocked";

pub(crate) const DIALECT: Dialect = Dialect {
    name: "pi",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: |line| line.contains("\"cwd\":") && Stream::speaks(line),
    adapter: |context| Box::new(JsonLines::new(context, Stream::default())),
};

#[derive(Default)]
struct Stream {
    effects: SideEffects,
    /// Blocks of the message under way that came in fragments.
    begun: Vec<u64>,
    /// Those of them that were told to the end.
    told: Vec<u64>,
    /// What running tools have printed so far, by id.
    printed: Vec<(String, String)>,
    /// How the last message ended.
    last: Option<Last>,
    /// The session belongs to another directory: pi asks a question that nobody answers.
    elsewhere: bool,
}

struct Last {
    reason: String,
    failure: Option<Failure>,
    counted: bool,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    id: Maybe<Text<'a>>,
    #[serde(borrow, default, rename = "toolCallId")]
    call: Option<Text<'a>>,
    #[serde(borrow, default, rename = "toolName")]
    tool: Option<Text<'a>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<Printed<'a>>,
    #[serde(borrow, default, rename = "partialResult")]
    partial: Option<Printed<'a>>,
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(default)]
    attempt: Option<u64>,
    #[serde(default, rename = "delayMs")]
    delay: Option<u64>,
    #[serde(borrow, default, rename = "errorMessage")]
    error: Option<Text<'a>>,
    #[serde(borrow, default)]
    reason: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Printed<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, rename = "assistantMessageEvent")]
    event: Fragment<'a>,
}

#[derive(Deserialize)]
struct Fragment<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(default, rename = "contentIndex")]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Ended<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    model: Maybe<Text<'a>>,
    #[serde(default)]
    usage: Maybe<Tokens>,
    #[serde(borrow, default)]
    stop_reason: Maybe<Text<'a>>,
    #[serde(borrow, default, rename = "errorMessage")]
    error: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    text: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Maybe<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    #[serde(rename = "totalTokens")]
    total: Option<u64>,
    cost: Cost,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cost {
    total: Option<f64>,
}

impl Stream {
    fn fragment(&mut self, fragment: Fragment<'_>, turn: &mut Turn) {
        let (tag, phase) = match &*fragment.r#type {
            "text_start" | "text_delta" | "text_end" => (Tag::Ai, &fragment.r#type[5..]),
            "thinking_start" | "thinking_delta" | "thinking_end" => (Tag::Think, &fragment.r#type[9..]),
            // Calls are reported again when they run.
            _ => return,
        };
        match phase {
            "delta" => {
                if !self.begun.contains(&fragment.index) {
                    self.begun.push(fragment.index);
                }
                turn.fragment(tag, None, fragment.delta.unwrap_or_default().0);
            }
            "end" => {
                self.told.push(fragment.index);
                turn.whole(tag, None, fragment.content.unwrap_or_default().0);
            }
            _ => turn.message_over(tag, None),
        }
    }

    fn message_ended(&mut self, message: &Message<'_>, turn: &mut Turn) {
        match &*message.role {
            "user" => {
                turn.text(Tag::Prompt, None, message.content.map(shape::flatten).unwrap_or_default());
                return;
            }
            "assistant" => {}
            // Results of tools, which are reported by their own events.
            _ => return,
        }
        if let Some(model) = &message.model.0 {
            let provider = message.provider.0.as_deref().map(|provider| format!("{provider}/")).unwrap_or_default();
            turn.model(&format!("{provider}{}", &**model));
        }
        let blocks: Vec<Block<'_>> =
            message.content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        for (index, block) in (0u64..).zip(blocks) {
            let (tag, text) = match &*block.r#type {
                "text" => (Tag::Ai, block.text.0),
                "thinking" => (Tag::Think, block.thinking.0),
                _ => continue,
            };
            let text = text.unwrap_or_default().0;
            if self.told.contains(&index) {
            } else if self.begun.contains(&index) {
                turn.whole(tag, None, text);
            } else {
                turn.text(tag, None, text);
            }
        }
        self.begun.clear();
        self.told.clear();
        let tokens = message.usage.0.as_ref();
        if let Some(tokens) = tokens {
            let usage = usage(tokens, turn.current_model());
            turn.call(&usage);
            turn.usage(usage);
        }
        let reason = message.stop_reason.0.as_deref().unwrap_or_default().to_owned();
        let failure = (reason == "error")
            .then(|| Failure::read(None, message.error.0.as_deref().unwrap_or("the model's call failed")));
        // No retry heals this one.
        if let Some(failure) = failure.clone().filter(|failure| failure.class == FailureClass::Auth) {
            turn.failure(failure);
        }
        let counted = tokens.is_some_and(|tokens| tokens.input + tokens.output + tokens.cache_read > 0);
        self.last = Some(Last { reason, failure, counted });
    }

    /// Says what a tool has printed since the last time; pi repeats all of it.
    fn printed(&mut self, id: &str, all: &str, turn: &mut Turn) {
        let at = self.printed.iter().position(|(known, _)| known == id);
        let before = at.map_or("", |at| self.printed[at].1.as_str());
        match all.strip_prefix(before) {
            Some(rest) if before.is_empty() => turn.tool_output(id, None, rest),
            Some(rest) => turn.tool_output_fragment(id, None, rest),
            // Its beginning was cut off: reported again as a whole.
            None => turn.tool_output(id, None, all),
        }
        match at {
            Some(at) => all.clone_into(&mut self.printed[at].1),
            None => self.printed.push((id.to_owned(), all.to_owned())),
        }
    }
}

impl Reader for Stream {
    fn speaks(json: &str) -> bool {
        shape::kind(json).is_some_and(|kind| match &*kind {
            "session" => json.contains("\"cwd\":"),
            "message_update" => json.contains("\"assistantMessageEvent\":"),
            "tool_execution_start" | "tool_execution_update" | "tool_execution_end" => json.contains("\"toolCallId\":"),
            "message_start" | "message_end" => json.contains("\"role\":"),
            "agent_start" | "agent_end" | "turn_start" | "turn_end" | "auto_retry_start" | "auto_retry_end"
            | "compaction_start" => true,
            _ => false,
        })
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let kind = shape::kind(json).ok_or(Misread::Unknown)?;
        match &*kind {
            "message_update" => {
                let update: Update<'_> = serde_json::from_str(json)?;
                self.fragment(update.event, turn);
                return Ok(());
            }
            "message_end" => {
                let ended: Ended<'_> = serde_json::from_str(json)?;
                self.message_ended(&ended.message, turn);
                return Ok(());
            }
            "message_start" => {
                self.begun.clear();
                self.told.clear();
                return if json.ends_with('}') { Ok(()) } else { Err(Misread::Shape("broken JSON")) };
            }
            // Repetitions of what was reported.
            "agent_start" | "agent_end" | "turn_start" | "turn_end" | "queue_update" | "auto_retry_end"
                if json.ends_with('}') =>
            {
                return Ok(());
            }
            _ => {}
        }
        let wire: Wire<'_> = serde_json::from_str(json)?;
        let id = wire.call.as_deref().unwrap_or("call");
        let content = |printed: Option<Printed<'_>>| {
            printed.and_then(|printed| printed.content).map(shape::flatten).unwrap_or_default()
        };
        match &*wire.r#type {
            "session" => turn.session(wire.id.0.as_deref().unwrap_or_default()),
            "tool_execution_start" => {
                let input = shape::input(wire.args);
                let name = wire.tool.map_or_else(|| "unknown".to_owned(), Text::into_string);
                self.effects.called(id, &name, input.as_ref());
                turn.tool_start(id, None, name, input);
            }
            "tool_execution_update" => self.printed(id, &content(wire.partial), turn),
            "tool_execution_end" => {
                let output = content(wire.result);
                self.printed(id, &output, turn);
                self.printed.retain(|(known, _)| known != id);
                let status = match wire.is_error {
                    Some(true) => Status::Fail,
                    Some(false) => Status::Ok,
                    None => Status::Unknown,
                };
                turn.tool_end(id, None, status, None);
                if let Some(effect) = self.effects.ended(id, status, None) {
                    turn.meta(effect);
                }
                if status == Status::Fail && output == BLOCKED {
                    let tool = wire.tool.as_deref().unwrap_or("unknown").to_owned();
                    turn.meta(Known::Permission { input: None, tool, id: Some(id.to_owned()), message: None });
                }
            }
            "auto_retry_start" => {
                let held = self.last.as_mut().and_then(|last| last.failure.take());
                let failure = held.unwrap_or_else(|| Failure::read(None, wire.error.as_deref().unwrap_or_default()));
                turn.retry(failure, wire.attempt, wire.delay);
            }
            "compaction_start" | "compaction_end" => {
                let why = wire.reason.0.as_deref().unwrap_or_default();
                turn.text(Tag::Sys, None, format!("{}: {why}", kind.replace('_', " ")));
            }
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn stderr(&mut self, line: &str, _turn: &mut Turn) {
        self.elsewhere |= line.starts_with("Session found in different project");
    }

    fn end(&mut self, exit: Option<Exit>, turn: &mut Turn) {
        let Some(last) = self.last.take() else {
            if self.elsewhere {
                turn.failure(Failure::of(FailureClass::Config, None, "the session belongs to another directory"));
            }
            return;
        };
        let killed = exit.is_some_and(super::jsonl::was_stopped);
        match last.reason.as_str() {
            "error" => {
                if let Some(failure) = last.failure {
                    turn.failure(failure);
                }
                turn.end(Some(false), "error");
            }
            "aborted" => turn.end(Some(false), "aborted"),
            "length" => {
                turn.failure(Failure::of(FailureClass::AgentLimit, None, "the answer was cut at the output limit"));
                turn.end(Some(false), "length");
            }
            "stop" if killed => {}
            // Pi calls a cut stream a good end; only the missing count gives it away.
            "stop" if !last.counted => {
                turn.failure(Failure::of(FailureClass::Network, None, "the model's answer was cut"));
                turn.end(Some(false), "stop");
            }
            "stop" if !turn.has_spoken() => {
                turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
                turn.end(Some(false), "stop");
            }
            "stop" => turn.end(Some(true), "stop"),
            _ => {}
        }
    }
}

/// Cached tokens are counted apart.
fn usage(tokens: &Tokens, model: Option<&str>) -> Usage {
    let prompt = tokens.input + tokens.cache_read + tokens.cache_write;
    Usage {
        prompt_tokens: Some(prompt),
        completion_tokens: Some(tokens.output),
        total_tokens: tokens.total.or(Some(prompt + tokens.output)),
        cached_tokens: Some(tokens.cache_read),
        cache_write_tokens: Some(tokens.cache_write),
        cost_usd: tokens.cost.total.filter(|cost| *cost > 0.0),
        model: model.map(str::to_owned),
        reasoning_tokens: None,
    }
}
