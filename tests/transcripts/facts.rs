//! What must be true of a capture, written down from the script that the model server played.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::capture::{Capture, Summary, root};

/// Facts of one capture. What is absent is not claimed.
#[derive(Deserialize)]
#[expect(clippy::option_option, reason = "not claimed, claimed as unknown, claimed as known")]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The class of the failure; none must be told when `null`.
    failure: Option<String>,
    /// The terminal fact, where it is claimed.
    #[serde(default, deserialize_with = "claimed")]
    success: Option<Option<bool>>,
    answer: Option<String>,
    messages: Option<Vec<String>>,
    thoughts: Option<Vec<String>>,
    tools: Option<Vec<String>>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    session: Option<String>,
    sessions: Option<usize>,
    todos: Option<Vec<String>>,
    files: Option<Vec<String>>,
    denials: Option<usize>,
    resets: Option<String>,
}

/// Tells `null` from an absent field.
#[expect(clippy::option_option, reason = "not claimed, claimed as unknown, claimed as known")]
fn claimed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<bool>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The facts of all captures of an agent, by the name of the capture.
pub fn of(agent: &str) -> BTreeMap<String, Facts> {
    let text = std::fs::read_to_string(root().join(agent).join("facts.json"));
    let text = text.unwrap_or_else(|error| panic!("{agent}/facts.json: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{agent}/facts.json: {error}"))
}

impl Facts {
    /// All claims that the events of a capture break.
    pub fn broken(&self, capture: &Capture) -> Vec<String> {
        let summary = Summary::of(&capture.events());
        let mut broken = Vec::new();
        let mut claim = |name: &str, expected: String, found: String| {
            if expected != found {
                broken.push(format!("{}: {name}\n  expected {expected}\n  found    {found}", capture.name));
            }
        };
        let trimmed = |texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
        };
        claim(
            "failure",
            shown(&self.failure.iter().collect::<Vec<_>>()),
            shown(&summary.failures.iter().collect::<Vec<_>>()),
        );
        if let Some(success) = self.success {
            claim("success", shown(&vec![success]), shown(&summary.ends));
        }
        if let Some(answer) = &self.answer {
            let last = trimmed(&summary.messages).pop().unwrap_or_default();
            // A text format may print all messages as one.
            let found =
                if last.ends_with(answer.trim()) && capture.is_text() { answer.trim().to_owned() } else { last };
            claim("answer", shown(&answer.trim()), shown(&found));
        }
        if let Some(messages) = &self.messages {
            claim("messages", shown(&trimmed(messages)), shown(&trimmed(&summary.messages)));
        }
        if let Some(thoughts) = &self.thoughts {
            claim("thoughts", shown(&trimmed(thoughts)), shown(&trimmed(&summary.thoughts)));
        }
        if let Some(tools) = &self.tools {
            let found: Vec<String> =
                summary.tools.iter().map(|(name, status)| format!("{name} {}", word(*status))).collect();
            let anonymous = |tool: &String| tool.strip_prefix("* ").map(str::to_owned);
            let same = tools.len() == found.len()
                && tools.iter().zip(&found).all(|(expected, found)| match anonymous(expected) {
                    Some(status) => found.ends_with(&format!(" {status}")),
                    None => expected == found,
                });
            if !same {
                claim("tools", shown(tools), shown(&found));
            }
        }
        let usage = &summary.usage;
        for (name, expected, found) in [
            ("prompt_tokens", self.prompt_tokens, usage.prompt_tokens),
            ("completion_tokens", self.completion_tokens, usage.completion_tokens),
            ("cached_tokens", self.cached_tokens, usage.cached_tokens),
        ] {
            if expected.is_some() {
                claim(name, shown(&expected), shown(&found));
            }
        }
        if let Some(session) = &self.session {
            claim("session", shown(&vec![session]), shown(&summary.sessions.iter().collect::<Vec<_>>()));
        }
        if let Some(sessions) = self.sessions {
            claim("sessions", shown(&sessions), shown(&summary.sessions.len()));
        }
        if let Some(todos) = &self.todos {
            claim("todos", shown(todos), shown(&summary.todos));
        }
        if let Some(files) = &self.files {
            let found: Vec<&str> = summary.files.iter().map(|path| path.trim_start_matches("/workspace/")).collect();
            claim("files", shown(files), shown(&found));
        }
        if let Some(denials) = self.denials {
            claim("denials", shown(&denials), shown(&summary.denials));
        }
        if let Some(resets) = &self.resets {
            claim("resets", shown(&Some(resets)), shown(&summary.resets.as_ref()));
        }
        broken
    }
}

fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

fn word(status: ralph::event::Status) -> &'static str {
    match status {
        ralph::event::Status::Ok => "ok",
        ralph::event::Status::Fail => "fail",
        ralph::event::Status::Unknown => "unknown",
    }
}
