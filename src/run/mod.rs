//! The loop: one coordinator that plays iterations, decides, and writes down what happened.
//!
//! It ties the other rooms together. It must never print, and never go on unrecorded.

pub mod decide;
mod explain;
mod filter;
mod interrupt;
mod iteration;
mod judge;
pub mod prompt;
mod reading;
mod recorder;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

pub use explain::start_error;
pub use filter::Filter;
pub use interrupt::{Action, Came, Interrupt, Interrupts};
pub use recorder::{Observer, Recorder};

use crate::agent::{Agent, Turn};
use crate::error::{UserError, exit_code};
use crate::event::Usage;
use crate::journal::{Fact, Outcome, RunDirectory, record::VERSION};
use crate::process::{self, Clocks, Link};
use crate::signals::Signal;
use crate::signals::promise::Rule;
use crate::transcript::{Context, Selected};
use decide::{Policy, State, Verdict, decide};
use iteration::{Halt, Iteration, Played, TotalClock};
use prompt::{LoopContext, Source, compose};

/// Everything a run is made of.
pub struct Plan {
    /// Who does the work.
    pub agent: Agent,
    /// Where.
    pub workspace: PathBuf,
    /// On what.
    pub prompt: Source,
    /// What reads the output.
    pub transcript: Selected,
    /// When it is done.
    pub rule: Rule,
    /// What is allowed.
    pub policy: Policy,
    /// The clocks of one iteration.
    pub clocks: Clocks,
    /// What its output is connected to.
    pub screen: Screen,
    /// What becomes of processes that an agent leaves behind.
    pub left_behind: LeftBehind,
    /// The longest line that is handed on in one part.
    pub line_cap: usize,
    /// Things to tell at the start, such as warnings of the configuration.
    pub notices: Vec<String>,
}

/// What an agent's output is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// Pipes: standard output and standard error stay apart.
    Pipes,
    /// A terminal of its own, as large as the user's.
    Terminal,
}

/// What becomes of processes that an agent leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftBehind {
    /// They are stopped, and named.
    Stop,
    /// They go on, and are named.
    Leave,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// The Unix signal that ended it.
    pub interrupt: Option<Interrupt>,
}

impl Outcome {
    /// The exit code that tells it. An interrupted run dies by the signal instead.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Complete => exit_code::COMPLETE,
            Self::Failed => exit_code::FAILED,
            Self::Human => exit_code::HUMAN,
            Self::AgentUnusable => exit_code::AGENT,
            Self::Limit => exit_code::LIMIT,
            Self::NoProgress => exit_code::NO_PROGRESS,
            Self::RateLimited => exit_code::RATE_LIMITED,
            Self::Interrupted => 130,
        }
    }
}

/// Runs until a verdict. The recorder's journal is already open; nothing was shown yet.
pub async fn run(plan: &Plan, directory: &RunDirectory, recorder: &mut Recorder) -> Result<Finished, UserError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
    let mut looping = Looping {
        plan,
        directory,
        started: Instant::now(),
        state: State::default(),
        usage: Usage::default(),
        suspended: Duration::ZERO,
        words: String::new(),
        last: None,
        remark: None,
    };
    looping.open(recorder)?;
    let result = looping.turn(recorder, &mut interrupts).await;
    let (outcome, reason, error) = match result {
        Ok((outcome, reason)) => (outcome, reason, None),
        Err(Halt::Leave) => (Outcome::Interrupted, "left at once".to_owned(), None),
        Err(Halt::Error(error)) => (outcome_of(&error), error.message.clone(), Some(error)),
    };
    let interrupt = if outcome == Outcome::Interrupted { interrupts.first() } else { None };
    let code = match (&error, interrupt) {
        (Some(error), _) => error.exit_code(),
        (None, Some(interrupt)) => u8::try_from(128 + interrupt.number()).unwrap_or(1),
        (None, None) => outcome.exit_code(),
    };
    let closed = looping.close(recorder, outcome, &reason, code);
    match error {
        Some(error) => Err(error),
        None => closed.map(|()| Finished { outcome, reason, interrupt }),
    }
}

