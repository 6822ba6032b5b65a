//! One run from its first record to its last: play, look, verify, decide, wait, again.

use std::time::Duration;

use tokio::time::Instant;

use super::budget::Calls;
use super::casting::Cast;
use super::contract::{Contracts, Output, Stage};
use super::control::{Command, Inbox};
use super::decide::{self, Report, Verdict, decide};
use super::hats::Board;
use super::iteration::{Ears, Halt, Played, told};
use super::plan::{Keys, Worker};
use super::progress::Snapshot;
use super::shelf::Shelf;
use super::{Came, Interrupt, Interrupts, Memory, Plan, Recorder, Screen};
use crate::error::{Kind, UserError};
use crate::event::FailureClass;
use crate::journal::record::VERSION;
use crate::journal::{Fact, Outcome, RunDirectory, Topic};
use crate::plural::plural;
use crate::process::{self, Keyboard};
use crate::signals::Signal;
use crate::transcript::PLAIN;

/// How often a wait looks whether the keyboard is the run's now.
const LOOK_FOR_KEYS: Duration = Duration::from_millis(500);

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

/// Runs until a verdict. The recorder's journal is already open; nothing was shown yet. `memory` is empty, or that of the
/// run that goes on.
pub async fn run(
    plan: &Plan,
    directory: &RunDirectory,
    recorder: &mut Recorder,
    memory: Memory,
) -> Result<Finished, UserError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
    let mut looping = Looping {
        plan,
        directory,
        started: Instant::now(),
        before: Duration::from_millis(memory.elapsed_ms),
        suspended: Duration::ZERO,
        inbox: Inbox::open(directory, memory.control_offset),
        memory,
        words: String::new(),
        calls: Calls::default(),
        tree: Snapshot::default(),
        shelf: if plan.keeps_diffs {
            Shelf::of(&plan.workspace, directory, plan.events_file.as_deref()).await
        } else {
            None
        },
        first_tree: Snapshot::default(),
        question: None,
        contracts: Contracts::default(),
    };
    looping.hear_what_was_told_before();
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
    looping.contracts.close(outcome, &reason).await;
    match error {
        Some(error) => Err(error),
        None => closed.map(|()| Finished { outcome, reason, interrupt }),
    }
}

const fn outcome_of(error: &UserError) -> Outcome {
    match error.kind {
        Kind::Agent => Outcome::AgentUnusable,
        Kind::Usage | Kind::Failed => Outcome::Failed,
    }
}

/// The state of the run under way.
pub(super) struct Looping<'p> {
    pub(super) plan: &'p Plan,
    pub(super) directory: &'p RunDirectory,
    pub(super) started: Instant,
    /// How long it had taken before it was resumed.
    pub(super) before: Duration,
    /// How long ralph itself stood still.
    pub(super) suspended: Duration,
    /// What another terminal tells it.
    pub(super) inbox: Inbox,
    /// What a resumed run would need.
    pub(super) memory: Memory,
    /// The user's words as they were last read.
    pub(super) words: String,
    pub(super) calls: Calls,
    /// The working directory as it was last seen.
    pub(super) tree: Snapshot,
    /// Where the working directory is kept, for telling what changed.
    pub(super) shelf: Option<Shelf>,
    /// The working directory when the run began.
    pub(super) first_tree: Snapshot,
    /// What the agent asks a person.
    pub(super) question: Option<String>,
    /// The drivers and scripts that were loaded.
    pub(super) contracts: Contracts,
}

