//! Gemini CLI: `stream-json` lines, the `json` object, and what it reports on standard error alone.
//!
//! It calls every shell command a success, whatever its exit code: such a tool must never come out as `ok`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{self, Failure};
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Output, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages, todo};
use crate::event::{FailureClass, FileChange, Known, Object, Status, Tag, Usage};
use crate::process::Exit;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "gemini",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: Gemini::speaks,
    adapter: |context| Box::new(JsonLines::new(context, Gemini::default())),
};

/// Tools that an approval mode can take away: without them "not registered" means "not allowed".
const GUARDED: &[&str] = &["run_shell_command", "write_file", "replace", "web_fetch", "activate_skill"];

#[derive(Default)]
struct Gemini {
    running: HashMap<String, Running>,
    /// Number and message of an attempt that failed.
    attempt: Option<(Option<u64>, String)>,
    /// The lines so far of the error object on standard error.
    report: Option<String>,
}

struct Running {
    name: String,
    began: Option<i64>,
    input: Option<Object>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(default)]
    delta: Option<bool>,
}

#[derive(Deserialize)]
struct ToolUse<'a> {
    #[serde(borrow)]
    tool_id: Text<'a>,
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timestamp: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow)]
    tool_id: Text<'a>,
    #[serde(borrow, default)]
    status: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    output: Output<'a>,
    #[serde(borrow, default)]
    error: Maybe<Problem<'a>>,
    #[serde(borrow, default)]
    timestamp: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Text<'a>>,
    #[serde(default)]
    code: Maybe<u16>,
}

/// `init`, `error`, `result`, and the one object of the `json` format.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    session_id: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    model: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    severity: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    status: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    response: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    error: Maybe<Problem<'a>>,
    #[serde(default)]
    stats: Maybe<Stats>,
    #[serde(default)]
    warnings: Maybe<Vec<Value>>,
}

#[derive(Deserialize)]
struct Stats {
    #[serde(default)]
    models: serde_json::Map<String, Value>,
}

impl Gemini {
    fn message(json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: Message<'_> = serde_json::from_str(json)?;
        let content = line.content.unwrap_or_default().0;
        match line.role.as_deref() {
            Some("user") => turn.text(Tag::Prompt, None, content),
            Some("assistant" | "model") if line.delta == Some(true) => turn.fragment(Tag::Ai, None, content),
            Some("assistant" | "model") => turn.whole(Tag::Ai, None, content),
            Some("thought" | "thinking") => turn.fragment(Tag::Think, None, content),
            _ => turn.text(Tag::Sys, None, content),
        }
        Ok(())
    }

    fn tool_use(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: ToolUse<'_> = serde_json::from_str(json)?;
        let name = line.tool_name.as_deref().unwrap_or("unknown");
        let input = shape::input(line.parameters);
        turn.messages_over(None);
        turn.tool_start(&line.tool_id, None, name, input.clone());
        // Only these inputs are looked at when the tool ends.
        let input = input.filter(|_| matches!(name, "write_file" | "replace" | "write_todos"));
        let began = line.timestamp.0.as_deref().and_then(milliseconds);
        let running = Running { name: name.to_owned(), began, input };
        self.running.insert(line.tool_id.into_string(), running);
        Ok(())
    }

