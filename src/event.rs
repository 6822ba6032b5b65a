//! Canonical events: the vocabulary of the whole program.
//!
//! Their JSON is exactly RTF1's, so a journal, `--output json`, an external adapter and an RTF1 agent
//! all speak the same language. This file knows nobody and must never do I/O.

mod wire;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use wire::SchemaError;

/// A JSON object, in the order it was written.
pub type Object = Map<String, Value>;

/// One thing an agent said or did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Words, on one of the channels.
    Text {
        /// Who speaks.
        tag: Tag,
        /// What was said.
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
        /// What it printed.
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
    /// Nobody says.
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
        self.total_tokens.or_else(|| Some(self.prompt_tokens? + self.completion_tokens?))
    }

    /// True when nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self { model: self.model.clone(), ..Self::default() }
    }
}

/// The facts of a `meta` event: any object. Kinds that ralph understands are in [`Known`]; other kinds and
/// further fields are carried along untouched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(pub Object);

impl Meta {
    /// The value of `kind`.
    pub fn kind(&self) -> Option<&str> {
        self.0.get("kind").and_then(Value::as_str)
    }

    /// The typed form, when the kind is known and its fields fit.
    pub fn known(&self) -> Option<Known> {
        Known::deserialize(Value::Object(self.0.clone())).ok()
    }
}

impl From<Known> for Meta {
    fn from(known: Known) -> Self {
        match serde_json::to_value(known) {
            Ok(Value::Object(object)) => Self(object),
            _ => Self::default(),
        }
    }
}

impl From<Known> for Event {
    fn from(known: Known) -> Self {
        Self::Meta { meta: known.into() }
    }
}

/// The kinds of `meta` that ralph understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Known {
    /// The agent's session, for resuming it.
    Session {
        /// Its id.
        id: String,
    },
    /// The model that answers.
    Model {
        /// Its name.
        model: String,
    },
    /// The agent's version.
    Version {
        /// As the agent prints it.
        version: String,
    },
    /// The agent's plan; each event replaces the one before.
    Todo {
        /// All items.
        items: Vec<TodoItem>,
    },
    /// Files the agent changed.
    Files {
        /// What changed.
        changes: Vec<FileChange>,
    },
    /// Something went wrong in a way that the agent tells.
    Error {
        /// What kind of failure.
        class: FailureClass,
        /// In the agent's words.
        message: String,
        /// HTTP status, when there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// When a limit ends, RFC 3339.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<String>,
        /// How long until a limit ends, seen from the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// The reset time in the agent's words ("3pm (Europe/Paris)"), when it takes a clock to read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets: Option<String>,
    },
    /// The agent tries again by itself.
    Retry {
        /// Why.
        class: FailureClass,
        /// Which try this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u64>,
        /// How long it waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// In the agent's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A tool was not allowed.
    Permission {
        /// The tool's name.
        tool: String,
        /// The call's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// In the agent's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The one terminal fact of an iteration.
    TurnEnd {
        /// Whether the turn succeeded; `null` when nobody says.
        success: Option<bool>,
        /// Why it ended, in the dialect's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A line that the adapter did not understand; the raw file has it in full.
    Unparsed {
        /// The line, shortened when long.
        line: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An RTF1 line that is no JSON or breaks the schema.
    ParseError {
        /// What is wrong with it, and where.
        message: String,
        /// The line, shortened when long.
        line: String,
    },
    /// Something odd that was passed on.
    Warning {
        /// What.
        message: String,
    },
    /// The output speaks another dialect than expected, and ralph switched.
    Dialect {
        /// What was expected.
        from: String,
        /// What it is.
        to: String,
    },
}

/// One item of the agent's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far an item of the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Done,
    /// Given up.
    Cancelled,
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    /// As the agent names it.
    pub path: String,
    /// `add`, `update`, `delete`, … in the agent's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// What kind of failure an iteration met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Not logged in, key refused, no credit.
    Auth,
    /// A rate or usage limit.
    RateLimit,
    /// The model's service is down or overloaded.
    Overload,
    /// The context window is full.
    Context,
    /// A tool was not allowed.
    Permission,
    /// The service was not reached.
    Network,
    /// The model refused.
    Refusal,
    /// Unknown model, bad flag, untrusted folder.
    Config,
    /// The agent's own limit of turns, budget or output.
    AgentLimit,
    /// The rest.
    Agent,
}

impl FailureClass {
    /// The class as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Overload => "overload",
            Self::Context => "context",
            Self::Permission => "permission",
            Self::Network => "network",
            Self::Refusal => "refusal",
            Self::Config => "config",
            Self::AgentLimit => "agent_limit",
            Self::Agent => "agent",
        }
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

    /// Tokens and money.
    pub fn usage(usage: Usage) -> Self {
        Self::Usage { usage }
    }

    /// The same event as part of a sub-agent's work.
    #[must_use]
    pub fn within(mut self, call: &str) -> Self {
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

    /// The tool call of the sub-agent that this event belongs to.
    pub fn parent(&self) -> Option<&str> {
        match self {
            Self::Text { parent, .. }
            | Self::ToolStart { parent, .. }
            | Self::ToolOutput { parent, .. }
            | Self::ToolEnd { parent, .. } => parent.as_deref(),
            Self::Usage { .. } => None,
            Self::Meta { meta } => meta.0.get("parent").and_then(Value::as_str),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
