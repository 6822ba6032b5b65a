//! Where the script stands: which turn a request gets, which faults are still in force, what was asked.
//!
//! It decides and remembers; it neither waits nor writes.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::dialect::{Dialect, Part, Reply};
use crate::scenario::{Afterwards, Fault, Scenario, Turn, Which};
use crate::tools::{Offered, resolve};

/// Bodies are kept up to this much in all.
const REMEMBERED: usize = 64 * 1024 * 1024;

/// A request for an answer, as it was answered.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The turn it got; none on the side or after the end.
    pub turn: Option<usize>,
    /// The model that was asked for.
    pub model: String,
    /// The names of the tools it offered.
    pub offered: Vec<String>,
    /// The request, as long as there is room.
    pub body: String,
}

/// What a request gets.
pub struct Answer {
    /// The content.
    pub reply: Reply,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Milliseconds between pieces.
    pub pause_ms: u64,
}

/// The script and where it stands.
pub struct Play {
    scenario: Scenario,
    workspace: PathBuf,
    at: usize,
    failed: u32,
    lifted: bool,
    answers: u64,
    remembered: usize,
    exchanges: Vec<Exchange>,
}

impl Play {
    /// At the beginning.
    pub fn new(scenario: Scenario, workspace: &Path) -> Self {
        let workspace = workspace.to_owned();
        Self { scenario, workspace, at: 0, failed: 0, lifted: false, answers: 0, remembered: 0, exchanges: Vec::new() }
    }

    /// Faults that have no number end here.
    pub fn lift(&mut self) {
        self.lifted = true;
    }

    /// All requests so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.clone()
    }

    /// The answer to a request.
    pub fn next(&mut self, dialect: &dyn Dialect, model: String, body: &Value, raw: &[u8]) -> Answer {
        let offered = dialect.offered(body);
        self.answers += 1;
        let main = self.scenario.which == Which::All || !offered.is_empty();
        let (at, turn, fault) = if main { self.turn() } else { (None, Turn::default(), None) };
        let parts = if main { self.parts(&turn, &offered) } else { vec![Part::Text(aside(dialect.wanted(body)))] };
        let room = self.remembered + raw.len() <= REMEMBERED;
        self.remembered += if room { raw.len() } else { 0 };
        self.exchanges.push(Exchange {
            turn: at,
            model: model.clone(),
            offered: offered.into_iter().map(|tool| tool.name).collect(),
            body: if room { String::from_utf8_lossy(raw).into_owned() } else { String::new() },
        });
        let reply = Reply { number: self.answers, model, parts, usage: turn.usage };
        Answer { reply, fault, pause_ms: turn.pause_ms }
    }

    fn turn(&mut self) -> (Option<usize>, Turn, Option<Fault>) {
        let turns = &self.scenario.turns;
        if self.at >= turns.len() && self.scenario.afterwards == Afterwards::Again {
            self.at = 0;
        }
        let Some(turn) = turns.get(self.at).cloned() else {
            return (None, Turn { text: "The script has ended.".to_owned(), ..Turn::default() }, None);
        };
        let at = Some(self.at);
        if let Some(fault) = turn.fault {
            let over = fault.times.map_or(self.lifted, |times| self.failed >= times);
            if !over {
                self.failed += 1;
                return (at, turn, Some(fault));
            }
            self.failed = 0;
            // A turn that is nothing but a fault has no answer of its own.
            if turn.text.is_empty() && turn.calls.is_empty() {
                self.at += 1;
                return self.turn();
            }
        }
        self.at += 1;
        (at, turn, None)
    }

    fn parts(&self, turn: &Turn, offered: &[Offered]) -> Vec<Part> {
        let mut parts = Vec::new();
        if !turn.thinking.is_empty() {
            parts.push(Part::Thinking(turn.thinking.clone()));
        }
        let mut words = turn.words();
        if words.is_empty() && turn.fault.is_some() {
            "This answer is not going to be finished.".clone_into(&mut words);
        }
        if !words.is_empty() {
            parts.push(Part::Text(words));
        }
        for call in &turn.calls {
            parts.push(match resolve(call, offered, &self.workspace) {
                Some(call) => Part::Call(call),
                None => Part::Text(format!("(no tool is offered for {call:?})")),
            });
        }
        parts
    }
}

/// An answer on the side: a word, or the smallest value of the form that is asked for.
fn aside(schema: &Value) -> String {
    if schema.is_object() { smallest(schema).to_string() } else { "A scripted title".to_owned() }
}

fn smallest(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("object");
    match kind.to_ascii_lowercase().as_str() {
        "string" => json!("scripted"),
        "integer" | "number" => json!(1),
        "boolean" => json!(false),
        "array" => json!([]),
        "null" => Value::Null,
        _ => {
            let members = schema["properties"].as_object().into_iter().flatten();
            Value::Object(members.map(|(name, schema)| (name.clone(), smallest(schema))).collect::<Map<_, _>>())
        }
    }
}
