//! Goose: messages in fragments, joined by their id, or one document at the end.
//!
//! It reports most failures as if the agent had said them, with exit code 0, and its session id only in the
//! banner before the first object.

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
use crate::process::Exit;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "goose",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: |line| Talk::speaks(line) && shape::kind(line).as_deref() != Some("error"),
    adapter: |context| {
        Box::new(JsonLines::new(context, Talk { before: context.session_usage.clone(), ..Talk::default() }))
    },
};

/// How goose begins a failure that it puts into the agent's mouth.
const ERROR: &str = "Ran into this error: ";
const EMPTY: &str = "The model returned an empty response.";

#[derive(Default)]
struct Talk {
    effects: SideEffects,
    /// The message that fragments continue.
    message: Option<String>,
    cut_at_limit: bool,
    approval_needed: Option<String>,
    /// What the session had used before: goose reports the session's total.
    before: Usage,
}

/// `message`: nearly every line.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Failed<'a> {
    #[serde(borrow)]
    error: Text<'a>,
}

/// The one document of `--output-format json`.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<Message<'a>>>,
    #[serde(default)]
    metadata: Maybe<Totals>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Maybe<Text<'a>>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    metadata: Maybe<Metadata<'a>>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    inference: Maybe<Inference<'a>>,
    #[serde(default, rename = "outputTokenLimitReached")]
    limit_reached: Maybe<bool>,
}

#[derive(Deserialize)]
struct Inference<'a> {
    #[serde(borrow, default, rename = "requestedModel")]
    model: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(borrow, default)]
    kind: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    msg: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_call: Option<Outcome<'a>>,
    #[serde(borrow, default)]
    tool_result: Option<Outcome<'a>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Totals {
    total_tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    status: Option<String>,
}

/// Whether a message comes in pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Fragments,
    Whole,
}

impl Talk {
    fn message(&mut self, message: Message<'_>, delivery: Delivery, turn: &mut Turn) {
        let id = message.id.0.map(Text::into_string);
        if id != self.message {
            turn.message_over(Tag::Ai, None);
            turn.message_over(Tag::Think, None);
            self.message = id;
        }
        if let Some(metadata) = message.metadata.0 {
            if let Some(model) = metadata.inference.0.and_then(|inference| inference.model.0) {
                turn.model(&model);
            }
            self.cut_at_limit |= metadata.limit_reached.0 == Some(true);
        }
        let agent = &*message.role == "assistant";
        for block in message.content {
            self.block(block, agent, delivery, turn);
        }
    }

    fn block(&mut self, block: Block<'_>, agent: bool, delivery: Delivery, turn: &mut Turn) {
        let mut say = |tag: Tag, text: Text<'_>| match delivery {
            Delivery::Fragments => turn.fragment(tag, None, text.0),
            Delivery::Whole => turn.text(tag, None, text.0),
        };
        match &*block.r#type {
            "text" => {
                let text = block.text.unwrap_or_default();
                if !agent {
                    turn.text(Tag::Prompt, None, text.0);
                } else if let Some(failure) = spoken_failure(&text) {
                    turn.text(Tag::Sys, None, text.0);
                    turn.failure(failure);
                } else {
                    say(Tag::Ai, text);
                }
            }
            "thinking" => say(Tag::Think, block.thinking.unwrap_or_default()),
            "toolRequest" => self.request(&block, turn),
            "toolResponse" => self.response(&block, turn),
            "error" => {
                let message = block.message.unwrap_or_default();
                let auth = block.kind.0.as_deref() == Some("authentication");
                turn.text(Tag::Sys, None, &*message);
                turn.failure(if auth { Failure::of(FailureClass::Auth, None, &*message) } else { failure(&message) });
            }
            "systemNotification" => {
                let message = block.msg.unwrap_or_default();
                turn.text(Tag::Sys, None, &*message);
                if message.starts_with("Unable to continue") {
                    turn.failure(Failure::of(FailureClass::Context, None, &*message));
                }
            }
            other => turn.unparsed(other, "unknown content"),
        }
    }

    fn request(&mut self, block: &Block<'_>, turn: &mut Turn) {
        let id = block.id.as_deref().unwrap_or("call");
        let Some(call) = &block.tool_call else { return };
        let value: Value = call.value.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let name = value["name"].as_str().unwrap_or("unknown");
        let input = value["arguments"].as_object().cloned();
        self.effects.called(id, name, input.as_ref());
        turn.tool_start(id, None, name, input);
        if &*call.status == "error" {
            turn.tool_output(id, None, call.error.map(shape::flatten).unwrap_or_default());
            turn.tool_end(id, None, Status::Fail, None);
        }
    }

    fn response(&mut self, block: &Block<'_>, turn: &mut Turn) {
        let id = block.id.as_deref().unwrap_or("call");
        let Some(result) = &block.tool_result else { return };
        // A refused request has been ended with its error.
        if !turn.tools().is_open(id) {
            return;
        }
        let value: Value = result.value.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let code = value["structuredContent"]["exit_code"].as_i64();
        let status = match (&*result.status, value["isError"].as_bool(), code) {
            ("error", _, _) | (_, Some(true), _) => Status::Fail,
            (_, _, Some(code)) if code != 0 => Status::Fail,
            ("success", _, _) => Status::Ok,
            _ => Status::Unknown,
        };
        let output = shape::flatten_value(&value["content"]);
        // In chat mode no tool runs, and the model gets an instruction instead.
        let skipped = output.contains("tool call was skipped in goose chat mode");
        // What a rule forbids is reported in the words for a person's refusal; a command that ran has a structure as well.
        let declined =
            value["structuredContent"].is_null() && output.starts_with("The user has declined to run this tool");
        let status = if skipped { Status::Fail } else { status };
        let name = turn.tools().name(id).unwrap_or("unknown").to_owned();
        turn.tool_output(
            id,
            None,
            if output.is_empty() { result.error.map(shape::flatten).unwrap_or_default() } else { output },
        );
        turn.tool_end(id, None, status, None);
        if let Some(effect) = self.effects.ended(id, status, None) {
            turn.meta(effect);
        }
        if skipped || declined {
            turn.meta(Known::Permission { input: None, tool: name, id: Some(id.to_owned()), message: None });
        }
    }

    fn complete(&mut self, totals: &Totals, turn: &mut Turn) {
        let total = Usage {
            prompt_tokens: totals.input_tokens,
            completion_tokens: totals.output_tokens,
            total_tokens: totals.total_tokens,
            cached_tokens: totals.cache_read_input_tokens,
            cache_write_tokens: totals.cache_write_input_tokens,
            model: turn.current_model().map(str::to_owned),
            ..Usage::default()
        };
        turn.usage(super::totals::share(total, &self.before));
        if turn.failed().is_some() {
        } else if self.cut_at_limit {
            turn.failure(Failure::of(FailureClass::AgentLimit, None, "the answer was cut at the output limit"));
        } else if totals.status.as_deref() == Some("error") {
            turn.failure(Failure::of(FailureClass::Agent, None, "goose ended with an error"));
        } else if totals.total_tokens == Some(0) {
            // A cut stream is called a good end; only the missing count gives it away.
            turn.failure(Failure::of(FailureClass::Network, None, "the model's answer was cut"));
        } else if !turn.has_spoken() {
            turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
        }
        turn.end(Some(turn.failed().is_none()), "complete");
    }
}

