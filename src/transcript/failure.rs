//! What kind of failure an agent met: from status codes and error names first, from its words only where
//! they are in error position. It must never be given the agent's own prose.

use std::borrow::Cow;

use serde_json::{Deserializer, Value};

use super::reset::{self, Reset};
use crate::event::{Event, FailureClass, Known};

/// A failure as the agent tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub class: FailureClass,
    /// In the agent's words.
    pub message: String,
    pub status: Option<u16>,
    /// When it will be over.
    pub reset: Option<Reset>,
}

impl Failure {
    /// Reads an error message, with the HTTP status when the agent gives one apart.
    pub(crate) fn read(status: Option<u16>, message: impl Into<String>) -> Self {
        let message = message.into();
        let status = status.or_else(|| status_in(&message));
        let message = unwrapped(&message).unwrap_or(message);
        let class = classify(status, &message).unwrap_or(FailureClass::Agent);
        Self::of(class, status, message)
    }

    /// A failure whose class the dialect gives.
    pub(crate) fn of(class: FailureClass, status: Option<u16>, message: impl Into<String>) -> Self {
        let message = message.into();
        let reset = if class == FailureClass::RateLimit { reset::find(&message) } else { None };
        Self { class, message, status, reset }
    }

    /// The event that tells it.
    pub(crate) fn into_event(self) -> Event {
        let Self { class, message, status, reset } = self;
        let (mut resets_at, mut retry_after_ms, mut resets) = (None, None, None);
        match reset {
            Some(Reset::At(timestamp)) => resets_at = Some(timestamp.to_string()),
            Some(Reset::After(milliseconds)) => retry_after_ms = Some(milliseconds),
            Some(Reset::Words(words)) => resets = Some(words),
            None => {}
        }
        Known::Error { class, message, status, resets_at, retry_after_ms, resets }.into()
    }
}

/// The message inside an API's error object, which many agents print as it came.
fn unwrapped(message: &str) -> Option<String> {
    let at = message.find("{\"error\":")?;
    let object = Deserializer::from_str(&message[at..]).into_iter::<Value>().next()?.ok()?;
    let text = object.get("error")?.get("message")?.as_str()?;
    let lead = message[..at].trim();
    // Also where it is wrapped twice.
    let text = unwrapped(text).unwrap_or_else(|| text.to_owned());
    Some(if lead.is_empty() || lead == "[API Error:" { text } else { format!("{lead} {text}") })
}

/// The class of an error, when status or words tell it.
pub(crate) fn classify(status: Option<u16>, message: &str) -> Option<FailureClass> {
    // A status of 400 or 404 means anything; the others say what they are.
    match status {
        Some(400 | 404 | 422) | None => from_words(message).or_else(|| status.and_then(from_status)),
        Some(status) => from_status(status).or_else(|| from_words(message)),
    }
}

/// The class that an HTTP status means by itself.
pub(crate) const fn from_status(status: u16) -> Option<FailureClass> {
    match status {
        401..=403 | 407 => Some(FailureClass::Auth),
        404 => Some(FailureClass::Config),
        413 => Some(FailureClass::Context),
        429 => Some(FailureClass::RateLimit),
        408 => Some(FailureClass::Network),
        500..=599 => Some(FailureClass::Overload),
        _ => None,
    }
}

