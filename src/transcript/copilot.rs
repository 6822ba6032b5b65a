//! GitHub Copilot: JSON lines of a session, most of them noise.
//!
//! A failed command is called a success beside its exit code, and tokens are reported on standard error only,
//! rounded, in the text format.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::amounts;
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, FileChange, Known, Status, Tag, Usage};
use crate::process::Exit;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "copilot",
    capabilities: Capabilities { roles: true, tools: true, usage: false, prompt_hiding: true, session: true },
    messages: Messages::Whole,
    speaks: Session::speaks,
    adapter: |context| Box::new(JsonLines::new(context, Session::default())),
};

#[derive(Default)]
struct Session {
    /// When each running tool started, and whether it has printed.
    running: BTreeMap<String, Running>,
    /// Why the last call of the model failed.
    call_failure: Option<(Failure, Option<u64>)>,
    interrupted: bool,
    /// What the text format says on standard error before its summary, and whether that came.
    complaint: Option<String>,
    summed_up: bool,
}

struct Running {
    name: String,
    started: Option<Timestamp>,
    printed: bool,
}

#[derive(Deserialize)]
struct Wire<'a, T> {
    #[serde(borrow, default)]
    timestamp: Maybe<Text<'a>>,
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fragment<'a> {
    #[serde(borrow)]
    delta_content: Text<'a>,
    #[serde(borrow, default)]
    parent_tool_call_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
    #[serde(borrow, default)]
    model: Maybe<Text<'a>>,
    #[serde(borrow, default, rename = "message")]
    words: Option<Text<'a>>,
    #[serde(borrow, default)]
    parent_tool_call_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow, rename = "toolCallId")]
    id: Text<'a>,
    #[serde(borrow, default, rename = "toolName")]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    success: Option<bool>,
    #[serde(borrow, default)]
    result: Maybe<Printed<'a>>,
    #[serde(borrow, default)]
    error: Maybe<Refusal<'a>>,
    #[serde(default)]
    shell_execution: Maybe<Shell>,
    #[serde(borrow, default)]
    file_edits: Maybe<Vec<Edit<'a>>>,
    #[serde(borrow, default)]
    parent_tool_call_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Printed<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    #[serde(borrow, default)]
    code: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shell {
    exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct Edit<'a> {
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow, default)]
    kind: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trouble<'a> {
    #[serde(borrow, default)]
    error_type: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    message: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    error_message: Maybe<Text<'a>>,
    #[serde(default)]
    status_code: Maybe<u16>,
    #[serde(borrow, default)]
    failure_kind: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    reason: Maybe<Text<'a>>,
    #[serde(default)]
    retry_attempt: Maybe<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finished<'a> {
    #[serde(borrow, default)]
    session_id: Maybe<Text<'a>>,
    #[serde(default)]
    exit_code: Maybe<i64>,
}

impl Session {
    fn tool_started(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let Wire { timestamp, data }: Wire<'_, Tool<'_>> = serde_json::from_str(json)?;
        let name = data.name.map_or_else(|| "unknown".to_owned(), Text::into_string);
        let started = timestamp.0.and_then(|time| time.parse().ok());
        self.running.insert(data.id.to_string(), Running { name: name.clone(), started, printed: false });
        turn.tool_start(&data.id, data.parent_tool_call_id.as_deref(), name, shape::input(data.arguments));
        Ok(())
    }

    fn tool_printed(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let Wire { data, .. }: Wire<'_, Tool<'_>> = serde_json::from_str(json)?;
        if let Some(text) = data.text.filter(|text| !text.is_empty()) {
            if let Some(running) = self.running.get_mut(&*data.id) {
                running.printed = true;
            }
            turn.tool_output_fragment(&data.id, data.parent_tool_call_id.as_deref(), text.into_string());
        }
        Ok(())
    }

