//! Claude's `result` line: the end of a turn, its answer, what it cost, why it failed. Several of them may
//! come in one stream, with totals that grow.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Claude, UsageFrom};
use crate::event::{FailureClass, Known, Tag, Usage};
use crate::transcript::failure::{self, Failure};
use crate::transcript::shape::{Maybe, flatten_value};
use crate::transcript::turn::Turn;

#[derive(Deserialize)]
pub(crate) struct ResultLine {
    #[serde(default)]
    subtype: Maybe<String>,
    #[serde(default)]
    is_error: Maybe<bool>,
    #[serde(default)]
    api_error_status: Maybe<u16>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    session_id: Maybe<String>,
    #[serde(default)]
    stop_reason: Maybe<String>,
    #[serde(default)]
    terminal_reason: Maybe<String>,
    #[serde(default)]
    total_cost_usd: Maybe<f64>,
    #[serde(default)]
    usage: Maybe<Tokens>,
    #[serde(default, rename = "modelUsage")]
    model_usage: Maybe<BTreeMap<String, ModelTokens>>,
    #[serde(default)]
    permission_denials: Maybe<Vec<Denial>>,
    #[serde(default)]
    errors: Maybe<Vec<Value>>,
    #[serde(default)]
    error: Value,
    /// What ralph itself says about the end, where it wrote the stream.
    #[serde(default)]
    ralph: Maybe<Ending>,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    success: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

/// Token counts in the API's words, or in cursor's.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, rename = "input_tokens", alias = "inputTokens")]
    input: Maybe<u64>,
    #[serde(default, rename = "output_tokens", alias = "outputTokens")]
    output: Maybe<u64>,
    #[serde(default, rename = "cache_read_input_tokens", alias = "cacheReadTokens")]
    cache_read: Maybe<u64>,
    #[serde(default, rename = "cache_creation_input_tokens", alias = "cacheWriteTokens")]
    cache_write: Maybe<u64>,
    #[serde(default, rename = "total_tokens")]
    total: Maybe<u64>,
}

/// Whether `input_tokens` counts the cached ones too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cached {
    Apart,
    Included,
}

