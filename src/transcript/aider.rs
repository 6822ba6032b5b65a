//! Aider: text only, with aider's own lines between the agent's. It exits with 0 whatever happened.
//!
//! Only lines that aider is known to print are taken for its own; everything else is the agent's words.

use serde_json::json;

use super::amounts;
use super::failure::Failure;
use super::jsonl::was_stopped;
use super::plain::Plain;
use super::tail::Tail;
use super::turn::Turn;
use super::{Adapter, Capabilities, Context, Dialect, Messages, stderr_text, strip_ansi};
use crate::event::{Event, FailureClass, FileChange, Known, Status, Tag, Usage};
use crate::process::{Exit, Line, Part};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "aider",
    capabilities: Capabilities { roles: true, tools: true, usage: true, prompt_hiding: true, session: false },
    messages: Messages::Lines,
    speaks: |line| line.starts_with("Aider v"),
    adapter: |context| Box::new(Aider::new(context)),
};

struct Aider {
    turn: Turn,
    plain: Plain,
    tail: Tail,
    place: Place,
    edits: usize,
    /// What went wrong since the agent last spoke.
    trouble: Option<Failure>,
    answered: bool,
    /// A ruler is over the thoughts; until they come it may be the agent's own.
    ruler: Option<String>,
}

/// Where in the output a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the blank line that ends the header.
    Setup,
    Header,
    Answer,
    Thinking,
    /// Aider's account of an error, up to a blank line.
    Error,
    /// Its account of a limit, up to the end.
    Limit,
}

impl Aider {
    fn new(context: &Context) -> Self {
        Self {
            turn: Turn::default(),
            plain: Plain::new(context),
            tail: Tail::default(),
            place: Place::Setup,
            edits: 0,
            trouble: None,
            answered: false,
            ruler: None,
        }
    }

    fn take(&mut self, line: Line<'_>) {
        let text = line.text();
        let text = strip_ansi(&text);
        let text = text.trim_end();
        if matches!(self.place, Place::Setup | Place::Header) {
            return self.header(text);
        }
        if self.place == Place::Answer && is_ruler(text) && self.ruler.is_none() {
            self.ruler = Some(text.to_owned());
            return;
        }
        if let Some(ruler) = self.ruler.take().filter(|_| text != "► **THINKING**") {
            self.words(Line::whole(ruler.as_bytes()));
        }
        if self.own(text) {
            return;
        }
        match self.place {
            Place::Thinking if is_ruler(text) || text.is_empty() => {}
            Place::Thinking => self.turn.text(Tag::Think, None, text),
            Place::Error if text.is_empty() => self.place = Place::Answer,
            Place::Error | Place::Limit => self.system(text),
            Place::Setup | Place::Header | Place::Answer => self.words(line),
        }
    }

    fn system(&mut self, text: &str) {
        self.tail.push(text);
        self.turn.text(Tag::Sys, None, text);
    }

    fn header(&mut self, text: &str) {
        if let Some(version) = text.strip_prefix("Aider v") {
            self.place = Place::Header;
            self.turn.version(version);
        } else if let Some(rest) = text.strip_prefix("Model: ") {
            self.turn.model(rest.split_whitespace().next().unwrap_or_default());
        } else if text.is_empty() && self.place == Place::Header {
            self.place = Place::Answer;
        }
        self.system(text);
    }

    fn words(&mut self, line: Line<'_>) {
        if !line.bytes.trim_ascii().is_empty() {
            self.trouble = None;
            self.answered = true;
        }
        let mut out = Vec::new();
        self.plain.line(line, &mut out);
        self.turn.append(out);
    }

    /// True for a line that aider itself prints.
    fn own(&mut self, text: &str) -> bool {
        if text == "► **THINKING**" {
            self.place = Place::Thinking;
        } else if text == "► **ANSWER**" {
            self.place = Place::Answer;
        } else if let Some(counts) = text.strip_prefix("Tokens: ").filter(|counts| counts.contains(" sent")) {
            self.place = if self.place == Place::Limit { Place::Limit } else { Place::Answer };
            self.turn.usage(tokens(counts));
            self.system(text);
        } else if let Some(path) = text.strip_prefix("Applied edit to ") {
            self.edit(path, Status::Ok);
        } else if text.starts_with("The LLM did not conform to the edit format")
            || text.starts_with("Did not apply edit")
        {
            self.edit(text, Status::Fail);
        } else if let Some(rest) = text.strip_prefix("litellm.") {
            self.place = Place::Error;
            self.trouble = Some(failure(rest, text));
            self.system(text);
        } else if let Some(rest) = text.strip_prefix("Retrying in ") {
            if let Some(trouble) = self.trouble.clone() {
                let seconds: Option<f64> = rest.split_whitespace().next().and_then(|number| number.parse().ok());
                self.turn.retry(trouble, None, seconds.map(milliseconds));
            }
            self.system(text);
        } else if text.starts_with("Model ") && text.ends_with(" has hit a token limit!") {
            self.place = Place::Limit;
            self.trouble = Some(Failure::of(FailureClass::Context, None, text));
            self.system(text);
        } else if text.starts_with("Empty response received from LLM") {
            self.trouble = Some(Failure::of(FailureClass::Agent, None, text));
            self.system(text);
        } else if is_notice(text) {
            self.system(text);
        } else {
            return false;
        }
        true
    }

