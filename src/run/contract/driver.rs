//! The driver contract in the loop: prompt file, loop context, session, display, status file.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::status_file::{self, Status};
use super::{Output, Stage};
use crate::agent::driver::{Driver, context};
use crate::agent::jq::Call;
use crate::agent::{Turn, driver::session_id};
use crate::error::UserError;
use crate::event::FailureClass;
use crate::journal::Outcome;
use crate::process::{Invocation, PrivateFile};
use crate::run::filter::Display;
use crate::run::iteration::{Iteration, Played};
use crate::run::prompt::Source;
use crate::signals::{denial, status_block};

/// Where the contract keeps the session for the next run.
const SESSION: &str = ".ralph/.claude_session_id";
/// What else it keeps of it.
const SESSION_FACTS: &str = ".ralph/.ralph_session";
/// How long a session is good for when nothing is said.
const EXPIRY_HOURS: u64 = 24;

/// A driver of the run.
pub struct OfDriver {
    driver: Driver,
    name: String,
    workspace: PathBuf,
    /// Whether sessions go on from one iteration to the next.
    goes_on: bool,
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

impl OfDriver {
    /// Loads the driver, and looks for a session that goes on.
    pub async fn load(stage: &Stage<'_>, workspace: &Path) -> Result<Self, UserError> {
        let agent = stage.agent;
        let foreign = agent.foreign.as_ref().ok_or_else(|| UserError::failed("the agent is no driver"))?;
        let turn = Turn { environment: stage.environment.clone(), ..Turn::new("", workspace) };
        let mut driver = Driver::load(foreign, workspace, agent.environment(&turn)).await?;
        let filter = driver.filter().await?;
        let global =
            |name: &str| foreign.globals.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let goes_on = global("CLAUDE_USE_CONTINUE") == Some("true") && driver.facts.sessions;
        let hours = global("SESSION_EXPIRY_HOURS").and_then(|hours| hours.parse().ok()).unwrap_or(EXPIRY_HOURS);
        let most_calls = global("MAX_CALLS_PER_HOUR").and_then(|calls| calls.parse().ok());
        let mut loaded = Self {
            driver,
            name: agent.id().to_owned(),
            workspace: workspace.to_owned(),
            goes_on,
            expiry: Duration::from_secs(hours * 3600),
            earlier: None,
            summary: None,
            filter,
            helper: foreign.helper.clone(),
            status: Status::new(most_calls),
        };
        loaded.earlier = loaded.kept();
        Ok(loaded)
    }

    /// Calls the hooks and makes the iteration theirs.
    pub async fn prepare(
        &mut self,
        stage: &Stage<'_>,
        iteration: &mut Iteration<'_>,
    ) -> Result<Vec<String>, UserError> {
        for (name, value) in &stage.environment {
            self.driver.export(&name.to_string_lossy(), &value.to_string_lossy()).await?;
        }
        let words = iteration.context.prompts.last().cloned().unwrap_or_default();
        let session = if self.goes_on { iteration.resumes.take().or_else(|| self.earlier.take()) } else { None };
        let context = self.context(iteration, session.is_some(), stage.plan_file.as_deref());
        let mut files = Vec::new();
        let prompt_file = match stage.prompt {
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

    /// What the loop tells the agent. Without continuity only what it must hear.
    fn context(&self, iteration: &Iteration<'_>, resumed: bool, plan_file: Option<&Path>) -> String {
        let plan = plan_file.and_then(|path| std::fs::read_to_string(self.workspace.join(path)).ok());
        let facts = context::Facts {
            iteration: iteration.number,
            resumed,
            plan: plan.as_deref(),
            remarks: &iteration.remarks,
            summary: self.summary.as_deref(),
        };
        if self.goes_on || !iteration.remarks.is_empty() { context::loop_context(&facts) } else { String::new() }
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

    /// Finds the session, and what the contract sees in the answer.
    pub async fn conclude(&mut self, played: &mut Played, output: &Output) -> Result<Vec<String>, UserError> {
        let mut notices = Vec::new();
        let class = played.report.failure.as_ref().map(|failure| failure.class);
        if played.ended_well() && played.assumed && class == Some(FailureClass::Agent) {
            played.forgive();
        }
        let succeeded = played.report.failure.is_none();
        if self.driver.facts.sessions && succeeded {
            let told = played.receipt.session.take();
            let tried = self.driver.session(&output.path, told.as_deref()).await?;
            if self.goes_on {
                self.keep(tried.as_deref(), &mut notices);
            }
            played.receipt.session = tried;
        }
        if played.report.resumed && !played.answered && !succeeded {
            // It was refused, and the next run must not try it again.
            let _ = std::fs::remove_file(self.workspace.join(SESSION));
        }
        let words = &played.heard.last_words;
        if played.report.denied.is_empty() && denial::in_answer(words) {
            let denied = "permission_denied".to_owned();
            played.report.denied.push(denied.clone());
            played.receipt.denied.push(denied);
        }
        let said = words.split(status_block::BEGIN).next().unwrap_or_default().trim();
        self.summary = (!said.is_empty()).then(|| said.to_owned());
        self.status.end(&played.report.ended, succeeded);
        status_file::write(&self.workspace, &self.status);
        Ok(notices)
    }

    /// The session that an earlier run of the same driver left, if it is not too old.
    fn kept(&self) -> Option<String> {
        if !self.goes_on {
            return None;
        }
        let path = self.workspace.join(SESSION);
        let used = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
        let age = SystemTime::now().duration_since(used).unwrap_or_default();
        let facts = std::fs::read_to_string(self.workspace.join(SESSION_FACTS)).unwrap_or_default();
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap_or_default();
        let other = facts["driver"].as_str().is_some_and(|driver| driver != self.name);
        if age > self.expiry || other {
            // An old one is no use, and one of another driver would be wrong.
            let _ = std::fs::remove_file(path);
            return None;
        }
        session_id::usable(&std::fs::read_to_string(path).ok()?)
    }

    /// Leaves the session for the next run.
    fn keep(&self, id: Option<&str>, notices: &mut Vec<String>) {
        let Some(id) = id else { return };
        let now = jiff::Timestamp::now().to_string();
        let facts = json!({"session_id": id, "driver": self.name, "last_used": now});
        let written = status_file::replace(&self.workspace.join(SESSION), id)
            .and_then(|()| status_file::replace(&self.workspace.join(SESSION_FACTS), &format!("{facts}\n")));
        if let Err(error) = written {
            notices.push(format!("the session cannot be kept in `{SESSION}`: {error}"));
        }
    }

    /// The run is over. A session whose work is done is not taken up again.
    pub async fn close(mut self, outcome: Outcome, reason: &str) {
        if outcome == Outcome::Complete {
            let _ = std::fs::remove_file(self.workspace.join(SESSION));
        }
        self.status.finish(outcome, reason);
        status_file::write(&self.workspace, &self.status);
        self.driver.close().await;
    }
}