impl Tokens {
    pub(crate) fn usage(&self, cached: Cached, model: Option<String>) -> Usage {
        let read = self.cache_read.0;
        let written = self.cache_write.0;
        let apart = if cached == Cached::Apart { read.unwrap_or(0).saturating_add(written.unwrap_or(0)) } else { 0 };
        Usage {
            prompt_tokens: self.input.0.map(|tokens| tokens.saturating_add(apart)),
            completion_tokens: self.output.0,
            total_tokens: self.total.0.filter(|_| cached == Cached::Included),
            model,
            cached_tokens: read,
            cache_write_tokens: written,
            ..Usage::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelTokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
    #[serde(default, rename = "costUSD")]
    cost_usd: Option<f64>,
    #[serde(default)]
    context_window: Maybe<u64>,
}

#[derive(Deserialize)]
struct Denial {
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_input: Value,
}

impl Claude {
    pub(crate) fn result(&mut self, json: &str, turn: &mut Turn) -> Result<(), serde_json::Error> {
        let line: ResultLine = serde_json::from_str(json)?;
        if let Some(id) = &line.session_id.0 {
            turn.session(id);
        }
        if let (true, Some(ending)) = (self.exact, &line.ralph.0) {
            turn.end(ending.success, ending.reason.as_deref().unwrap_or("result"));
            return Ok(());
        }
        // An object with `output` is what some wrappers print.
        let answer = match &line.result {
            Value::Object(object) if object.contains_key("output") => flatten_value(&object["output"]),
            other => flatten_value(other),
        };
        let failed =
            line.is_error.0 == Some(true) || line.subtype.0.as_deref().is_some_and(|word| word.starts_with("error"));
        if failed {
            self.failed_result(&line, answer, turn);
        } else {
            self.answered(&line, answer, turn);
        }
        for denial in line.permission_denials.0.iter().flatten() {
            turn.meta(Known::Permission {
                input: denial.tool_input["command"].as_str().map(str::to_owned),
                tool: denial.tool_name.clone(),
                id: denial.tool_use_id.clone(),
                message: None,
            });
        }
        self.result_usage(&line, turn);
        // Wrappers print `{"type":"result","result":""}` whatever happened: such a line ends the turn, but how it went is
        // for the exit code to say. An error in Claude's own words is one.
        let bare = line.subtype.0.is_none() && line.is_error.0.is_none();
        if bare && turn.failed().is_none() {
            turn.end(None, "result");
            return Ok(());
        }
        let empty = turn.failed() == Some(FailureClass::Agent) && !failed;
        let success = !failed && !empty && !bare;
        // Claude calls many failures `success` and `completed`.
        let words = [line.terminal_reason.0.as_deref(), line.subtype.0.as_deref()];
        let told = words.into_iter().flatten().find(|word| success || !matches!(*word, "completed" | "success"));
        let class = turn.failed().map(FailureClass::name);
        turn.end(Some(success), told.or(class).unwrap_or("result"));
        Ok(())
    }

    fn answered(&mut self, line: &ResultLine, answer: String, turn: &mut Turn) {
        if self.synthetic.as_deref() == Some(answer.as_str()) {
            return;
        }
        if line.subtype.0.is_none() && answer.trim_start().starts_with("API Error") {
            turn.text(Tag::Sys, None, answer.as_str());
            turn.failure(Failure::read(line.api_error_status.0.or_else(|| failure::status_in(&answer)), answer));
            return;
        }
        // Wrappers end with an empty result; Claude itself does so only when the model said nothing.
        let nothing = answer.trim().is_empty() && !turn.has_spoken();
        if nothing && line.subtype.0.is_some() && !self.compacted {
            turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
        }
        turn.answer(answer);
    }

    fn failed_result(&mut self, line: &ResultLine, answer: String, turn: &mut Turn) {
        let error = match &line.error {
            Value::Object(object) => object.get("message").map(flatten_value).unwrap_or_default(),
            other => flatten_value(other),
        };
        let errors = line.errors.0.iter().flatten().map(flatten_value).collect::<Vec<_>>().join("\n");
        let message = [answer, error, errors].into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let subtype = line.subtype.0.as_deref().unwrap_or_default();
        let status = line.api_error_status.0;
        let refused = line.stop_reason.0.as_deref() == Some("refusal");
        let aborted = line.terminal_reason.0.as_deref().is_some_and(|word| word.starts_with("aborted"));
        if !message.is_empty() && !aborted && self.synthetic.as_deref() != Some(message.as_str()) {
            turn.text(Tag::Sys, None, message.as_str());
        }
        if aborted {
            return;
        }
        turn.failure(match (subtype, &line.terminal_reason.0) {
            ("error_max_turns" | "error_max_budget_usd" | "error_max_structured_output_retries", _) => {
                Failure::of(FailureClass::AgentLimit, status, message)
            }
            _ if refused => Failure::of(FailureClass::Refusal, status, message),
            (_, Some(reason)) if reason == "prompt_too_long" => Failure::of(FailureClass::Context, status, message),
            _ if status.is_none() && failure::classify(failure::status_in(&message), &message).is_none() => {
                let class = turn.failed().unwrap_or(FailureClass::Agent);
                Failure::of(class, status, message)
            }
            _ => Failure::read(status, message),
        });
    }

    /// What this result adds to the totals of the one before.
    fn result_usage(&mut self, line: &ResultLine, turn: &mut Turn) {
        let models = line.model_usage.0.as_ref().filter(|models| !models.is_empty());
        if let Some(models) = models {
            for (model, tokens) in models {
                // Beside the model that speaks there may be small ones for titles and summaries.
                let speaks = turn.current_model().is_none_or(|current| current == without_context_suffix(model));
                if let Some(window) = tokens.context_window.0.filter(|_| speaks) {
                    turn.window(window);
                }
                let total = Usage {
                    prompt_tokens: Some(
                        tokens
                            .input_tokens
                            .saturating_add(tokens.cache_read_input_tokens)
                            .saturating_add(tokens.cache_creation_input_tokens),
                    ),
                    completion_tokens: Some(tokens.output_tokens),
                    cached_tokens: Some(tokens.cache_read_input_tokens),
                    cache_write_tokens: Some(tokens.cache_creation_input_tokens),
                    cost_usd: tokens.cost_usd,
                    model: Some(without_context_suffix(model).to_owned()),
                    ..Usage::default()
                };
                let before = self.totals.insert(model.clone(), total.clone()).unwrap_or_default();
                turn.usage(difference(&total, &before));
            }
            self.unreported = Usage::default();
            return;
        }
        let model = turn.current_model().map(str::to_owned);
        let reported = line.usage.0.as_ref().map(|tokens| tokens.usage(self.flavour.cached, model));
        let summed = std::mem::take(&mut self.unreported);
        let mut usage = match (self.flavour.usage, reported) {
            (UsageFrom::Messages, reported) if summed.is_unknown() => reported.unwrap_or_default(),
            (UsageFrom::Result, Some(reported)) => reported,
            _ => summed,
        };
        usage.cost_usd = line.total_cost_usd.0.filter(|cost| *cost > 0.0);
        turn.usage(usage);
    }
}

/// Model names carry the size of their context window for display.
pub(crate) fn without_context_suffix(model: &str) -> &str {
    model.strip_suffix("[1m]").unwrap_or(model)
}

fn difference(total: &Usage, before: &Usage) -> Usage {
    let minus = |total: Option<u64>, before: Option<u64>| total.map(|total| total.saturating_sub(before.unwrap_or(0)));
    Usage {
        prompt_tokens: minus(total.prompt_tokens, before.prompt_tokens),
        completion_tokens: minus(total.completion_tokens, before.completion_tokens),
        total_tokens: None,
        model: total.model.clone(),
        cached_tokens: minus(total.cached_tokens, before.cached_tokens),
        cache_write_tokens: minus(total.cache_write_tokens, before.cache_write_tokens),
        reasoning_tokens: None,
        cost_usd: total.cost_usd.map(|cost| (cost - before.cost_usd.unwrap_or(0.0)).max(0.0)),
    }
}