    fn tool_result(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: ToolResult<'_> = serde_json::from_str(json)?;
        let id = &*line.tool_id;
        let running = self.running.remove(id);
        let name = running.as_ref().map_or("unknown", |running| running.name.as_str());
        let problem = line.error.0.as_ref();
        let message = problem.and_then(|problem| problem.message.0.as_deref()).unwrap_or_default();
        let mut output = line.output.into_string();
        if output.is_empty() {
            message.clone_into(&mut output);
        }
        let blocked = output.starts_with("Blocked: ") && name == "run_shell_command";
        let status = match line.status.0.as_deref() {
            Some("success") if blocked => Status::Fail,
            Some("success") if name == "run_shell_command" => shell_status(&output),
            Some("success") => Status::Ok,
            Some("error" | "cancelled") => Status::Fail,
            _ => Status::Unknown,
        };
        let ended = line.timestamp.0.as_deref().and_then(milliseconds);
        let began = running.as_ref().and_then(|running| running.began);
        let duration = ended.zip(began).and_then(|(ended, began)| u64::try_from(ended - began).ok());
        let kind = problem.and_then(|problem| problem.kind.0.as_deref()).unwrap_or_default();
        let refused = blocked
            || kind == "policy_violation"
            || kind == "tool_not_registered" && GUARDED.contains(&name)
            || message.contains("not in workspace");
        let message = if blocked { output.clone() } else { message.to_owned() };
        turn.tool_output(id, None, output);
        turn.tool_end(id, None, status, duration);
        if refused {
            let message = Some(message).filter(|message| !message.is_empty());
            turn.meta(Known::Permission { input: None, tool: name.to_owned(), id: Some(id.to_owned()), message });
        }
        if let Some(known) = running.filter(|_| status == Status::Ok).and_then(side_effect) {
            turn.meta(known);
        }
        Ok(())
    }

    fn line(json: &str, kind: Option<&str>, turn: &mut Turn) -> Result<(), Misread> {
        let line: Line<'_> = serde_json::from_str(json)?;
        if kind.is_none() && line.response.0.is_none() && line.error.0.is_none() && line.stats.0.is_none() {
            return Err(Misread::Unknown);
        }
        turn.session(line.session_id.0.as_deref().unwrap_or_default());
        match kind {
            Some("init") => turn.model(line.model.0.as_deref().unwrap_or_default()),
            Some("error") => {
                let message = line.message.0.map(Text::into_string).unwrap_or_default();
                if line.severity.0.as_deref() == Some("warning") {
                    turn.meta(Known::Warning { message });
                } else {
                    turn.text(Tag::Sys, None, message.as_str());
                    turn.failure(Failure::read(None, message));
                }
            }
            _ => Self::result(line, turn),
        }
        Ok(())
    }

    /// The end: of a stream, or all there is of the `json` format.
    fn result(line: Line<'_>, turn: &mut Turn) {
        if let Some(response) = line.response.0 {
            turn.answer(response.0);
        }
        for warning in line.warnings.0.iter().flatten() {
            turn.meta(Known::Warning { message: shape::flatten_value(warning) });
        }
        for (model, tokens) in line.stats.0.iter().flat_map(|stats| &stats.models) {
            turn.usage(usage(model, tokens));
        }
        let failed = line.status.0.as_deref() == Some("error") || line.error.0.is_some();
        if let Some(problem) = line.error.0 {
            report(&problem, turn);
        } else if failed && turn.failed().is_none() {
            turn.failure(Failure::of(FailureClass::Agent, None, "the run ended with an error"));
        } else if !failed && !turn.has_spoken() {
            turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
        }
        let success = !failed && turn.failed().is_none();
        let reason = if success { "success" } else { turn.failed().map_or("error", FailureClass::name) };
        turn.end(Some(success), reason);
    }
}

fn report(problem: &Problem<'_>, turn: &mut Turn) {
    let message = problem.message.0.as_deref().unwrap_or_default();
    turn.text(Tag::Sys, None, message);
    turn.failure(match problem.kind.0.as_deref() {
        Some("FatalTurnLimitedError") => Failure::of(FailureClass::AgentLimit, None, message),
        Some("FatalAuthenticationError") => Failure::of(FailureClass::Auth, None, message),
        _ => Failure::read(problem.code.0.filter(|code| (400..600).contains(code)), message),
    });
}

/// Both forms of the numbers: thoughts are in the total only.
fn usage(model: &str, stats: &Value) -> Usage {
    let tokens = stats.get("tokens").unwrap_or(stats);
    let number = |keys: &[&str]| keys.iter().find_map(|key| tokens.get(key)?.as_u64());
    let prompt = number(&["input_tokens", "prompt"]);
    let total = number(&["total_tokens", "total"]);
    let completion = match (total, prompt) {
        (Some(total), Some(prompt)) => Some(total.saturating_sub(prompt)),
        _ => number(&["output_tokens", "candidates"]),
    };
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total,
        model: Some(model.to_owned()),
        cached_tokens: number(&["cached"]),
        reasoning_tokens: number(&["thoughts"]),
        ..Usage::default()
    }
}