impl Reader for Talk {
    fn speaks(json: &str) -> bool {
        match shape::kind(json).as_deref() {
            Some("message") => json.contains("\"message\":{") && json.contains("\"userVisible\":"),
            Some("complete") => json.contains("\"total_tokens\":"),
            Some("error") => json.contains("\"error\":\""),
            None => json.contains("\"messages\"") && json.contains("\"agentVisible\""),
            _ => false,
        }
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        match shape::kind(json).as_deref() {
            Some("message") => {
                let line: Said<'_> = serde_json::from_str(json)?;
                self.message(line.message, Delivery::Fragments, turn);
            }
            Some("complete") => self.complete(&serde_json::from_str(json)?, turn),
            Some("error") => {
                let Failed { error } = serde_json::from_str(json)?;
                if &*error == "Headless run interrupted" {
                    turn.text(Tag::Sys, None, error.0);
                    turn.end(Some(false), "interrupted");
                } else {
                    turn.failure(failure(&error));
                }
            }
            None => {
                let document: Document<'_> = serde_json::from_str(json)?;
                for message in document.messages.ok_or(Misread::Unknown)? {
                    self.message(message, Delivery::Whole, turn);
                }
                if let Some(totals) = document.metadata.0 {
                    self.complete(&totals, turn);
                }
            }
            Some(_) => return Err(Misread::Unknown),
        }
        Ok(())
    }

    /// Three lines around a goose: model, session id, readiness.
    fn banner(&mut self, line: &str, turn: &mut Turn) -> bool {
        let line = line.trim();
        if line.starts_with("__( O)>") {
            if let Some(model) = line.rsplit(" · ").next().and_then(|words| words.split_whitespace().nth(1)) {
                turn.model(model);
            }
            return true;
        }
        if let Some(rest) = line.strip_prefix("\\____)") {
            turn.session(rest.split_whitespace().next().unwrap_or_default());
            return true;
        }
        // In the text format a failure looks like the agent's words, too.
        if let Some(failure) = spoken_failure(line) {
            turn.failure(failure);
            return true;
        }
        (line.starts_with("L L") && line.ends_with("goose is ready"))
            || line.starts_with("Please retry if you think this is")
    }

    fn stderr(&mut self, line: &str, _turn: &mut Turn) {
        if line.contains("Tool approval required in non-interactive mode") {
            self.approval_needed = Some(line.trim_start_matches("Error: ").to_owned());
        }
    }

    fn end(&mut self, _exit: Option<Exit>, turn: &mut Turn) {
        if let Some(message) = self.approval_needed.take() {
            let id = turn.tools().last_open().map(str::to_owned);
            let tool = id.as_deref().and_then(|id| turn.tools().name(id)).unwrap_or("unknown").to_owned();
            turn.meta(Known::Permission { input: None, tool, id, message: Some(message.clone()) });
            turn.failure(Failure::of(FailureClass::Permission, None, message));
        }
    }
}

/// A failure that goose tells as a message of the agent.
fn spoken_failure(text: &str) -> Option<Failure> {
    if text.starts_with(ERROR) {
        return Some(failure(text));
    }
    text.starts_with(EMPTY).then(|| Failure::of(FailureClass::Agent, None, text))
}

/// `Ran into this error: Kind: words`.
fn failure(message: &str) -> Failure {
    let said = message.strip_prefix(ERROR).unwrap_or(message);
    let class = match said.split_once(": ").map(|(kind, _)| kind) {
        Some("Authentication error") => FailureClass::Auth,
        Some("Rate limit exceeded") => FailureClass::RateLimit,
        Some("Server error") => FailureClass::Overload,
        Some("Network error") => FailureClass::Network,
        Some("Context length exceeded" | "Context limit exceeded") => FailureClass::Context,
        _ => return Failure::read(None, message),
    };
    Failure::of(class, super::failure::status_in(said), message)
}
