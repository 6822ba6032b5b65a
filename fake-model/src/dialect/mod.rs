//! The protocols: where a request goes, which tools it offers, and how an answer or an error looks.
//!
//! Pure: no clock, no socket. Ids are counted, so that the same script gives the same bytes.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use crate::scenario::{FaultKind, Usage};
use crate::tools::{Offered, Resolved};

/// An answer, before it has a form.
pub struct Reply {
    /// Counts answers; ids are made of it.
    pub number: u64,
    /// As the request named it.
    pub model: String,
    /// In order.
    pub parts: Vec<Part>,
    /// What it cost.
    pub usage: Usage,
}

impl Reply {
    /// An id that is the same every time the script is played.
    fn id(&self, prefix: &str, part: usize) -> String {
        format!("{prefix}{:04}{part:02}", self.number)
    }

    fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(_)))
    }
}

/// A piece of an answer.
pub enum Part {
    /// Thought.
    Thinking(String),
    /// Said.
    Text(String),
    /// A tool.
    Call(Resolved),
}

/// One server-sent event.
pub struct Frame {
    /// Its name, where the protocol has one.
    pub name: Option<&'static str>,
    /// Its data.
    pub data: String,
}

impl Frame {
    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }

    fn plain(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// A protocol between a CLI and a model.
pub trait Dialect: Sync {
    /// The tools that a request offers.
    fn offered(&self, body: &Value) -> Vec<Offered>;
    /// The answer as a stream.
    fn frames(&self, reply: &Reply) -> Vec<Frame>;
    /// The answer in one piece.
    fn whole(&self, reply: &Reply) -> Value;
    /// Status and body of an error.
    fn refusal(&self, kind: FaultKind) -> (u16, Value);
    /// The JSON schema that an answer on the side has to fit, where the request names one.
    fn wanted<'a>(&self, body: &'a Value) -> &'a Value;
}

/// What a path asks for.
pub enum Route {
    /// An answer of the model.
    Model {
        /// In this protocol.
        dialect: &'static dyn Dialect,
        /// Whether the path asks for a stream; else the body does.
        streams: bool,
        /// Where the path names the model.
        model: Option<String>,
    },
    /// A fixed answer.
    Fixed(Value),
    /// Nothing.
    Unknown,
}

/// What a path asks for.
pub fn route(path: &str) -> Route {
    let path = path.trim_end_matches('/');
    let model = |dialect| Route::Model { dialect, streams: false, model: None };
    if path.ends_with("/messages") {
        model(&anthropic::Anthropic)
    } else if path.ends_with("/chat/completions") {
        model(&chat::Chat)
    } else if path.ends_with("/responses") {
        model(&responses::Responses)
    } else if let Some((before, verb)) = path.rsplit_once(':') {
        let name = before.rsplit('/').next().map(str::to_owned);
        match verb {
            "generateContent" => Route::Model { dialect: &gemini::Gemini, streams: false, model: name },
            "streamGenerateContent" => Route::Model { dialect: &gemini::Gemini, streams: true, model: name },
            "countTokens" => Route::Fixed(serde_json::json!({"totalTokens": 1000})),
            _ => Route::Unknown,
        }
    } else if path.ends_with("/count_tokens") {
        Route::Fixed(serde_json::json!({"input_tokens": 1000}))
    } else if path.ends_with("/models") {
        let model = serde_json::json!({"id": "fake-model", "object": "model", "created": 1, "owned_by": "nobody"});
        Route::Fixed(serde_json::json!({"object": "list", "data": [model], "models": []}))
    } else if path.is_empty() || path == "/health" {
        Route::Fixed(serde_json::json!({"ok": true}))
    } else {
        Route::Unknown
    }
}

/// A text in a few pieces, as a model streams it.
fn pieces(text: &str) -> Vec<&str> {
    let size = text.len().div_ceil(4).clamp(1, 2048);
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
