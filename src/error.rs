//! Errors that a person reads, and the exit codes that a script reads.
//!
//! Modules below have their own error types; at the top everything becomes a [`UserError`].

use std::fmt;

/// Exit codes: public API, they never change their meaning.
pub(crate) mod exit_code {
    /// The work is complete.
    pub(crate) const COMPLETE: u8 = 0;
    pub(crate) const FAILED: u8 = 1;
    /// Wrong usage or configuration; nothing was run.
    pub(crate) const USAGE: u8 = 2;
    /// The agent asks for a replan or for a human.
    pub(crate) const HUMAN: u8 = 3;
    /// The agent is not usable: missing, not logged in, not permitted.
    pub(crate) const AGENT: u8 = 4;
    /// A limit ended the run: iterations, time, tokens, money.
    pub(crate) const LIMIT: u8 = 5;
    /// The run made no progress.
    pub(crate) const NO_PROGRESS: u8 = 6;
    /// Rate-limited beyond the allowed wait.
    pub(crate) const RATE_LIMITED: u8 = 7;
}

/// What kind of error it is; it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Usage, configuration, the directory: nothing was run.
    Usage,
    /// The agent cannot be started.
    Agent,
    /// Something failed under way.
    Failed,
}

/// A message that says what and where, and hints that say what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserError {
    pub kind: Kind,
    /// What happened, and where.
    pub message: String,
    pub hints: Vec<String>,
}

impl UserError {
    /// An error of usage or configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hints: Vec::new() }
    }

    /// An agent that cannot be used.
    pub(crate) fn agent(message: impl Into<String>) -> Self {
        Self { kind: Kind::Agent, message: message.into(), hints: Vec::new() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The exit code for scripts.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Usage => exit_code::USAGE,
            Kind::Agent => exit_code::AGENT,
            Kind::Failed => exit_code::FAILED,
        }
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(formatter, "\nhint: {hint}"))
    }
}

impl std::error::Error for UserError {}

/// An I/O error in a person's words, without the number.
pub(crate) fn io_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
