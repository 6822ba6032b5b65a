//! `OpenCode` and its fork Kilo: one line for each finished part of a message.
//!
//! A tool is reported only when it has ended, and a failed command, an unknown and a denied tool are all called
//! `completed`. There is no terminal event: the last step's reason says how the run ended.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::claude::side_effects::SideEffects;
use super::failure::Failure;
use super::jsonl::{JsonLines, Misread, Reader};
use super::shape::{self, Maybe, Text};
use super::turn::Turn;
use super::{Capabilities, Dialect, Messages};
use crate::event::{FailureClass, Known, Status, Tag, Usage};
use crate::process::Exit;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "opencode",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: false, session: true },
    messages: Messages::Whole,
    speaks: Parts::speaks,
    adapter: |context| Box::new(JsonLines::new(context, Parts::default())),
};

#[derive(Default)]
struct Parts {
    effects: SideEffects,
    /// Why the last step ended.
    reason: Option<String>,
    /// The context was full: the step that follows only sums it up.
    compacting: bool,
    /// What was said of a call that was not allowed.
    denial: Option<String>,
    /// The command line was answered with the list of options.
    usage_shown: bool,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow, default, rename = "sessionID")]
    session: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    part: Option<Part<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    synthetic: Maybe<bool>,
    #[serde(borrow, default)]
    tool: Option<Text<'a>>,
    #[serde(borrow, default, rename = "callID")]
    call: Option<Text<'a>>,
    #[serde(borrow, default)]
    state: Option<ToolState<'a>>,
    #[serde(borrow, default)]
    reason: Option<Text<'a>>,
    #[serde(default)]
    tokens: Option<Tokens>,
    #[serde(default)]
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct ToolState<'a> {
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Maybe<Metadata<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    time: Maybe<Times>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    output: Maybe<Text<'a>>,
    #[serde(default)]
    exit: Maybe<i64>,
    #[serde(default)]
    truncated: Maybe<bool>,
}

