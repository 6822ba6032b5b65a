//! Turns the abstract words of a script into the lines of a dialect: one small emitter for each.
//!
//! The shapes are those of the real agents' captured output, cut down to what an adapter reads.

mod claude;
mod cline;
mod codex;
mod copilot;
mod gemini;
mod goose;
mod opencode;
mod pi;
mod plain;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::{Finish, Speech, Status, Tokens, ToolCall};

/// How words are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Lines, with nothing to tell them apart.
    #[default]
    Plain,
    /// Lines and canonical events behind a sentinel.
    Rtf1,
    /// `claude --output-format stream-json --verbose`; also amp and qwen.
    Claude,
    /// The same with `--include-partial-messages`.
    ClaudePartial,
    /// `codex exec --json`.
    Codex,
    /// `codex exec`.
    CodexText,
    /// `gemini --output-format stream-json`.
    Gemini,
    /// `opencode run --format json`.
    Opencode,
    /// `copilot --output-format json`.
    Copilot,
    /// `cline --json`.
    Cline,
    /// `pi --mode json`.
    Pi,
    /// `goose run --output-format stream-json`.
    Goose,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Plain,
        Self::Rtf1,
        Self::Claude,
        Self::ClaudePartial,
        Self::Codex,
        Self::CodexText,
        Self::Gemini,
        Self::Opencode,
        Self::Copilot,
        Self::Cline,
        Self::Pi,
        Self::Goose,
    ];

    /// The name of ralph's adapter for it.
    pub const fn adapter(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Rtf1 => "rtf1",
            Self::Claude | Self::ClaudePartial => "claude",
            Self::Codex | Self::CodexText => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
            Self::Pi => "pi",
            Self::Goose => "goose",
        }
    }

    pub(crate) fn emitter(self) -> Box<dyn Emitter> {
        match self {
            Self::Plain => Box::new(plain::Plain),
            Self::Rtf1 => Box::new(plain::Rtf1::default()),
            Self::Claude => Box::new(claude::Claude::new(claude::Partial::Without)),
            Self::ClaudePartial => Box::new(claude::Claude::new(claude::Partial::With)),
            Self::Codex => Box::new(codex::Json::default()),
            Self::CodexText => Box::new(codex::Text::default()),
            Self::Gemini => Box::new(gemini::Gemini::default()),
            Self::Opencode => Box::new(opencode::Opencode::default()),
            Self::Copilot => Box::new(copilot::Copilot::default()),
            Self::Cline => Box::new(cline::Cline::default()),
            Self::Pi => Box::new(pi::Pi::default()),
            Self::Goose => Box::new(goose::Goose::default()),
        }
    }
}

/// What is known before the first word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    pub session: String,
    pub model: String,
    pub prompt: String,
}

/// One thing to be written in a dialect.
pub(crate) enum Words<'a> {
    Begin(&'a Opening),
    Say(&'a Speech),
    Think(&'a Speech),
    ToolStart(&'a ToolCall),
    ToolEnd(&'a ToolCall),
    Usage(Tokens),
    Finish(&'a Finish),
}

/// What is written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Out(String),
    Err(String),
}

impl Piece {
    /// One JSON line.
    fn json(value: &Value) -> Self {
        Self::Out(format!("{value}\n"))
    }
}

/// Writes one dialect.
pub(crate) trait Emitter {
    fn emit(&mut self, words: &Words<'_>, out: &mut Vec<Piece>);
}

/// What most dialects have to remember until later words.
#[derive(Debug, Default)]
struct Memory {
    opening: Opening,
    tools: usize,
    messages: usize,
    tokens: Option<Tokens>,
    last: String,
}

impl Memory {
    /// The id of the tool call that begins.
    fn next_tool(&mut self) -> String {
        self.tools += 1;
        self.tool()
    }

    /// The id of the tool call that is open.
    fn tool(&self) -> String {
        format!("call_{:04}", self.tools)
    }

    /// The id of the message that begins.
    fn next_message(&mut self) -> String {
        self.messages += 1;
        format!("msg_{:04}", self.messages)
    }

    fn tokens(&self) -> Tokens {
        self.tokens.unwrap_or_default()
    }
}

/// The exit code of the command behind a tool call.
fn exit_code(call: &ToolCall) -> i32 {
    i32::from(call.status == Status::Fail)
}
