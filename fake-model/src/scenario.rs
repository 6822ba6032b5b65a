//! What the model says and does, in abstract words: a list of turns, one for each request.
//!
//! It names no tool of any CLI: `tools.rs` finds the one that is meant among those the request offers.

use std::path::Path;

use serde::Deserialize;

/// A script for the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Played one after the other.
    pub turns: Vec<Turn>,
    /// What follows the last turn.
    pub afterwards: Afterwards,
    /// Which requests take a turn; the others get a short answer on the side.
    pub which: Which,
}

/// What follows the last turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Afterwards {
    /// A fixed sentence, for ever.
    #[default]
    Stop,
    /// The first turn again.
    Again,
}

/// Which requests take a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// Those that offer tools: titles, summaries and routing decisions do not.
    #[default]
    WithTools,
    /// All, for a CLI whose agent has no tools.
    All,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// Said in thought.
    pub thinking: String,
    /// Said aloud.
    pub text: String,
    /// How often `text` is said, in one answer.
    pub times: Option<u32>,
    /// The tools it calls.
    pub calls: Vec<Call>,
    /// What goes wrong instead, or in mid-answer.
    pub fault: Option<Fault>,
    /// What it cost.
    pub usage: Usage,
    /// Milliseconds between the pieces of a stream.
    pub pause_ms: u64,
}

impl Turn {
    /// The words, as often as they are said: then with numbers, since agents stop a model that only repeats itself.
    pub fn words(&self) -> String {
        match self.times {
            None => self.text.clone(),
            Some(times) => {
                (1..=times).fold(String::new(), |said, number| said + &number.to_string() + " " + &self.text)
            }
        }
    }
}

/// A tool call in words that belong to no CLI.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// A command for a shell.
    Shell {
        /// The command.
        command: String,
    },
    /// A new file, or a whole new content.
    WriteFile {
        /// Relative to the workspace.
        path: String,
        /// All of it.
        content: String,
    },
    /// A look into a file.
    ReadFile {
        /// Relative to the workspace.
        path: String,
    },
}

/// Tokens, the same in every protocol.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// All of the prompt, cached or not.
    pub input: u64,
    /// Of the prompt, read from a cache.
    pub cached: u64,
    /// The answer.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1200, cached: 200, output: 40 }
    }
}

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// For how many requests. Not given: until it is lifted.
    pub times: Option<u32>,
    /// Seconds, as a header of the answer.
    pub retry_after: Option<u32>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// 401.
    Unauthorized,
    /// 429.
    RateLimit,
    /// 500.
    ServerError,
    /// 529, or what the protocol has for it.
    Overloaded,
    /// 400: the prompt is too long.
    Context,
    /// The connection ends in mid-answer.
    Cut,
    /// The answer stops in the middle, and the connection stays.
    Hang,
}

impl Scenario {
    /// Reads YAML (and so JSON).
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Reads a file.
    pub fn load(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", file.display()))
    }
}
