//! Claude's dialect in all its output formats, and the agents that speak it with small differences.
//!
//! The text of a message comes up to three times: in fragments, whole, and as the result. It must come out
//! once. What the CLI itself says through the model's mouth (`<synthetic>`) is never the agent's word.

mod result;
pub(crate) mod side_effects;
mod system;
mod wire;

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::reset::{self, Reset};
use super::shape::{self, Text};
use super::tail::Tail;
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, Status, Tag, Usage};
use crate::process::Exit;
pub(crate) use result::Cached;
use result::Tokens;
use side_effects::SideEffects;
use system::named_failure;
use wire::{Block, Message, RawEvent, Spoken, Streamed};

/// What all agents that speak like Claude can tell.
pub(crate) const CAPABILITIES: Capabilities =
    Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true };

pub(crate) const DIALECT: Dialect = Dialect {
    name: "claude",
    capabilities: CAPABILITIES,
    messages: Messages::Whole,
    speaks: Claude::speaks,
    adapter: |context| Box::new(JsonLines::new(context, Claude::new(&CLAUDE))),
};

/// How an agent differs from Claude Code.
pub(crate) struct Flavour {
    /// Whose words the text in a `user` line is.
    pub user_text: Tag,
    pub usage: UsageFrom,
    pub cached: Cached,
    pub own_errors: OwnErrors,
}

/// How the CLI reports an error through the model's mouth.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnErrors {
    /// As a message of the model `<synthetic>`.
    Synthetic,
    /// As `[API Error: …]` at the end of a message that cost nothing.
    Bracketed,
}

/// Where the numbers are right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageFrom {
    /// The result line has the total; messages count only when none comes.
    Result,
    /// Each message has its share.
    Messages,
}

const CLAUDE: Flavour =
    Flavour { user_text: Tag::Sys, usage: UsageFrom::Result, cached: Cached::Apart, own_errors: OwnErrors::Synthetic };

/// Whose message a line has.
#[derive(Clone, Copy)]
enum Speaker<'a> {
    Agent,
    /// The other side: tool results, with a rich copy of the result, and text that the CLI puts in.
    User(Option<&'a RawValue>),
}

/// Reads Claude's objects.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the stream")]
pub(crate) struct Claude {
    flavour: &'static Flavour,
    /// What the CLI last said through the model's mouth.
    synthetic: Option<String>,
    compacted: bool,
    effects: SideEffects,
    /// What each model has cost, up to the last result.
    totals: BTreeMap<String, Usage>,
    /// Shares of messages that no result has counted yet.
    unreported: Usage,
    /// The stream began as Claude's own does.
    introduced: bool,
    /// A `message_stop` brought a message: the last event of some wrappers.
    last_message: bool,
    /// ralph itself wrote the stream: what Claude's format cannot say is beside it, and nothing is to be guessed.
    exact: bool,
}

impl Claude {
    /// A reader for an agent of this flavour.
    pub(crate) fn new(flavour: &'static Flavour) -> Self {
        Self {
            flavour,
            synthetic: None,
            compacted: false,
            effects: SideEffects::default(),
            totals: BTreeMap::new(),
            unreported: Usage::default(),
            introduced: false,
            last_message: false,
            exact: false,
        }
    }

    fn streamed(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Streamed<'_> = serde_json::from_str(json)?;
        self.raw_event(line.event, line.parent_tool_use_id.as_deref(), turn);
        Ok(())
    }

