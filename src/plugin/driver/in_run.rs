//! The driver contract in the loop: prompt file, loop context, session, display, status file.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::answer::{self, Answer};
use super::status_file::{self, Status};
use super::{Driver, context, session_id};
use crate::agent::{PluginFile, Turn};
use crate::error::UserError;
use crate::event::FailureClass;
use crate::journal::Outcome;
use crate::plugin::attempt::Attempt;
use crate::plugin::bash::jq::Call;
use crate::process::{Invocation, PrivateFile};
use crate::run::filter::Display;
use crate::run::iteration::Iteration;
use crate::run::iteration_result::IterationResult;
use crate::run::plugins::{Output, Steps, Upcoming};
use crate::run::prompt::Source;
use crate::signals::promise::Rule;
use crate::signals::{Signal, denial, status_block};
use crate::user_file;

/// Where the contract keeps the session for the next run.
const SESSION: &str = ".ralph/.claude_session_id";
/// What else it keeps of it.
const SESSION_FACTS: &str = ".ralph/.ralph_session";
/// The most that files with an id may have.
const SMALL: u64 = 64 * 1024;
/// How long a session is good for when nothing is said.
const EXPIRY_HOURS: u64 = 24;

pub(crate) struct DriverInRun {
    driver: Driver,
    name: String,
    workspace: PathBuf,
    /// Whether an iteration learns about the ones before.
    continuity: bool,
    /// Whether sessions go on from one iteration to the next.
    goes_on: bool,
    /// What counts as completion.
    rule: Option<Rule>,
    expiry: Duration,
    /// The session that an earlier run left; it is looked at once.
    earlier: Option<String>,
    /// What the agent said last.
    summary: Option<String>,
    filter: Option<String>,
    /// The program that evaluates the filter.
    helper: PathBuf,
    status: Status,
}

impl Steps for DriverInRun {
    /// Calls the hooks and makes the iteration theirs.
    async fn before(&mut self, next: &Upcoming<'_>, iteration: &mut Iteration<'_>) -> Result<Vec<String>, UserError> {
        for (name, value) in &next.environment {
            self.driver.export(&name.to_string_lossy(), &value.to_string_lossy()).await?;
        }
        self.rule = Some(iteration.rule.clone());
        let words = iteration.context.prompts.last().cloned().unwrap_or_default();
        let session = if self.goes_on { iteration.resumes.take().or_else(|| self.earlier.take()) } else { None };
        let context = self.context(iteration, session.is_some(), next.plan_file.as_deref());
        let mut files = Vec::new();
        let prompt_file = match next.prompt {
            Source::File(path) => path.clone(),
            Source::Text { .. } | Source::Mode { .. } => {
                let directory = std::env::temp_dir();
                let file = PrivateFile::new(&directory, words.as_bytes()).map_err(|error| {
                    UserError::failed(format!("cannot write the prompt to `{}`: {error}", directory.display()))
                })?;
                let path = file.path().to_owned();
                files.push(file);
                path
            }
        };
        let id = session.clone().unwrap_or_default();
        let built = self.driver.build(&prompt_file, &context, &id, &self.workspace).await?;
        let mut notices = built.notices;
        let Invocation { link, leave_running, .. } = iteration.invocation;
        iteration.invocation = Invocation { link, leave_running, files, ..built.invocation };
        iteration.resumes = session;
        iteration.prompt_bytes = words.len() + context.len();
        iteration.context.prompts = vec![format!("{context}\n\n{words}"), words];
        iteration.display = self.display(&mut notices);
        self.status.begin(iteration.number);
        status_file::write(&self.workspace, &self.status);
        Ok(notices)
    }

    /// Finds the session, and what the contract sees in the answer.
    async fn after(&mut self, result: &mut IterationResult, output: &Output) -> Result<Vec<String>, UserError> {
        let mut notices = Vec::new();
        self.read_answer(result, output);
        let class = result.report.failure.as_ref().map(|failure| failure.class);
        if result.ended_well() && result.assumed && result.answered && class == Some(FailureClass::Agent) {
            result.forgive();
        }
        if self.filter.is_some() && !result.displayed && result.answered {
            self.filter = None;
            notices
                .push("`driver_stream_filter` showed nothing of the answer; ralph shows the output itself".to_owned());
        }
        let succeeded = result.report.failure.is_none();
        if self.driver.facts.sessions && succeeded {
            let told = result.receipt.session.take();
            let tried = self.driver.session(output, told.as_deref()).await?;
            if self.goes_on {
                self.keep(tried.as_deref(), &mut notices);
            }
            result.receipt.session = tried;
        }
        if result.report.resumed && !result.answered && !succeeded {
            // It was refused, and the next run must not try it again.
            let _ = std::fs::remove_file(self.workspace.join(SESSION));
        }
        let words = &result.heard.last_words;
        if result.report.denied.is_empty() && denial::in_answer(words) {
            let denied = "permission_denied".to_owned();
            result.report.denied.push(denied.clone());
            result.receipt.denied.push(denied);
        }
        if !result.report.denied.is_empty() {
            notices.push(format!("not permitted: {}", result.report.denied.join(", ")));
        }
        let said = words.split(status_block::BEGIN).next().unwrap_or_default().trim();
        self.summary = (!said.is_empty()).then(|| said.to_owned());
        self.status.end(&result.report.ended, succeeded);
        status_file::write(&self.workspace, &self.status);
        Ok(notices)
    }

