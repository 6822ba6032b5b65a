//! Notifies a person that a run is over, blocked or waiting: by a command of theirs, or through a web service.
//!
//! It sees records, after secrets were taken out of them. It must never hold the run, and never fail it.

pub(crate) mod channels;
pub(crate) mod webhook;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use channels::Channel;

use crate::event::FailureClass;
use crate::journal::{Body, Fact, Outcome, Record};
use crate::process::{self, Invocation, RUN_ID, Stdin};

/// The longest that a run waits for a notification at its end.
const PATIENCE: Duration = Duration::from_secs(10);
/// As long as this it waits even when the time of the run is over.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);
/// A wait of this length is worth a notice, whatever it is for.
const LONG_WAIT_MS: u64 = 60_000;
/// How much of what a command says is kept for a warning.
const MOST_SAID: usize = 2000;

/// What is worth a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Complete,
    /// The run ended without that.
    Failed,
    /// The agent asks for a person.
    Blocked,
    /// The run waits for a limit to pass.
    Waiting,
}

impl Moment {
    pub(crate) const ALL: [Self; 4] = [Self::Complete, Self::Failed, Self::Blocked, Self::Waiting];

    /// Its name, as commands and web services get it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
        }
    }

    /// What an end of a run is. One whom a person ended is known to that person.
    const fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Complete => Some(Self::Complete),
            Outcome::Human => Some(Self::Blocked),
            Outcome::Interrupted => None,
            Outcome::Failed | Outcome::AgentUnusable | Outcome::Limit | Outcome::NoProgress | Outcome::RateLimited => {
                Some(Self::Failed)
            }
        }
    }
}

/// When and how to notify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notify {
    pub on: Vec<Moment>,
    pub command: Option<Vec<String>>,
    pub channels: Vec<Channel>,
    /// By the terminal itself, which is the view's part.
    pub terminal: bool,
}

impl Notify {
    /// What keeps the command from running, found before the run starts.
    pub(crate) fn problem(&self, workspace: &Path) -> Option<String> {
        let argv = self.command.as_ref()?;
        let error = process::check(&Invocation::new(argv.first()?, workspace)).err()?;
        Some(format!("notifications will fail: {error}; fix `notify.command`, and try it with `ralph notify --test`"))
    }

    /// Sends one notification by every channel. Says for each how it went.
    pub(crate) async fn test(&self, workspace: &Path) -> Vec<(String, Result<(), String>)> {
        let mut facts = Map::new();
        facts.insert("notice".to_owned(), json!("test"));
        facts.insert("reason".to_owned(), json!("a test of the notifications"));
        facts.insert("workspace".to_owned(), json!(workspace.display().to_string()));
        let message: Arc<[u8]> = Value::Object(facts.clone()).to_string().into_bytes().into();
        let mut sent = Vec::new();
        if let Some(argv) = &self.command {
            let name = argv.join(" ");
            let result = run(invocation(argv, workspace, &facts, message.clone()), name.clone()).await;
            sent.push((format!("`{name}`"), result));
        }
        for channel in &self.channels {
            sent.push((channel.name().to_owned(), send(channel, &facts).await));
        }
        sent
    }
}

/// Watches the records of a run, and notifies.
#[derive(Debug)]
pub(crate) struct Notifier {
    notify: Notify,
    workspace: PathBuf,
    /// What is known of the run; each notice has it.
    facts: Map<String, Value>,
    class: Option<FailureClass>,
    under_way: Vec<JoinHandle<Result<(), String>>>,
    /// How long the end of the run waits for them.
    patience: Duration,
}

impl Notifier {
    /// For a run in this directory.
    pub(crate) fn new(notify: Notify, workspace: PathBuf) -> Self {
        Self { notify, workspace, facts: Map::new(), class: None, under_way: Vec::new(), patience: PATIENCE }
    }