const fn outcome_of(error: &UserError) -> Outcome {
    match error.kind {
        crate::error::Kind::Agent => Outcome::AgentUnusable,
        crate::error::Kind::Usage | crate::error::Kind::Failed => Outcome::Failed,
    }
}

/// The state of the run under way.
struct Looping<'a> {
    plan: &'a Plan,
    directory: &'a RunDirectory,
    started: Instant,
    state: State,
    usage: Usage,
    /// How long ralph itself stood still.
    suspended: Duration,
    /// The user's words as they were last read.
    words: String,
    /// How the last iteration ended.
    last: Option<String>,
    /// What the agent should hear about it.
    remark: Option<String>,
}

impl Looping<'_> {
    fn open(&self, recorder: &mut Recorder) -> Result<(), UserError> {
        recorder.fact(Fact::RunStart {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.directory.id.clone(),
            pid: std::process::id(),
            agent: self.plan.agent.id().to_owned(),
            command: self.plan.agent.command_line(&self.plan.workspace),
            transcript: self.plan.transcript.name(),
            workspace: self.plan.workspace.display().to_string(),
            prompt: self.plan.prompt.name(),
            max_iterations: self.plan.policy.max_iterations,
            max_seconds: Some(self.plan.policy.max_time.as_secs()),
        })?;
        self.plan.notices.iter().try_for_each(|message| recorder.fact(Fact::Notice { message: message.clone() }))
    }

    fn close(&self, recorder: &mut Recorder, outcome: Outcome, reason: &str, code: u8) -> Result<(), UserError> {
        recorder.fact(Fact::RunEnd {
            outcome,
            reason: reason.to_owned(),
            exit_code: code,
            iterations: self.state.iterations,
            duration_ms: milliseconds(self.started.elapsed()),
            usage: self.usage.clone(),
            cost: None,
            unpriced: 0,
            question: None,
        })?;
        recorder.sync()
    }

    /// Plays iterations until one of them ends the run.
    async fn turn(&mut self, recorder: &mut Recorder, interrupts: &mut Interrupts) -> Result<(Outcome, String), Halt> {
        loop {
            self.read_prompt(recorder)?;
            let played = self.iteration()?.play(recorder, interrupts).await?;
            let Played { mut report, receipt, suspended } = played;
            self.suspended += suspended;
            self.usage.add(&receipt.usage);
            if let (Some(_), Some(Signal::Complete { marker } | Signal::Replan { marker })) =
                (&report.failure, &report.signal)
            {
                let (marker, line) = (marker.clone(), marker.clone());
                report.signal = Some(Signal::NearMiss { marker, reason: "the iteration failed".to_owned(), line });
            }
            let number = receipt.iteration;
            if let Some(signal) = &report.signal {
                recorder.fact(Fact::Signal { iteration: number, signal: signal.clone() })?;
            }
            recorder.fact(Fact::IterationEnd { receipt })?;
            let (state, verdict) = decide(&self.plan.policy, self.state, &report, self.elapsed());
            self.state = state;
            self.remark = remark(&report);
            self.last = Some(report.ended);
            match verdict {
                Verdict::Finish { outcome, reason } => {
                    recorder.fact(Fact::Decision {
                        verdict: "finish".into(),
                        reason: reason.clone(),
                        wait_ms: None,
                        memory: None,
                    })?;
                    return Ok((outcome, reason));
                }
                Verdict::Again { after, reason } => {
                    let after = jittered(after);
                    let wait_ms = (!after.is_zero()).then(|| milliseconds(after));
                    let verdict = if after.is_zero() { "again" } else { "wait" };
                    recorder.fact(Fact::Decision { verdict: verdict.into(), reason, wait_ms, memory: None })?;
                    recorder.sync()?;
                    if let Some(end) = wait(after, interrupts, recorder).await? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// The time since the run began, without the time it stood still.
    fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.suspended)
    }

    /// Reads the prompt anew. An editor may be at work on it: then the last words stand.
    fn read_prompt(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        match self.plan.prompt.read() {
            Ok(words) => self.words = words,
            Err(error) if self.words.is_empty() => return Err(error),
            Err(error) => {
                let message = format!("{}; going on with the prompt as it was", error.message);
                recorder.fact(Fact::Notice { message })?;
            }
        }
        Ok(())
    }

    /// The next iteration: the prompt is composed, the time that is left is known.
    fn iteration(&self) -> Result<Iteration<'_>, UserError> {
        let plan = self.plan;
        let words = self.words.clone();
        let number = self.state.iterations + 1;
        let marker = (!plan.rule.is_mentioned_in(&words)).then(|| plan.rule.told());
        let context = LoopContext {
            iteration: number,
            of: plan.policy.max_iterations,
            last: self.last.as_deref(),
            remark: self.remark.as_deref(),
            marker,
        };
        let prompt = compose(&words, &context);
        let variable =
            |name: &str, value: &dyn AsRef<std::ffi::OsStr>| (OsString::from(name), value.as_ref().to_owned());
        let environment = vec![
            variable("RALPH_RUN_ID", &self.directory.id),
            variable("RALPH_ITERATION", &number.to_string()),
            variable("RALPH_AGENT", &plan.agent.id()),
            variable("RALPH_WORKSPACE", &plan.workspace),
        ];
        let turn = Turn { environment, ..Turn::new(&prompt, &plan.workspace) };
        let left = plan.policy.max_time.saturating_sub(self.elapsed()).max(Duration::from_millis(1));
        let (total, clock) = match plan.clocks.total {
            Some(total) if total < left => (total, TotalClock::Iteration),
            _ => (left, TotalClock::Run),
        };
        let mut invocation = plan.agent.invocation(&turn)?;
        if plan.screen == Screen::Terminal {
            invocation.link = Link::Pty(process::terminal_size());
        }
        invocation.leave_running |= plan.left_behind == LeftBehind::Leave;
        Ok(Iteration {
            number,
            of: plan.policy.max_iterations,
            invocation,
            line_cap: plan.line_cap,
            clocks: Clocks { total: Some(total), ..plan.clocks },
            total_clock: clock,
            prompt_bytes: prompt.len(),
            transcript: &plan.transcript,
            context: Context { prompts: vec![prompt, words], session_usage: Usage::default() },
            rule: &plan.rule,
            raw: self.directory.raw(),
            workspace: &plan.workspace,
        })
    }
}