    /// An event of the model's API.
    fn raw_event(&mut self, event: RawEvent<'_>, parent: Option<&str>, turn: &mut Turn) {
        match event.r#type.as_deref() {
            Some("content_block_delta") => {
                let Some(delta) = event.delta else { return };
                if let Some(text) = delta.text {
                    let tag = if self.is_own_error(&text) { Tag::Sys } else { Tag::Ai };
                    turn.fragment(tag, parent, text.0);
                } else if let Some(thinking) = delta.thinking {
                    turn.fragment(Tag::Think, parent, thinking.0);
                }
            }
            // The message may be repeated before or after the end of its block.
            Some("content_block_start") => over(turn, parent),
            Some("message_start") => turn.messages_over(parent),
            Some("message_stop") => {
                // Wrappers put the message into it; its fragments may have been said.
                if let Some(message) = event.message {
                    self.last_message = true;
                    self.blocks(message, parent, Speaker::Agent, turn);
                }
                turn.messages_over(parent);
            }
            Some("message_delta") if self.flavour.usage == UsageFrom::Result => {
                let usage = self.share(event.usage, turn);
                self.unreported.add(&usage);
            }
            Some("error") => {
                let message = event.error.map(shape::flatten).unwrap_or_default();
                turn.text(Tag::Sys, parent, message);
            }
            _ => {}
        }
    }

    fn assistant(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Spoken<'_> = serde_json::from_str(json)?;
        session(line.session_id.as_ref(), turn);
        let parent = line.parent_tool_use_id.as_deref();
        let message = line.message;
        if message.model.as_deref() == Some("<synthetic>") {
            // Where ralph wrote the stream, the failure has come as an event already.
            if self.exact {
                return Ok(());
            }
            self.synthetic(&message, line.error.0.as_deref(), parent, turn);
        } else {
            let usage = self.share(message.usage, turn);
            if parent.is_none() && !self.exact {
                turn.call(&usage);
            }
            if self.flavour.usage == UsageFrom::Messages || self.flavour.cached == Cached::Included {
                self.unreported.add(&usage);
            }
            self.blocks(message, parent, Speaker::Agent, turn);
        }
        Ok(())
    }

    /// The CLI speaks through the model's mouth, mostly to report an error.
    fn synthetic(&mut self, message: &Message<'_>, error: Option<&str>, parent: Option<&str>, turn: &mut Turn) {
        let text: Vec<&str> = message.content.0.iter().filter_map(|block| block.text.as_deref()).collect();
        let text = text.join("\n");
        turn.text(Tag::Sys, parent, text.as_str());
        if parent.is_none() {
            if let Some(error) = error {
                turn.failure(named_failure(error, None, &text));
            } else if message.stop_reason.as_deref() == Some("refusal") {
                turn.failure(Failure::of(FailureClass::Refusal, None, text.as_str()));
            }
            self.synthetic = Some(text);
        }
    }

    fn user(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Spoken<'_> = serde_json::from_str(json)?;
        session(line.session_id.as_ref(), turn);
        let parent = line.parent_tool_use_id.as_deref();
        if line.is_replay == Some(true) {
            for block in line.message.content.0 {
                turn.text(Tag::User, parent, block.text.unwrap_or_default().0);
            }
        } else {
            self.blocks(line.message, parent, Speaker::User(line.tool_use_result), turn);
        }
        Ok(())
    }

    /// The content of a message.
    fn blocks(&mut self, message: Message<'_>, parent: Option<&str>, speaker: Speaker<'_>, turn: &mut Turn) {
        for block in message.content.0 {
            match block.r#type.as_deref() {
                Some("thinking") => turn.whole(Tag::Think, parent, block.thinking.unwrap_or_default().0),
                Some("tool_use" | "server_tool_use" | "mcp_tool_use") => self.tool_use(&block, parent, turn),
                Some(kind) if kind.ends_with("tool_result") => {
                    let rich = if let Speaker::User(rich) = speaker { rich } else { None };
                    self.tool_result(block, parent, rich, turn);
                }
                _ => {
                    let Some(text) = block.text else { continue };
                    match speaker {
                        Speaker::Agent => self.words(text, parent, turn),
                        Speaker::User(_) if parent.is_some() => turn.text(Tag::Sys, parent, text.0),
                        Speaker::User(_) => turn.text(self.flavour.user_text, None, text.0),
                    }
                }
            }
        }
    }

    fn words(&mut self, text: Text<'_>, parent: Option<&str>, turn: &mut Turn) {
        if self.flavour.own_errors == OwnErrors::Bracketed
            && let Some(at) = text.rfind("[API Error: ").filter(|&at| self.is_own_error(&text[at..]))
        {
            if at > 0 {
                turn.whole(Tag::Ai, parent, &text[..at]);
            }
            turn.whole(Tag::Sys, parent, &text[at..]);
            self.synthetic = Some(text[at..].to_owned());
        } else {
            turn.whole(Tag::Ai, parent, text.0);
        }
    }

    fn is_own_error(&self, text: &str) -> bool {
        self.flavour.own_errors == OwnErrors::Bracketed && text.starts_with("[API Error: ") && text.ends_with(']')
    }

    fn tool_use(&mut self, block: &Block<'_>, parent: Option<&str>, turn: &mut Turn) {
        let (Some(id), name) = (block.id.as_deref(), block.name.as_deref().unwrap_or("unknown")) else { return };
        let input = shape::input(block.input);
        if !self.exact {
            self.effects.called(id, name, input.as_ref());
        }
        turn.tool_start(id, parent, name, input);
    }

    fn tool_result(&mut self, block: Block<'_>, parent: Option<&str>, rich: Option<&RawValue>, turn: &mut Turn) {
        let Some(id) = block.tool_use_id.as_deref() else { return };
        let mut output = block.content.into_string();
        // Long output is cut for the model; the rich copy has all of it.
        if output.starts_with("<persisted-output>")
            && let Some(full) = rich.and_then(|rich| serde_json::from_str::<Value>(rich.get()).ok())
            && let Some(text) = full.get("stdout").and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            text.clone_into(&mut output);
        }
        turn.tool_output(id, parent, output);
        let status = match block.is_error {
            Some(true) => Status::Fail,
            _ if self.exact && block.status.0.as_deref() == Some("unknown") => Status::Unknown,
            _ => Status::Ok,
        };
        let duration = block.duration_ms.0.filter(|_| self.exact).or_else(|| self.effects.duration(id, rich));
        turn.tool_end(id, parent, status, duration);
        if let Some(known) = self.effects.ended(id, status, rich) {
            turn.meta(known);
        }
    }

    /// What a message says that it took.
    fn share(&self, usage: Option<&RawValue>, turn: &Turn) -> Usage {
        let tokens = usage.and_then(|raw| serde_json::from_str::<Tokens>(raw.get()).ok());
        let model = || turn.current_model().map(str::to_owned);
        tokens.map(|tokens| tokens.usage(self.flavour.cached, model())).unwrap_or_default()
    }
}