    /// The run is over. A session whose work is done is not resumed.
    async fn end(mut self, outcome: Outcome, reason: &str) {
        if outcome == Outcome::Complete {
            let _ = std::fs::remove_file(self.workspace.join(SESSION));
        }
        self.status.finish(outcome, reason);
        status_file::write(&self.workspace, &self.status);
        self.driver.close().await;
    }
}

impl DriverInRun {
    pub(crate) async fn load(next: &Upcoming<'_>, file: &PluginFile) -> Result<Self, UserError> {
        let turn = Turn { environment: next.environment.clone(), ..Turn::new("", next.workspace) };
        let driver = Driver::load(file, next.workspace, next.agent.environment(&turn)).await?;
        Self::new(driver, next, file).await
    }

    /// A driver that was loaded. Looks for a session that an earlier run left.
    pub(crate) async fn new(mut driver: Driver, next: &Upcoming<'_>, file: &PluginFile) -> Result<Self, UserError> {
        let (agent, workspace) = (next.agent, next.workspace);
        let filter = driver.filter().await?;
        let global =
            |name: &str| file.globals.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let continuity = global("CLAUDE_USE_CONTINUE") == Some("true");
        let goes_on = continuity && driver.facts.sessions;
        let hours = global("SESSION_EXPIRY_HOURS").and_then(|hours| hours.parse().ok()).unwrap_or(EXPIRY_HOURS);
        let most_calls = global("MAX_CALLS_PER_HOUR").and_then(|calls| calls.parse().ok());
        let mut loaded = Self {
            driver,
            name: agent.id().to_owned(),
            workspace: workspace.to_owned(),
            continuity,
            goes_on,
            rule: None,
            expiry: Duration::from_secs(hours * 3600),
            earlier: None,
            summary: None,
            filter,
            helper: file.helper.clone(),
            status: Status::new(most_calls),
        };
        loaded.earlier = loaded.kept();
        Ok(loaded)
    }

    /// What the loop tells the agent. Without continuity only what it must hear.
    fn context(&self, iteration: &Iteration<'_>, resumed: bool, plan_file: Option<&Path>) -> String {
        let plan =
            plan_file.and_then(|path| user_file::read_text(&self.workspace.join(path), user_file::MOST_BYTES).ok());
        let facts = context::Facts {
            iteration: iteration.number,
            resumed,
            plan: plan.as_deref(),
            remarks: &iteration.remarks,
            summary: self.summary.as_deref(),
        };
        if self.continuity || !iteration.remarks.is_empty() { context::loop_context(&facts) } else { String::new() }
    }

    /// The filter as a process of its own: a program that never ends must not hold the run up.
    fn display(&mut self, notices: &mut Vec<String>) -> Option<Display> {
        let args = ["-j".to_owned(), self.filter.clone()?];
        if let Err(refused) = Call::parse(&args).and_then(|call| call.compile().map(|_| ())) {
            notices.push(format!("`driver_stream_filter`: {}; ralph shows the output itself", refused.0));
            self.filter = None;
            return None;
        }
        let words = ["jq-service", "lines", "--"].map(str::to_owned).into_iter().chain(args);
        let invocation =
            Invocation { args: words.map(Into::into).collect(), ..Invocation::new(&self.helper, &self.workspace) };
        Some(Display { invocation, state: Vec::new() })
    }

    /// Takes the answer from an output whose shape no dialect knows.
    fn read_answer(&self, result: &mut IterationResult, output: &Output) {
        if !result.ended_well() || matches!(result.report.signal, Some(Signal::Complete { .. })) {
            return;
        }
        let bytes = Attempt::of(output).and_then(|attempt| user_file::read(attempt.path(), answer::LARGEST));
        let Some(answer) = bytes.ok().and_then(|bytes| Answer::read(&bytes)) else { return };
        let Some(rule) = self.rule.clone() else { return };
        let heard = answer.heard(rule);
        result.report.signal = heard.signal.or_else(|| result.report.signal.take());
        result.answered |= result.report.signal.is_some();
        if !answer.text.trim().is_empty() {
            result.answered = true;
            result.heard.last_words = heard.last_words;
        }
        if result.report.denied.is_empty() {
            result.report.denied.clone_from(&answer.denied);
            result.receipt.denied = answer.denied;
        }
    }

    /// The session that an earlier run of the same driver left, if it is not too old.
    fn kept(&self) -> Option<String> {
        if !self.goes_on {
            return None;
        }
        let path = self.workspace.join(SESSION);
        let used = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
        let age = SystemTime::now().duration_since(used).unwrap_or_default();
        let facts = user_file::read_text(&self.workspace.join(SESSION_FACTS), SMALL).unwrap_or_default();
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap_or_default();
        let other = facts["driver"].as_str().is_some_and(|driver| driver != self.name);
        if age > self.expiry || other {
            // An old one is no use, and one of another driver would be wrong.
            let _ = std::fs::remove_file(path);
            return None;
        }
        session_id::usable(&user_file::read_text(&path, SMALL).ok()?)
    }

    /// Leaves the session for the next run.
    fn keep(&self, id: Option<&str>, notices: &mut Vec<String>) {
        let Some(id) = id else { return };
        let now = jiff::Timestamp::now().to_string();
        let facts = json!({"session_id": id, "driver": self.name, "last_used": now});
        let written = user_file::replace(&self.workspace, &self.workspace.join(SESSION), id).and_then(|()| {
            user_file::replace(&self.workspace, &self.workspace.join(SESSION_FACTS), &format!("{facts}\n"))
        });
        if let Err(error) = written {
            notices.push(format!("the session cannot be kept in `{SESSION}`: {error}"));
        }
    }
}