    /// An edit that aider made, or could not make, out of the agent's words.
    fn edit(&mut self, what: &str, status: Status) {
        self.edits += 1;
        let id = format!("edit_{}", self.edits);
        let input = (status == Status::Ok).then(|| json!({"path": what})).and_then(|input| input.as_object().cloned());
        self.turn.tool_start(&id, None, "edit", input);
        if status == Status::Fail {
            self.turn.tool_output(&id, None, what);
        }
        self.turn.tool_end(&id, None, status, None);
        if status == Status::Ok {
            let changes = vec![FileChange { path: what.to_owned(), change: Some("update".to_owned()) }];
            self.turn.meta(Known::Files { changes });
        }
    }
}

impl Adapter for Aider {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        if line.part == Part::Whole {
            self.take(line);
        } else {
            self.words(line);
        }
        self.turn.swap(out);
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        self.tail.push(&line.text());
        self.turn.event(stderr_text(line));
        self.turn.swap(out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        if let Some(ruler) = self.ruler.take() {
            self.words(Line::whole(ruler.as_bytes()));
        }
        let mut rest = Vec::new();
        self.plain.flush(&mut rest);
        self.turn.append(rest);
        let failed = exit.is_some_and(|exit| !exit.success());
        let stopped = exit.is_some_and(was_stopped);
        let failure = match exit {
            _ if self.trouble.is_some() => self.trouble.take(),
            Some(exit) if failed => self.tail.failure(exit, None).filter(|_| !stopped),
            _ if !self.answered => Some(Failure::of(FailureClass::Agent, None, "the answer was empty")),
            _ => None,
        };
        self.turn.close_by_exit(exit, failure);
        self.turn.swap(out);
    }
}

fn is_ruler(text: &str) -> bool {
    text.len() > 3 && text.bytes().all(|byte| byte == b'-')
}

/// Short lines that aider prints after an answer.
fn is_notice(text: &str) -> bool {
    const BEGINNINGS: [&str; 5] = [
        "https://aider.chat/",
        "No filename provided before",
        "Only 3 reflections allowed",
        "Add file to the chat?",
        "You can skip this check with",
    ];
    let commit = text.strip_prefix("Commit ").and_then(|rest| rest.split_once(' '));
    commit.is_some_and(|(hash, _)| hash.len() == 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// `1.2k sent, 400 cache hit, 42 received. Cost: $0.01 message, $0.02 session.`
fn tokens(counts: &str) -> Usage {
    let mut usage = Usage::default();
    let (counts, cost) = counts.split_once(" Cost: $").map_or((counts, None), |(counts, cost)| (counts, Some(cost)));
    for part in counts.split(", ") {
        let Some((number, what)) = part.split_once(' ') else { continue };
        match what.trim_end_matches('.') {
            "sent" => usage.prompt_tokens = amounts::read(number),
            "received" => usage.completion_tokens = amounts::read(number),
            "cache hit" => usage.cached_tokens = amounts::read(number),
            "cache write" => usage.cache_write_tokens = amounts::read(number),
            _ => {}
        }
    }
    usage.cost_usd = cost.and_then(|cost| cost.split_whitespace().next()?.parse().ok());
    usage
}

/// An exception of the library that aider calls models with.
fn failure(name: &str, text: &str) -> Failure {
    let class = match name.split(':').next().unwrap_or_default() {
        "AuthenticationError" | "PermissionDeniedError" => FailureClass::Auth,
        "RateLimitError" => FailureClass::RateLimit,
        "InternalServerError" | "ServiceUnavailableError" | "BadGatewayError" => FailureClass::Overload,
        "ContextWindowExceededError" => FailureClass::Context,
        "APIConnectionError" | "Timeout" => FailureClass::Network,
        "NotFoundError" => FailureClass::Config,
        "ContentPolicyViolationError" => FailureClass::Refusal,
        _ => return Failure::read(None, text),
    };
    Failure::of(class, None, text)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a wait of some minutes")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e6) * 1000.0) as u64
}