#[derive(Deserialize)]
struct Times {
    start: u64,
    end: u64,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Tokens {
    total: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cache: Cache,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cache {
    read: Option<u64>,
    write: Option<u64>,
}

impl Parts {
    fn tool(&mut self, part: &Part<'_>, turn: &mut Turn) -> Result<(), Misread> {
        let missing = || Misread::Shape("a tool without a state");
        let state = part.state.as_ref().ok_or_else(missing)?;
        let id = part.call.as_deref().unwrap_or("call");
        let said = part.tool.as_deref().unwrap_or("unknown");
        let input = shape::input(state.input);
        // A call of a tool that there is not is reported as a call of the tool `invalid`.
        let real = input.as_ref().filter(|_| said == "invalid").and_then(|input| input.get("tool"));
        let name = real.and_then(Value::as_str).unwrap_or(said).to_owned();
        self.effects.called(id, &name, input.as_ref());
        turn.tool_start(id, None, name.as_str(), input);
        let metadata = state.metadata.0.as_ref();
        let whole =
            metadata.filter(|metadata| metadata.truncated.0 == Some(true)).and_then(|it| it.output.0.as_deref());
        let error = state.error.map(shape::flatten);
        let output = whole.map(str::to_owned).or_else(|| state.output.map(shape::flatten)).or_else(|| error.clone());
        turn.tool_output(id, None, output.unwrap_or_default());
        let exit = metadata.and_then(|metadata| metadata.exit.0);
        let status = match (state.status.as_deref(), exit) {
            _ if said == "invalid" => Status::Fail,
            (Some("error"), _) => Status::Fail,
            (_, Some(code)) if code != 0 => Status::Fail,
            (Some("completed"), _) => Status::Ok,
            _ => Status::Unknown,
        };
        let duration = state.time.0.as_ref().and_then(|time| time.end.checked_sub(time.start));
        turn.tool_end(id, None, status, duration);
        if let Some(effect) = self.effects.ended(id, status, None) {
            turn.meta(effect);
        }
        let denied =
            |message: &&String| message.contains("rejected permission") || message.contains("prevents you from using");
        if let Some(message) = error.as_ref().filter(denied) {
            self.denial = Some(message.clone());
            turn.meta(Known::Permission {
                input: None,
                tool: name,
                id: Some(id.to_owned()),
                message: Some(message.clone()),
            });
        }
        Ok(())
    }

    fn step_finished(&mut self, part: &Part<'_>, turn: &mut Turn) {
        let compacted = std::mem::take(&mut self.compacting);
        self.reason = part.reason.as_ref().filter(|_| !compacted).map(|reason| reason.to_string());
        let Some(tokens) = &part.tokens else { return };
        let sum =
            |parts: &[Option<u64>]| parts.iter().any(Option::is_some).then(|| parts.iter().flatten().sum::<u64>());
        // Cached tokens and reasoning are counted apart.
        let prompt_tokens = sum(&[tokens.input, tokens.cache.read, tokens.cache.write]);
        let completion_tokens = sum(&[tokens.output, tokens.reasoning]);
        let usage = Usage {
            prompt_tokens,
            completion_tokens,
            total_tokens: tokens.total.or_else(|| sum(&[prompt_tokens, completion_tokens])),
            cached_tokens: tokens.cache.read,
            cache_write_tokens: tokens.cache.write,
            reasoning_tokens: tokens.reasoning,
            cost_usd: part.cost,
            model: None,
        };
        turn.call(&usage);
        turn.usage(usage);
    }
}

impl Reader for Parts {
    fn speaks(json: &str) -> bool {
        let own =
            |kind: &str| matches!(kind, "step_start" | "step_finish" | "text" | "reasoning" | "tool_use" | "error");
        shape::kind(json).is_some_and(|kind| own(&kind)) && json.contains("\"sessionID\":\"ses_")
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        let wire: Wire<'_> = serde_json::from_str(json)?;
        // Other agents have a `text` and an `error`, too.
        let session = wire.session.0.ok_or(Misread::Unknown)?;
        let missing = || Misread::Shape("an event without its part");
        match &*wire.r#type {
            "step_start" => turn.session(&session),
            "text" | "reasoning" => {
                let part = wire.part.ok_or_else(missing)?;
                let text = part.text.ok_or_else(missing)?;
                turn.session(&session);
                let tag = match &*wire.r#type {
                    "reasoning" => Tag::Think,
                    // What the program itself tells the model.
                    _ if part.synthetic.0 == Some(true) || self.compacting => Tag::Sys,
                    _ => Tag::Ai,
                };
                turn.text(tag, None, text.into_string());
            }
            "tool_use" => {
                let part = wire.part.ok_or_else(missing)?;
                turn.session(&session);
                self.tool(&part, turn)?;
            }
            "step_finish" => {
                let part = wire.part.ok_or_else(missing)?;
                turn.session(&session);
                self.step_finished(&part, turn);
            }
            "error" => {
                turn.session(&session);
                self.reason = None;
                let failure = failure(wire.error);
                self.compacting = failure.class == FailureClass::Context;
                turn.failure(failure);
            }
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }

    fn stderr(&mut self, line: &str, _turn: &mut Turn) {
        self.usage_shown |= line.trim() == "Options:";
    }

    fn end(&mut self, exit: Option<Exit>, turn: &mut Turn) {
        if self.usage_shown && exit.is_some_and(|exit| !exit.success()) && !turn.has_spoken() {
            turn.failure(Failure::of(
                FailureClass::Config,
                None,
                "the command line was answered with the list of options",
            ));
        }
        if let (Some("tool-calls"), Some(message)) = (self.reason.as_deref(), &self.denial) {
            turn.failure(Failure::of(FailureClass::Permission, None, message.as_str()));
            turn.end(Some(false), "permission");
        }
        match self.reason.as_deref() {
            Some("stop") if !turn.has_spoken() => {
                turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
                turn.end(Some(false), "stop");
            }
            Some("stop") => turn.end(Some(true), "stop"),
            Some("length") => {
                turn.failure(Failure::of(FailureClass::AgentLimit, None, "the answer was cut at the output limit"));
                turn.end(Some(false), "length");
            }
            // The model's stream was cut; OpenCode asks again and again.
            Some("unknown") => {
                turn.failure(Failure::of(FailureClass::Network, None, "the model's answer was cut"));
                turn.end(Some(false), "unknown");
            }
            Some("content-filter") => {
                turn.failure(Failure::of(FailureClass::Refusal, None, "the model's answer was filtered"));
                turn.end(Some(false), "content-filter");
            }
            _ => {}
        }
    }
}

/// `{"name": …, "data": {"message": …, "statusCode": …}}`.
fn failure(error: Option<&RawValue>) -> Failure {
    let error: Value = error.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let name = error["name"].as_str().unwrap_or_default();
    let data = &error["data"];
    let message = [&data["message"], &error["message"]].into_iter().find_map(Value::as_str);
    let message = message.map_or_else(|| shape::flatten_value(&error), str::to_owned);
    let status = data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    match name {
        "ContextOverflowError" => Failure::of(FailureClass::Context, status, message),
        "ProviderAuthError" => Failure::of(FailureClass::Auth, status, message),
        "MessageOutputLengthError" => Failure::of(FailureClass::AgentLimit, status, message),
        // Its own server, not the model's: the log has the reason.
        "UnknownError" if message.starts_with("Unexpected server error") => {
            Failure::of(FailureClass::Agent, status, message)
        }
        _ => Failure::read(status, message),
    }
}