/// Words of error messages, the more specific first: a limit text may also speak of logging in, a
/// connection error of a service that is unavailable.
const WORDS: &[(FailureClass, &[&str])] = &[
    (
        FailureClass::Context,
        &[
            "prompt is too long",
            "context length",
            "context_length",
            "context window",
            "maximum number of tokens allowed",
            "input token count",
            "context limit",
            "too many tokens",
            "context overflow",
            "exceeds the context",
            "input is too long",
            "conversation is too long",
            "prompt_too_long",
            "exceeds the maximum length",
        ],
    ),
    (
        FailureClass::Auth,
        &[
            "credit balance",
            "billing_error",
            "insufficient credit",
            "out of credits",
            "payment required",
            "insufficient balance",
        ],
    ),
    (
        FailureClass::RateLimit,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "rate-limit",
            "too many requests",
            "quota",
            "usage limit",
            "session limit",
            "weekly limit",
            "daily limit",
            "hourly limit",
            "limit reached",
            "hit your limit",
            "hit your usage",
            "spend limit",
            "resource_exhausted",
            "resource exhausted",
            "throttl",
            "usage_limit",
        ],
    ),
    (FailureClass::Overload, &["overloaded", "at capacity", "server_is_overloaded", "over capacity"]),
    (
        FailureClass::Network,
        &[
            "econnrefused",
            "econnreset",
            "etimedout",
            "enotfound",
            "eai_again",
            "epipe",
            "connectionrefused",
            "connection refused",
            "connection reset",
            "connection error",
            "connection closed",
            "connection failed",
            "error sending request",
            "unable to connect",
            "couldn't connect",
            "could not connect",
            "failed to connect",
            "fetch failed",
            "socket hang up",
            "getaddrinfo",
            "network error",
            "network is unreachable",
            "dns error",
            "name resolution",
            "stream disconnected",
            "stream ended without",
            "ended without a finish reason",
            "premature close",
            "request timed out",
            "timed out waiting",
            "connect timeout",
            "api error: terminated",
            "server disconnected",
            "cannot connect",
            "peer closed connection",
            "incomplete chunked read",
            "stream closed before",
            "fya_transient_timeout",
        ],
    ),
    (
        FailureClass::Config,
        &[
            "unknown option",
            "unknown argument",
            "unexpected argument",
            "unrecognized argument",
            "unrecognized option",
            "invalid option",
            "invalid command",
            "requires a prompt",
            "invalid value",
            "invalid choice",
            "unknown model",
            "model not found",
            "model_not_found",
            "no such model",
            "is not found for api version",
            "issue with the selected model",
            "trusted directory",
            "not inside a trusted",
            "untrusted",
            "--trust",
            "no conversation found",
            "no saved session found",
            "error resuming session",
            "session not found",
            "no session found",
            "no rollout found",
            "invalid session",
            "is already in use",
            "requires --verbose",
            "not enough arguments",
            "input must be provided",
            "no input provided",
            "no prompt provided",
            "cannot be used with root",
            "inside another claude code session",
            "cannot use both",
            "argument list too long",
            "required argument",
            "missing required",
            "invalid values",
            "user message must be provided",
            "is not supported when using",
            "flag requires",
            "requires a valid",
            "does not exist or you do not have access",
        ],
    ),
    (
        FailureClass::Auth,
        &[
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "api_key_invalid",
            "not logged in",
            "unauthorized",
            "unauthenticated",
            "authentication",
            "authenticate",
            "please run /login",
            "no api key",
            "missing api key",
            "api key is missing",
            "api key not found",
            "no auth",
            "auth method",
            "invalid auth",
            "login required",
            "log in",
            "sign in",
            "forbidden",
            "invalid token",
            "token expired",
            "expired token",
            "credentials",
            "permission_denied",
            "please login",
            "starting login flow",
            "token has expired",
            "token revoked",
            "has been disabled",
            "does not have access",
            "_api_key",
        ],
    ),
    (
        FailureClass::Refusal,
        &[
            "usage policy",
            "content policy",
            "violate our",
            "content_filter",
            "refused to respond",
            "blocked by safety",
            "prohibited_content",
            "due to safety",
        ],
    ),
    (
        FailureClass::AgentLimit,
        &[
            "max turns",
            "max_turns",
            "maximum number of turns",
            "max session turns",
            "maximum session turns",
            "maximum budget",
            "max_budget",
            "turn limit",
            "budget exceeded",
            "output limit",
            "max_output_tokens",
            "output token maximum",
        ],
    ),
    (
        FailureClass::Permission,
        &["permission denied by", "requires permission", "permission was declined", "not allowed to use"],
    ),
    (
        FailureClass::Overload,
        &[
            "internal server error",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
            "server_error",
            "server error",
            "server had an error",
            "temporarily unavailable",
            "server returned an error",
        ],
    ),
    (FailureClass::Network, &["terminated", "timed out", "timeout", "network"]),
];

/// How coding agents begin the line in which they say why they failed.
const OWN_ERRORS: &[&str] = &[
    "error:",
    "error (",
    "error 4",
    "error 5",
    "api error",
    "[api error",
    "you've hit your",
    "you have hit your",
    "you've reached your",
    "you have reached your",
    "usage limit reached",
    "rate limit",
    "claude usage limit reached",
    "claude ai usage limit reached",
    "not logged in",
    "no auth provided",
    "please run /login",
    "invalid api key",
    "credit balance is too low",
    "prompt is too long",
];

/// True when a line of plain text is the agent's own error, not the words of a program that it ran (`npm ERR! 429`), and
/// not the expectation of a test. `more` are further beginnings for this agent.
pub(crate) fn is_own_error(line: &str, more: &[String]) -> bool {
    let line = line.trim_start_matches(|letter: char| !letter.is_alphanumeric() && letter != '[');
    let lower = lowered(line);
    let begins = |form: &str| lower.starts_with(form);
    // pip: `ERROR: HTTP error 429 while getting https://…`
    if lower.contains("http error") && lower.contains("://") {
        return more.iter().any(|form| begins(&form.to_lowercase()));
    }
    let own = more.iter().any(|form| begins(&form.to_lowercase()));
    own || OWN_ERRORS.iter().any(|form| begins(form)) && !lower.contains("expect") && !lower.contains("assert")
}

/// The class that the words of an error message mean.
pub(crate) fn from_words(message: &str) -> Option<FailureClass> {
    let lower = lowered(message);
    let has = |words: &&(FailureClass, &[&str])| words.1.iter().any(|word| lower.contains(word));
    let worded = WORDS.iter().find(has).map(|(class, _)| *class);
    // Words of the last resort give way to a status in the text.
    match worded {
        Some(FailureClass::Network | FailureClass::Overload | FailureClass::Auth) | None => {
            status_in(message).and_then(from_status).filter(|class| *class != FailureClass::Config).or(worded)
        }
        _ => worded,
    }
}

/// An HTTP status in a message: three digits that stand alone, near the beginning or after a word that
/// announces them.
pub(crate) fn status_in(message: &str) -> Option<u16> {
    let bytes = message.as_bytes();
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + offset;
        let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = start + length;
        let before = message[..start].trim_end_matches([' ', '(', '"', '\'', ':', '=', '[']).to_ascii_lowercase();
        let announced = before.is_empty()
            || ["error", "status", "code", "http", "failed", "rejected", "status_code", "statuscode", "request"]
                .iter()
                .any(|word| before.ends_with(word));
        let alone = start == 0 || matches!(bytes[start - 1], b' ' | b'(' | b'"' | b':' | b'=' | b'[');
        let ends = bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_'));
        if length == 3
            && announced
            && alone
            && ends
            && let Ok(status @ 400..=599) = message[start..at].parse()
        {
            return Some(status);
        }
    }
    None
}

/// Lower case, and only so much as an error message has.
fn lowered(message: &str) -> Cow<'_, str> {
    const MOST: usize = 20_000;
    Cow::Owned(message[..message.floor_char_boundary(MOST)].to_ascii_lowercase())
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