    fn tool_ended(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let Wire { timestamp, data }: Wire<'_, Tool<'_>> = serde_json::from_str(json)?;
        let id = &*data.id;
        let parent = data.parent_tool_call_id.as_deref();
        let running = self.running.remove(id);
        let error = data.error.0.as_ref();
        if !running.as_ref().is_some_and(|running| running.printed) {
            let content = data.result.0.and_then(|result| result.content).map(shape::flatten);
            let message = || error.and_then(|error| error.message.as_deref()).map(str::to_owned);
            turn.tool_output(id, parent, without_status(&content.or_else(message).unwrap_or_default()));
        }
        let code = data.shell_execution.0.and_then(|shell| shell.exit_code);
        let status = match (data.success, code) {
            (Some(false), _) => Status::Fail,
            (_, Some(code)) if code != 0 => Status::Fail,
            (Some(true), _) => Status::Ok,
            (None, _) => Status::Unknown,
        };
        let ended: Option<Timestamp> = timestamp.0.and_then(|time| time.parse().ok());
        let started = running.as_ref().and_then(|running| running.started);
        let duration = ended
            .zip(started)
            .and_then(|(ended, started)| u64::try_from(ended.as_millisecond() - started.as_millisecond()).ok());
        turn.tool_end(id, parent, status, duration);
        if error.is_some_and(|error| error.code.0.as_deref() == Some("denied")) {
            let tool = running.map_or_else(|| "unknown".to_owned(), |running| running.name);
            let message = error.and_then(|error| error.message.as_deref()).map(str::to_owned);
            turn.meta(Known::Permission { input: None, tool, id: Some(id.to_owned()), message });
        }
        let edits = data.file_edits.0.filter(|_| status != Status::Fail).unwrap_or_default();
        if !edits.is_empty() {
            let change = |edit: Edit<'_>| FileChange {
                path: edit.path.into_string(),
                change: edit.kind.0.map(Text::into_string),
            };
            turn.meta(Known::Files { changes: edits.into_iter().map(change).collect() });
        }
        Ok(())
    }
}

