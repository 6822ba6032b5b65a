//! `meta` events: everything that is neither words, nor tools, nor usage, by its kind.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, Object};

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
        self.read().ok()
    }

    fn read(&self) -> Result<Known, serde_json::Error> {
        Known::deserialize(Value::Object(self.0.clone()))
    }

    /// Why a fact of a known kind says less than its sender meant: a field that does not fit.
    pub(crate) fn problem(&self) -> Option<String> {
        match self.read() {
            Err(error) => {
                let message = error.to_string();
                let is_other_kind = message.starts_with(&format!("unknown variant `{}`", self.kind()?));
                (!is_other_kind).then(|| format!("`meta`: {message}"))
            }
            Ok(Known::Error { resets_at, .. }) => {
                let found = self.0.get("resets_at").filter(|found| !found.is_null())?;
                let is_time = resets_at.is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok());
                (!is_time).then(|| {
                    format!("`meta.resets_at` must be a time in RFC 3339 or seconds since 1970, found `{found}`")
                })
            }
            Ok(_) => None,
        }
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

/// How full a usage window of a subscription is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// `5h`, `week`, or the agent's own name for it.
    pub window: String,
    /// In per cent.
    pub used: u32,
    /// When it is empty again, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
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
    /// How full the agent's context was at its last call of the model.
    Context {
        /// Tokens of the prompt and of the answer.
        tokens: u64,
        /// How many there is room for, when the agent says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// How full a usage window of the user's subscription is.
    Quota(Quota),
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
    /// Something went wrong in a way that the agent reports.
    Error {
        /// What kind of failure.
        class: FailureClass,
        /// In the agent's words.
        message: String,
        /// HTTP status, when there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// When a limit ends, RFC 3339; read also from seconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time_or_seconds")]
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
        /// What it was to do, such as a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// The id of its call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// In the agent's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The one terminal fact of an iteration.
    TurnEnd {
        /// Whether the turn succeeded; `null` when it is unknown.
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
        /// How many lines this means; one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
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

/// A time as RFC 3339, or as seconds since 1970. A number that is no time is left out: the rest of the error still counts.
fn time_or_seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let time = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => {
            #[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
            let seconds = number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64))?;
            // A clock of JavaScript counts milliseconds.
            let at = jiff::Timestamp::from_second(seconds).or_else(|_| jiff::Timestamp::from_millisecond(seconds));
            at.ok().map(|at| at.to_string())
        }
        _ => None,
    };
    Ok(Option::<Value>::deserialize(deserializer)?.and_then(time))
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

/// The longest part of a denied command that is named.
const LONGEST_DENIED: usize = 60;

/// A tool that was not permitted, with what it was to do: `Bash(npm install)`.
pub(crate) fn denied(tool: &str, input: Option<&str>) -> String {
    let first = input.and_then(|input| input.trim().lines().next()).filter(|first| !first.is_empty());
    match first {
        Some(first) => format!("{tool}({})", first.chars().take(LONGEST_DENIED).collect::<String>()),
        None => tool.to_owned(),
    }
}