/// What the next prompt says about the last iteration.
fn remark(report: &decide::Report) -> Option<String> {
    match &report.signal {
        Some(Signal::NearMiss { marker, reason, .. }) => {
            Some(format!("{marker} was seen in your last answer, but did not count: {reason}."))
        }
        _ => None,
    }
}

/// Waits before the next iteration; an interrupt ends the wait and the run.
async fn wait(
    after: Duration,
    interrupts: &mut Interrupts,
    recorder: &mut Recorder,
) -> Result<Option<(Outcome, String)>, UserError> {
    let sleep = tokio::time::sleep(after);
    tokio::pin!(sleep);
    loop {
        tokio::select! {
            biased;
            came = interrupts.next() => match came {
                Came::Suspend => crate::process::suspend_self(),
                Came::Resized => {}
                Came::Interrupt(interrupt, _) => {
                    let unix_signal = interrupt.name().to_owned();
                    recorder.fact(Fact::Interrupt { unix_signal, action: "ended the run between iterations".into() })?;
                    return Ok(Some((Outcome::Interrupted, "stopped by the user".to_owned())));
                }
            },
            () = &mut sleep => return Ok(None),
        }
    }
}

/// A little longer, by chance: many loops that met the same overload must not all come back at once.
fn jittered(wait: Duration) -> Duration {
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 100;
    wait + wait * u32::try_from(chance).unwrap_or(0) / 1000
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