impl Reader for Claude {
    fn speaks(json: &str) -> bool {
        matches!(
            shape::kind(json).as_deref(),
            Some(
                "system"
                    | "assistant"
                    | "user"
                    | "result"
                    | "stream_event"
                    | "rate_limit_event"
                    | "content_block_delta"
                    | "content_block_start"
                    | "content_block_stop"
                    | "message_start"
                    | "message_delta"
                    | "message_stop"
            )
        )
    }

    /// Known by the first bytes: there are thousands of them.
    fn changes_nothing(line: &[u8]) -> bool {
        const STREAMED: &[u8] = b"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":";
        const SYSTEM: &[u8] = b"{\"type\":\"system\",\"subtype\":\"t";
        if let Some(rest) = line.strip_prefix(STREAMED) {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            return rest[digits..].starts_with(b",\"delta\":{\"type\":\"input_json_delta\"")
                || rest[digits..].starts_with(b",\"delta\":{\"type\":\"signature_delta\"");
        }
        let Some(rest) = line.strip_prefix(SYSTEM) else { return false };
        [&b"hinking_tokens\""[..], b"ask_progress\"", b"ask_started\"", b"ask_updated\"", b"ask_notification\""]
            .iter()
            .any(|subtype| rest.starts_with(subtype))
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        match shape::kind(json).as_deref() {
            Some("stream_event") => self.streamed(json, turn)?,
            Some("assistant") => self.assistant(json, turn)?,
            Some("user") => self.user(json, turn)?,
            Some("system") => self.system(json, turn)?,
            Some("result") => self.result(json, turn)?,
            Some("rate_limit_event") => Self::limited(json, turn)?,
            Some(
                "content_block_delta"
                | "content_block_start"
                | "content_block_stop"
                | "message_start"
                | "message_delta"
                | "message_stop",
            ) => self.raw_event(serde_json::from_str(json)?, None, turn),
            Some(
                "ping"
                | "tool_progress"
                | "tool_use_summary"
                | "auth_status"
                | "prompt_suggestion"
                | "control_request"
                | "control_response"
                | "control_cancel_request"
                | "keep_alive",
            ) => {}
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn stderr(&mut self, line: &str, turn: &mut Turn) {
        // `Retrying in 120s (attempt 2/10): [API Error: …]`
        if let Some((_, rest)) = line.split_once("Retrying in ")
            && let Some((delay, rest)) = rest.split_once(" (attempt ")
            && let Some((attempts, message)) = rest.split_once("): ")
        {
            let delay = match reset::find(&format!("retry in {delay}")) {
                Some(Reset::After(milliseconds)) => Some(milliseconds),
                _ => None,
            };
            let attempt = attempts.split('/').next().and_then(|number| number.parse().ok());
            turn.retry(Failure::read(None, message), attempt, delay);
        }
    }

    fn end(&mut self, exit: Option<Exit>, turn: &mut Turn) {
        turn.usage(std::mem::take(&mut self.unreported));
        // A wrapper that only prints text says in it why it failed. Claude itself has better ways.
        let wrapper = !self.introduced && !turn.judged() && turn.failed().is_none();
        if wrapper && self.last_message && exit.is_some_and(Exit::success) {
            turn.end(None, "message_stop");
        }
        if let Some(exit) = exit.filter(|exit| wrapper && !exit.success()) {
            let mut tail = Tail::default();
            turn.last_words().lines().for_each(|line| tail.push(line));
            if let Some(failure) = tail.failure(exit, None).filter(|failure| failure.class != FailureClass::Agent) {
                turn.failure(failure);
            }
        }
    }
}

/// What is said next is a new message.
fn over(turn: &mut Turn, parent: Option<&str>) {
    turn.message_over(Tag::Ai, parent);
    turn.message_over(Tag::Think, parent);
}

fn session(id: Option<&Text<'_>>, turn: &mut Turn) {
    if let Some(id) = id {
        turn.session(id);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
