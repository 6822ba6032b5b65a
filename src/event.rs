//! Canonical events: the vocabulary of the whole program.
//!
//! Their JSON is exactly RTF1's, so a journal, `--output json`, an external adapter and an RTF1 agent
//! all speak the same language. This file knows nobody and must never do I/O.

mod meta;
mod wire;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use meta::FailureClass;
pub use meta::FileChange;
pub use meta::Known;
pub use meta::Meta;
pub use meta::Quota;
pub use meta::TodoItem;
pub use meta::TodoStatus;
pub(crate) use meta::denied;
pub(crate) use wire::SchemaError;
pub use write::{write_string, write_value};

/// A JSON object, in the order it was written.
pub type Object = Map<String, Value>;

/// A topic and what is said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topic {
    /// Such as `build.done`.
    pub topic: String,
    /// Any text.
    #[serde(default)]
    pub payload: String,
}

/// One thing an agent said or did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Words, on one of the channels.
    Text {
        /// Who speaks.
        tag: Tag,
        /// What it printed.
        text: String,
        /// True: a fragment that continues the open message of its tag.
        #[serde(skip_serializing_if = "is_false")]
        delta: bool,
        /// The tool call of the sub-agent that speaks.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call begins.
    ToolStart {
        /// The call.
        tool: ToolStart,
        /// The tool call of the sub-agent that makes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool printed something.
    ToolOutput {
        /// Which call.
        tool: ToolRef,
        /// What was said.
        text: String,
        /// True: continues the output before it without a line break.
        #[serde(skip_serializing_if = "is_false")]
        delta: bool,
        /// The tool call of the sub-agent it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call is over.
    ToolEnd {
        /// Which call, and how it went.
        tool: ToolEnd,
        /// The tool call of the sub-agent it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// Tokens and money; several of them add up.
    Usage {
        /// The amounts.
        usage: Usage,
    },
    /// Everything else, by `kind`.
    Meta {
        /// The facts; [`Known`] lists the kinds that ralph understands.
        meta: Meta,
    },
}

/// The channel of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tag {
    /// The agent's own words.
    Ai,
    /// The agent's reasoning.
    Think,
    /// The system around the agent: banners, warnings, injected text, stderr.
    Sys,
    /// Loose tool output that belongs to no known call.
    Tool,
    /// An echo of the prompt.
    Prompt,
    /// A human's words.
    User,
}

impl Tag {
    /// All tags, in the order documents list them.
    pub const ALL: [Self; 6] = [Self::Ai, Self::Think, Self::Sys, Self::Tool, Self::Prompt, Self::User];

    /// The tag as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ai => "AI",
            Self::Think => "THINK",
            Self::Sys => "SYS",
            Self::Tool => "TOOL",
            Self::Prompt => "PROMPT",
            Self::User => "USER",
        }
    }
}

/// The beginning of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolStart {
    /// Stable within the iteration.
    pub id: String,
    /// The tool's name as the agent calls it.
    pub name: String,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Object>,
}

/// Names a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolRef {
    /// The id of its start.
    pub id: String,
}

/// The end of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolEnd {
    /// The id of its start.
    pub id: String,
    /// How it went.
    pub status: Status,
    /// How long it took, when the agent says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// How a tool call went. A failed command is never `ok`; what the agent hides is `unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It worked.
    Ok,
    /// It did not.
    Fail,
    /// Unknown.
    Unknown,
}

/// Tokens and money. Missing is unknown, never zero. Several events of an iteration add up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent to the model, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens the model wrote, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The model they were spent on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The part of `prompt_tokens` that was read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The part of `prompt_tokens` that was written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `completion_tokens` that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Money, as the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Adds another report. A number that one side does not know stays what the other says.
    pub fn add(&mut self, other: &Self) {
        fn sum(into: &mut Option<u64>, from: Option<u64>) {
            if let Some(more) = from {
                *into = Some(into.unwrap_or(0).saturating_add(more));
            }
        }
        sum(&mut self.prompt_tokens, other.prompt_tokens);
        sum(&mut self.completion_tokens, other.completion_tokens);
        sum(&mut self.total_tokens, other.total_or_sum());
        sum(&mut self.cached_tokens, other.cached_tokens);
        sum(&mut self.cache_write_tokens, other.cache_write_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        if let Some(more) = other.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + more);
        }
        if other.model.is_some() {
            self.model.clone_from(&other.model);
        }
    }

    /// The total as reported, or the sum of both sides when both are known.
    pub fn total_or_sum(&self) -> Option<u64> {
        self.total_tokens.or_else(|| Some(self.prompt_tokens?.saturating_add(self.completion_tokens?)))
    }

    /// True when nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self { model: self.model.clone(), ..Self::default() }
    }
}

/// Where an agent's output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output: the transcript.
    Stdout,
    /// Standard error: shown and kept, searched for failures, never for completion.
    Stderr,
}

/// What makes one message of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// A run of consecutive AI texts, each a line: the dialect has no messages of its own.
    Lines,
    /// The dialect's own: a text, or a run of fragments.
    Whole,
}

impl Event {
    /// A whole message.
    pub fn text(tag: Tag, text: impl Into<String>) -> Self {
        Self::Text { tag, text: text.into(), delta: false, parent: None }
    }

    /// A fragment of a message.
    pub fn delta(tag: Tag, text: impl Into<String>) -> Self {
        Self::Text { tag, text: text.into(), delta: true, parent: None }
    }

    /// The beginning of a tool call.
    pub fn tool_start(id: impl Into<String>, name: impl Into<String>, input: Option<Object>) -> Self {
        Self::ToolStart { tool: ToolStart { id: id.into(), name: name.into(), input }, parent: None }
    }

    /// Output of a tool.
    pub fn tool_output(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::ToolOutput { tool: ToolRef { id: id.into() }, text: text.into(), delta: false, parent: None }
    }

    /// The end of a tool call.
    pub fn tool_end(id: impl Into<String>, status: Status, duration_ms: Option<u64>) -> Self {
        Self::ToolEnd { tool: ToolEnd { id: id.into(), status, duration_ms }, parent: None }
    }

    pub(crate) fn usage(usage: Usage) -> Self {
        Self::Usage { usage }
    }

    /// The same event as part of a sub-agent's work.
    #[must_use]
    pub(crate) fn within(mut self, call: &str) -> Self {
        match &mut self {
            Self::Text { parent, .. }
            | Self::ToolStart { parent, .. }
            | Self::ToolOutput { parent, .. }
            | Self::ToolEnd { parent, .. } => *parent = Some(call.to_owned()),
            Self::Usage { .. } => {}
            Self::Meta { meta } => {
                meta.0.insert("parent".into(), call.into());
            }
        }
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