    /// Looks at a record; a notice goes its own way. Call it inside a tokio runtime.
    pub(crate) fn see(&mut self, record: &Record) {
        let Body::Loop(fact) = &record.body else { return };
        match fact {
            Fact::RunStart { run, agent, workspace, .. } => {
                self.know(json!({"run": run, "agent": agent, "workspace": workspace}));
            }
            Fact::IterationStart { iteration, agent: Some(agent), .. } => {
                self.know(json!({"iteration": iteration, "agent": agent}));
            }
            Fact::IterationEnd { receipt } => self.class = receipt.class,
            Fact::Decision { reason, wait_ms: Some(wait_ms), .. }
                if *wait_ms >= LONG_WAIT_MS || self.class == Some(FailureClass::RateLimit) =>
            {
                let until = record.at.checked_add(Duration::from_millis(*wait_ms)).ok().map(|until| until.to_string());
                self.tell(Moment::Waiting, reason, json!({"wait_ms": wait_ms, "until": until}));
            }
            Fact::RunEnd { outcome, reason, exit_code, iterations, duration_ms, cost, question, .. } => {
                let Some(moment) = Moment::of(*outcome) else { return };
                let facts = json!({
                    "outcome": outcome, "exit_code": exit_code, "iterations": iterations, "duration_ms": duration_ms,
                    "cost_usd": cost.map(|cost| cost.usd), "question": question,
                });
                self.tell(moment, reason, facts);
            }
            _ => {}
        }
    }

    /// The run has this much time left.
    pub(crate) fn hurry(&mut self, left: Duration) {
        self.patience = left.clamp(LEAST_PATIENCE, PATIENCE);
    }

    /// Waits for the notices that are still on their way, but not for long. Says what went wrong.
    pub(crate) async fn finish(self) -> Vec<String> {
        let mut wrong = Vec::new();
        let end = tokio::time::Instant::now() + self.patience;
        for mut sending in self.under_way {
            match tokio::time::timeout_at(end, &mut sending).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(message))) => wrong.push(message),
                Ok(Err(error)) => wrong.push(error.to_string()),
                Err(_) => {
                    sending.abort();
                    // Its process is ended before this returns.
                    let _ = sending.await;
                    wrong
                        .push(format!("stopped after {} s, because the run had no more time", self.patience.as_secs()));
                }
            }
        }
        wrong
    }

    fn know(&mut self, facts: Value) {
        if let Value::Object(facts) = facts {
            self.facts.extend(facts.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }

    fn tell(&mut self, moment: Moment, reason: &str, more: Value) {
        if !self.notify.on.contains(&moment) {
            return;
        }
        let known = self.facts.clone();
        self.know(json!({"notice": moment.name(), "reason": reason}));
        self.know(more);
        let facts = std::mem::replace(&mut self.facts, known);
        let message: Arc<[u8]> = Value::Object(facts.clone()).to_string().into_bytes().into();
        if let Some(argv) = self.notify.command.clone() {
            let invocation = invocation(&argv, &self.workspace, &facts, message.clone());
            self.under_way.push(tokio::spawn(run(invocation, argv.join(" "))));
        }
        for channel in self.notify.channels.clone() {
            let facts = facts.clone();
            self.under_way.push(tokio::spawn(async move { send(&channel, &facts).await }));
        }
    }
}

async fn send(channel: &Channel, facts: &Map<String, Value>) -> Result<(), String> {
    let (address, body) = channel.request(facts);
    let sent = webhook::post(address, body.to_string().into_bytes().into()).await;
    sent.map_err(|reason| format!("{}: {reason}", channel.name()))
}

/// The user's command: the facts as variables, and all of them as JSON on its standard input.
fn invocation(argv: &[String], workspace: &Path, facts: &Map<String, Value>, message: Arc<[u8]>) -> Invocation {
    let mut invocation = Invocation::new(argv.first().map_or("", String::as_str), workspace);
    invocation.args = argv.iter().skip(1).map(OsString::from).collect();
    invocation.stdin = Stdin::Bytes(message);
    for (variable, fact) in [
        ("RALPH_NOTICE", "notice"),
        ("RALPH_REASON", "reason"),
        (RUN_ID, "run"),
        ("RALPH_AGENT", "agent"),
        ("RALPH_WORKSPACE", "workspace"),
        ("RALPH_EXIT_CODE", "exit_code"),
    ] {
        let value = facts.get(fact).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        // No variable can hold a zero byte.
        invocation.env.set.extend(value.map(|value| (variable.into(), value.replace('\0', "").into())));
    }
    invocation
}

/// Runs the user's command.
async fn run(invocation: Invocation, name: String) -> Result<(), String> {
    let said = process::capture(invocation, PATIENCE, MOST_SAID).await;
    let said = said.map_err(|error| format!("cannot run `{name}`: {error}"))?;
    match said.exit {
        Some(exit) if exit.success() => Ok(()),
        Some(_) => {
            let words = String::from_utf8_lossy(&said.stderr);
            Err(format!("`{name}` failed: {}", words.lines().next().unwrap_or("no output")))
        }
        None => Err(format!("`{name}` was stopped after {} s", PATIENCE.as_secs())),
    }
}

#[cfg(test)]
#[path = "notify/tests.rs"]
mod tests;