/// Older versions print the exit code among the output; today's hide it.
fn shell_status(output: &str) -> Status {
    let code = output.lines().find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse::<i64>().ok());
    match code {
        Some(0) => Status::Ok,
        Some(_) => Status::Fail,
        None => Status::Unknown,
    }
}

fn side_effect(running: Running) -> Option<Known> {
    let input = running.input?;
    if running.name == "write_todos" {
        return Some(Known::Todo { items: todo::items(input.get("todos")?) });
    }
    let path = input.get("file_path")?.as_str()?.to_owned();
    let change = if running.name == "replace" { "update" } else { "write" };
    Some(Known::Files { changes: vec![FileChange { path, change: Some(change.to_owned()) }] })
}

fn milliseconds(timestamp: &str) -> Option<i64> {
    timestamp.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

impl Reader for Gemini {
    fn speaks(json: &str) -> bool {
        match shape::kind(json).as_deref() {
            Some("init") => json.contains("\"session_id\":"),
            Some("message") => json.contains("\"role\":") && json.contains("\"content\":"),
            Some("tool_use") => json.contains("\"tool_name\":"),
            Some("tool_result") => json.contains("\"tool_id\":"),
            Some("error") => json.contains("\"severity\":"),
            Some("result") => json.contains("\"status\":") && !json.contains("\"subtype\":"),
            Some(_) => false,
            None => json.contains("\"session_id\":") && json.contains("\"stats\":"),
        }
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        match shape::kind(json).as_deref() {
            Some("message") => Self::message(json, turn)?,
            Some("tool_use") => self.tool_use(json, turn)?,
            Some("tool_result") => self.tool_result(json, turn)?,
            kind @ (Some("init" | "error" | "result") | None) => Self::line(json, kind, turn)?,
            Some(_) => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn stderr(&mut self, line: &str, turn: &mut Turn) {
        // `Attempt 1 failed: …. Retrying after 5494ms...`; the message may have several lines.
        if let Some(rest) = line.strip_prefix("Attempt ") {
            self.attempt = Some((rest.split(' ').next().and_then(|number| number.parse().ok()), line.to_owned()));
        }
        if let Some((_, rest)) = line.split_once("Retrying ")
            && let Some((attempt, message)) = self.attempt.take()
        {
            let delay = rest.strip_prefix("after ").and_then(|rest| rest.strip_suffix("ms...")?.parse().ok());
            return turn.retry(Failure::read(None, message), attempt, delay);
        }
        // The error object of the `json` format is here, over many lines, after stack traces.
        match &mut self.report {
            None if matches!(line, "{" | "[ERROR] {") => self.report = Some("{".to_owned()),
            None => {}
            Some(report) if line == "}" => {
                report.push('}');
                let report = self.report.take().unwrap_or_default();
                if let Ok(Line { session_id, error: Maybe(Some(problem)), .. }) = serde_json::from_str(&report) {
                    turn.session(session_id.0.as_deref().unwrap_or_default());
                    self::report(&problem, turn);
                }
            }
            Some(report) if line.starts_with(' ') && report.len() < 100_000 => report.push_str(line),
            Some(_) => self.report = None,
        }
    }

    /// It has exit codes of its own; API errors exit with the HTTP status modulo 256.
    fn class_of(exit: Exit) -> Option<FailureClass> {
        match exit {
            Exit::Code(41) => Some(FailureClass::Auth),
            Exit::Code(42 | 44 | 52 | 55) => Some(FailureClass::Config),
            Exit::Code(53) => Some(FailureClass::AgentLimit),
            Exit::Code(code @ 144..=255) => u16::try_from(code + 256).ok().and_then(failure::from_status),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