impl Looping<'_> {
    fn open(&self, recorder: &mut Recorder) -> Result<(), UserError> {
        let Worker { agent, transcript, .. } = self.plan.chosen();
        recorder.fact(Fact::RunStart {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.directory.id.clone(),
            pid: std::process::id(),
            agent: agent.id().to_owned(),
            command: agent.command_line(&self.plan.workspace, self.plan.screen.attendance()),
            transcript: if self.plan.screen == Screen::Users { PLAIN.name.to_owned() } else { transcript.name() },
            workspace: self.plan.workspace.display().to_string(),
            prompt: self.plan.prompt.name(),
            max_iterations: self.plan.policy.max_iterations,
            max_seconds: self.plan.policy.max_time.map(|most| most.as_secs()),
            max_cost_usd: self.plan.policy.max_cost_usd,
        })?;
        self.plan.notices.iter().try_for_each(|message| recorder.fact(Fact::Notice { message: message.clone() }))
    }

    fn close(&self, recorder: &mut Recorder, outcome: Outcome, reason: &str, code: u8) -> Result<(), UserError> {
        let spent = self.memory.state.spent;
        recorder.fact(Fact::RunEnd {
            outcome,
            reason: reason.to_owned(),
            exit_code: code,
            iterations: self.memory.state.iterations,
            duration_ms: milliseconds(self.before + self.started.elapsed()),
            usage: self.memory.usage.clone(),
            cost: spent.cost(),
            unpriced: spent.unpriced,
            question: self.question.clone(),
        })?;
        recorder.sync()
    }

    /// Plays iterations until one of them ends the run.
    async fn turn(&mut self, recorder: &mut Recorder, interrupts: &mut Interrupts) -> Result<(Outcome, String), Halt> {
        self.tree = Snapshot::take(&self.plan.workspace, self.plan.events_file.as_deref()).await;
        if let Some(shelf) = &mut self.shelf {
            shelf.keep(self.tree.changed()).await;
        }
        self.first_tree = self.memory.first_tree.clone().unwrap_or_else(|| self.tree.clone());
        if !self.plan.allowed_paths.is_empty() {
            self.memory.first_tree = Some(self.first_tree.clone());
        }
        self.memory.was_here_before(self.tree.fingerprint());
        if self.memory.board == Board::default() && !self.plan.hats.hats.is_empty() {
            let event = Topic { topic: self.plan.hats.start().to_owned(), payload: String::new() };
            self.publish(recorder, 0, "the run", None, &event)?;
        }
        loop {
            if let Some((outcome, reason)) = self.ready(recorder, interrupts).await? {
                return self.settle(outcome, reason, recorder).map_err(Halt::Error);
            }
            self.read_prompt(recorder)?;
            // What an iteration is told must not be lost with a try that does not count.
            let told_before =
                (self.memory.board.clone(), self.memory.orders.words.clone(), self.memory.remarks.clone());
            let cast = self.cast(recorder)?;
            self.calls.add(self.elapsed());
            let mut iteration = self.iteration(&cast)?;
            let agent = &self.plan.crew[cast.worker].agent;
            let (prompt, plan_file) = (&self.plan.prompt, self.plan.plan_file.clone());
            let stage = Stage { agent, prompt, environment: self.environment(&cast), plan_file };
            let mut ears = Ears { interrupts, inbox: &mut self.inbox, orders: &mut self.memory.orders };
            self.contracts.prepare(stage, &mut iteration, recorder, ears.lend()).await?;
            let output = Output::of(&iteration);
            let mut played = iteration.play(recorder, ears.lend()).await?;
            self.contracts.conclude(agent, &mut played, output, recorder, ears).await?;
            self.hear(recorder)?;
            self.suspended += played.suspended;
            self.memory.remarks.clear();
            self.evaluate(&mut played, &cast, recorder, interrupts).await?;
            let Played { report, receipt, .. } = played;
            if let Some(signal) = &report.signal {
                recorder.fact(Fact::Signal { iteration: receipt.iteration, signal: signal.clone() })?;
            }
            recorder.fact(Fact::IterationEnd { receipt: Box::new(receipt) })?;
            let (state, verdict) = decide(&self.policy(), self.memory.state, &report, self.elapsed());
            if state.iterations == self.memory.state.iterations || report.interrupted {
                let (board, words, remarks) = told_before;
                self.memory.board = board;
                self.memory.orders.words.splice(0..0, words);
                self.memory.remarks.splice(0..0, remarks);
            }
            self.memory.state = state;
            self.memory.last = Some(report.ended.clone());
            if let Some(end) = self.follow(verdict, &report, &cast, recorder, interrupts).await? {
                return Ok(end);
            }
        }
    }

    /// Writes down how the run ends.
    fn settle(
        &mut self,
        outcome: Outcome,
        reason: String,
        recorder: &mut Recorder,
    ) -> Result<(Outcome, String), UserError> {
        let (verdict, memory) = ("finish".to_owned(), self.remembered());
        let (outcome_told, reason_told) = (Some(outcome), reason.clone());
        recorder.fact(Fact::Decision { verdict, reason: reason_told, wait_ms: None, outcome: outcome_told, memory })?;
        Ok((outcome, reason))
    }

    /// Does what was decided; the end of the run, when it is one.
    async fn follow(
        &mut self,
        verdict: Verdict,
        report: &Report,
        cast: &Cast,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        match verdict {
            Verdict::Finish { outcome, reason } => {
                let reason = match outcome {
                    Outcome::AgentUnusable => self.with_help(reason, report, cast),
                    _ => reason,
                };
                if outcome == Outcome::Human {
                    self.question = match &report.signal {
                        Some(Signal::Question { text } | Signal::Blocked { reason: text }) => Some(text.clone()),
                        _ => None,
                    };
                }
                self.settle(outcome, reason, recorder).map(Some)
            }
            Verdict::Again { after, reason } => {
                let class = report.failure.as_ref().map(|failure| failure.class);
                let by_chance = matches!(class, Some(FailureClass::Overload | FailureClass::Network));
                let after = if by_chance { jittered(after) } else { after };
                let wait_ms = (!after.is_zero()).then(|| milliseconds(after));
                let verdict = if after.is_zero() { "again" } else { "wait" }.to_owned();
                let memory = self.remembered();
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, outcome: None, memory })?;
                recorder.sync()?;
                self.wait(after, interrupts, recorder).await
            }
        }
    }

    /// The time since the run began, without the time it stood still.
    pub(super) fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed().saturating_sub(self.suspended)
    }

    /// The policy with the limits that were raised under way.
    pub(super) fn policy(&self) -> decide::Policy {
        let orders = &self.memory.orders;
        let policy = self.plan.policy;
        decide::Policy {
            max_iterations: orders.max_iterations.unwrap_or(policy.max_iterations),
            max_cost_usd: orders.max_cost_usd.or(policy.max_cost_usd),
            max_time: orders.max_seconds.map(Duration::from_secs).or(policy.max_time),
            ..policy
        }
    }

    /// What a resumed run would need, as it is written down.
    fn remembered(&mut self) -> Option<serde_json::Value> {
        self.memory.elapsed_ms = milliseconds(self.elapsed());
        self.memory.control_offset = self.inbox.offset();
        serde_json::to_value(&self.memory).ok()
    }

    /// What was told to the run before it was resumed: words and limits hold, orders to stop or to pause are done with.
    fn hear_what_was_told_before(&mut self) {
        while let Some(command) = self.inbox.poll() {
            self.memory.orders.take(command);
        }
        self.memory.orders.stop = false;
        self.memory.orders.pause = false;
    }

    /// Takes what was told meanwhile.
    fn hear(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        while let Some(command) = self.inbox.poll() {
            told(&command, recorder)?;
            self.memory.orders.take(command);
        }
        Ok(())
    }

    /// Nothing keeps the next iteration from beginning: no order to stop or to pause, no limit of calls. Gives the end of
    /// the run when one does for good.
    async fn ready(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        let policy = self.policy();
        let spent = self.memory.state.spent;
        if let Some(message) = spent.expected_overshoot(policy.max_tokens, policy.max_cost_usd) {
            recorder.fact(Fact::Notice { message })?;
        }
        let now = self.elapsed();
        if let Some(most) = self.plan.calls_per_hour {
            let wait = self.calls.wait(most, now);
            if !wait.is_zero() {
                let reason = format!("the limit of {} an hour is reached", plural(most, "call"));
                if policy.max_time.is_some_and(|most| now + wait >= most) {
                    return Ok(Some((Outcome::Limit, format!("{reason}, and waiting would pass the time limit"))));
                }
                let (verdict, wait_ms) = ("wait".to_owned(), Some(milliseconds(wait)));
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, outcome: None, memory: None })?;
                if let Some(end) = self.wait(wait, interrupts, recorder).await? {
                    return Ok(Some(end));
                }
            }
        }
        self.hear(recorder)?;
        if self.memory.orders.stop {
            self.memory.orders.stop = false;
            return Ok(Some(stopped_by_order()));
        }
        if self.memory.orders.pause {
            let since = Instant::now();
            recorder.fact(Fact::Notice { message: "paused; `ralph continue` goes on".to_owned() })?;
            recorder.sync()?;
            let end = self.paused(interrupts, recorder).await?;
            self.suspended += since.elapsed();
            if end.is_some() {
                return Ok(end);
            }
        }
        let most = self.policy().max_time.filter(|most| self.elapsed() >= *most);
        if let Some(most) = most {
            return Ok(Some((Outcome::Limit, format!("the time limit of {} s is reached", most.as_secs()))));
        }
        Ok(None)
    }

    /// Waits before the next iteration; an interrupt or an order to stop ends the wait and the run.
    async fn wait(
        &mut self,
        after: Duration,
        interrupts: &mut Interrupts,
        recorder: &mut Recorder,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        let sleep = tokio::time::sleep(after);
        tokio::pin!(sleep);
        let mut keyboard = self.keyboard(after);
        loop {
            if self.memory.orders.stop {
                self.memory.orders.stop = false;
                return Ok(Some(stopped_by_order()));
            }
            tokio::select! {
                biased;
                came = interrupts.next() => match came {
                    Came::Suspend => {
                        drop(keyboard.take());
                        process::suspend_self();
                        keyboard = self.keyboard(after);
                    }
                    Came::Resized => {}
                    Came::Retry => return Ok(None),
                    Came::Interrupt(interrupt, _) => return interrupted(interrupt, recorder).map(Some),
                },
                command = self.inbox.next() => {
                    told(&command, recorder)?;
                    let retry = command == Command::Retry;
                    self.memory.orders.take(command);
                    if retry {
                        return Ok(None);
                    }
                }
                key = key(keyboard.as_ref()) => if matches!(key, b'r' | b'R') {
                    told(&Command::Retry, recorder)?;
                    return Ok(None);
                },
                // `fg` gives the terminal back without a word.
                () = tokio::time::sleep(LOOK_FOR_KEYS), if keyboard.is_none() && self.wants_keys(after) => {
                    keyboard = self.keyboard(after);
                }
                () = &mut sleep => return Ok(None),
            }
        }
    }

    /// The keyboard, for waits that are long enough to think about, where it is the run's.
    fn keyboard(&self, wait: Duration) -> Option<Keyboard> {
        if self.wants_keys(wait) { Keyboard::take() } else { None }
    }

    fn wants_keys(&self, wait: Duration) -> bool {
        self.plan.keys == Keys::Read && wait >= Duration::from_secs(1)
    }

    /// Waits until somebody says to go on.
    async fn paused(
        &mut self,
        interrupts: &mut Interrupts,
        recorder: &mut Recorder,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        while self.memory.orders.pause {
            if let Some(end) = self.wait(Duration::from_millis(200), interrupts, recorder).await? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
}

fn interrupted(interrupt: Interrupt, recorder: &mut Recorder) -> Result<(Outcome, String), UserError> {
    let unix_signal = interrupt.name().to_owned();
    recorder.fact(Fact::Interrupt { unix_signal, action: "ended the run between iterations".into() })?;
    Ok((Outcome::Interrupted, "stopped by the user".to_owned()))
}

async fn key(keyboard: Option<&Keyboard>) -> u8 {
    match keyboard {
        Some(keyboard) => keyboard.key().await,
        None => std::future::pending().await,
    }
}

fn stopped_by_order() -> (Outcome, String) {
    (Outcome::Interrupted, "stopped by `ralph stop`".to_owned())
}

/// A little longer, by chance: many loops that met the same overload must not all come back at once.
fn jittered(wait: Duration) -> Duration {
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 100;
    wait + wait * u32::try_from(chance).unwrap_or(0) / 1000
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