impl Reader for Session {
    fn speaks(json: &str) -> bool {
        const FAMILIES: [&str; 5] = ["session.", "assistant.", "user.message", "tool.", "model.call"];
        shape::kind(json).is_some_and(|kind| {
            (FAMILIES.iter().any(|family| kind.starts_with(family)) && json.contains("\"data\":"))
                || (kind == "result" && json.contains("\"exitCode\":"))
        })
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let kind = shape::kind(json).ok_or(Misread::Unknown)?;
        match &*kind {
            "assistant.message_delta" | "assistant.reasoning_delta" => {
                let Wire { data, .. }: Wire<'_, Fragment<'_>> = serde_json::from_str(json)?;
                let tag = if kind == "assistant.message_delta" { Tag::Ai } else { Tag::Think };
                turn.fragment(tag, data.parent_tool_call_id.as_deref(), data.delta_content.0);
            }
            "assistant.message_start" => turn.message_over(Tag::Ai, None),
            "assistant.message" | "assistant.reasoning" => {
                let Wire { data, .. }: Wire<'_, Message<'_>> = serde_json::from_str(json)?;
                let tag = if kind == "assistant.message" { Tag::Ai } else { Tag::Think };
                if let Some(model) = &data.model.0 {
                    turn.model(model);
                }
                turn.whole(tag, data.parent_tool_call_id.as_deref(), data.content.unwrap_or_default().0);
            }
            "user.message" => {
                let Wire { data, .. }: Wire<'_, Message<'_>> = serde_json::from_str(json)?;
                turn.text(Tag::Prompt, None, data.content.unwrap_or_default().0);
            }
            "session.tools_updated" | "session.model_change" => {
                let Wire { data, .. }: Wire<'_, Message<'_>> = serde_json::from_str(json)?;
                turn.model(data.model.0.as_deref().unwrap_or_default());
            }
            "session.warning" => {
                let Wire { data, .. }: Wire<'_, Message<'_>> = serde_json::from_str(json)?;
                turn.meta(Known::Warning { message: data.words.map(Text::into_string).unwrap_or_default() });
            }
            "session.info" => {
                let Wire { data, .. }: Wire<'_, Message<'_>> = serde_json::from_str(json)?;
                turn.text(Tag::Sys, None, data.words.unwrap_or_default().0);
            }
            "tool.execution_start" => self.tool_started(json, turn)?,
            "tool.shell_output" => self.tool_printed(json, turn)?,
            "tool.execution_complete" => self.tool_ended(json, turn)?,
            "model.call_failure" => {
                let Wire { data, .. }: Wire<'_, Trouble<'_>> = serde_json::from_str(json)?;
                let attempt = data.retry_attempt.0;
                self.call_failure = Some((call_failure(&data), attempt));
            }
            "assistant.turn_retry" => {
                let Wire { data, .. }: Wire<'_, Trouble<'_>> = serde_json::from_str(json)?;
                let (failure, attempt) = self.call_failure.take().unwrap_or_else(|| (retried(&data), None));
                turn.retry(failure, attempt.map(|before| before + 1), None);
            }
            "session.error" => {
                let Wire { data, .. }: Wire<'_, Trouble<'_>> = serde_json::from_str(json)?;
                let cut = self.call_failure.take().map(|(failure, _)| failure.class);
                turn.failure(session_failure(&data, cut));
            }
            "result" if json.contains("\"exitCode\":") => {
                let finished: Finished<'_> = serde_json::from_str(json)?;
                turn.session(finished.session_id.0.as_deref().unwrap_or_default());
                let code = finished.exit_code.0;
                let success = code.map(|code| code == 0 && !self.interrupted && turn.failed().is_none());
                turn.end(success, code.map_or("result".to_owned(), |code| format!("exit code {code}")).as_str());
            }
            "abort" | "agent.interrupted" => self.interrupted = true,
            kind if is_noise(kind) && json.ends_with('}') => {}
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    /// The summary of the text format.
    fn stderr(&mut self, line: &str, turn: &mut Turn) {
        const SUMMARY: [&str; 5] = ["Changes ", "Duration ", "Tokens ", "Resume ", "Requests "];
        if SUMMARY.iter().any(|key| line.starts_with(key)) {
            self.summed_up = true;
        } else if !line.trim().is_empty() {
            self.complaint = Some(line.trim().to_owned());
        }
        if let Some((_, id)) = line.split_once("copilot --resume=") {
            turn.session(id.trim());
        } else if let Some(counts) = line.trim_start().strip_prefix("Tokens ") {
            turn.usage(tokens(counts));
        }
    }

    fn end(&mut self, exit: Option<Exit>, turn: &mut Turn) {
        let failed = exit.is_some_and(|exit| !exit.success());
        if let Some(complaint) = self.complaint.take().filter(|_| failed && self.summed_up && !turn.ended()) {
            turn.failure(Failure::read(None, complaint));
        }
    }
}

/// Progress, counters, and what is reported elsewhere as well.
fn is_noise(kind: &str) -> bool {
    const KNOWN: [&str; 17] = [
        "session.background_tasks_changed",
        "session.skills_loaded",
        "session.mcp_servers_loaded",
        "session.start",
        "session.resume",
        "session.idle",
        "session.title_changed",
        "session.usage_info",
        "assistant.turn_start",
        "assistant.turn_end",
        "assistant.idle",
        "assistant.tool_call_delta",
        "assistant.intent",
        "model.call_start",
        "model.call_finished",
        "model.call_final_result",
        "tool.execution_partial_result",
    ];
    KNOWN.contains(&kind)
}

/// The last line of a shell's output is copilot's.
fn without_status(content: &str) -> &str {
    match content.trim_end().rsplit_once('\n') {
        Some((rest, last)) if is_status(last) => rest,
        None if is_status(content.trim_end()) => "",
        _ => content,
    }
}

fn is_status(line: &str) -> bool {
    line.starts_with("<shellId: ") && line.contains(" completed with exit code ")
}

fn call_failure(trouble: &Trouble<'_>) -> Failure {
    let message = trouble.error_message.0.as_deref().unwrap_or_default();
    match (trouble.status_code.0, trouble.failure_kind.0.as_deref()) {
        (None, Some("transport")) => Failure::of(FailureClass::Network, None, message),
        (status, _) => Failure::read(status, message),
    }
}

fn retried(trouble: &Trouble<'_>) -> Failure {
    let reason = trouble.reason.0.as_deref().unwrap_or_default();
    let class = match reason {
        "transient_auth_error" => FailureClass::Auth,
        "rate_limit" => FailureClass::RateLimit,
        "streaming_error" => FailureClass::Network,
        _ => FailureClass::Overload,
    };
    Failure::of(class, None, reason)
}

fn session_failure(trouble: &Trouble<'_>, last_call: Option<FailureClass>) -> Failure {
    let message = trouble.message.0.as_deref().unwrap_or_default();
    let status = trouble.status_code.0;
    match trouble.error_type.0.as_deref() {
        Some("authentication" | "authorization") => Failure::of(FailureClass::Auth, status, message),
        Some("rate_limit" | "quota") => Failure::of(FailureClass::RateLimit, status, message),
        _ => match (status, last_call) {
            (None, Some(class @ FailureClass::Network)) => Failure::of(class, None, message),
            _ => Failure::read(status, message),
        },
    }
}

/// `↑ 2.5k (1.6k cached) • ↓ 84`, rounded.
fn tokens(counts: &str) -> Usage {
    let after = |mark: char| counts.split_once(mark).and_then(|(_, rest)| amounts::first(rest));
    Usage {
        prompt_tokens: after('↑'),
        completion_tokens: after('↓'),
        cached_tokens: counts.contains("cached").then(|| after('(')).flatten(),
        ..Usage::default()
    }
}
