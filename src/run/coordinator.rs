//! One run from its first record to its last: run an iteration, evaluate it, verify, decide, wait, repeat.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::assignment::Assignment;
use super::decide::{self, Report, Verdict, decide};
use super::hats::Board;
use super::hooks::{HookEnd, HookMoment};
use super::iteration::{Halt, Inputs, record_order};
use super::iteration_result::IterationResult;
use super::judge::STOPPED;
use super::plan::Worker;
use super::plugins::{Output, Plugins, Upcoming};
use super::wait::{Moment, WaitEnd};
use super::{Interrupt, Interrupts, Memory, Plan, Recorder, Screen};
use crate::control::{Inbox, Order};
use crate::error::{Kind, UserError};
use crate::event::FailureClass;
use crate::event::Topic;
use crate::git::{Difference, Snapshots, Undo};
use crate::journal::record::VERSION;
use crate::journal::{Changed, Fact, IterationOutcome, Outcome, RunDirectory};
use crate::plural::plural;
use crate::sandbox::Watch;
use crate::signals::Signal;
use crate::transcript::PLAIN;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub outcome: Outcome,
    pub reason: String,
    /// The Unix signal that ended it.
    pub interrupt: Option<Interrupt>,
}

/// Runs until a verdict. The recorder's journal is already open; nothing was shown yet. `memory` is empty, or that of the
/// run that continues.
pub(crate) async fn run(
    plan: &Plan,
    directory: &RunDirectory,
    recorder: &mut Recorder,
    memory: Memory,
    inbox: Inbox<Order>,
) -> Result<Finished, UserError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
    let undo = if plan.keeps_diffs { Undo::Kept } else { Undo::Off };
    let snapshots = tokio::select! {
        snapshots = Snapshots::open(&plan.workspace, &directory.path, plan.events_file.as_deref(), undo) => snapshots,
        // A large or a hostile repository takes its time. Nothing was run and nothing recorded yet.
        interrupt = interrupts.interrupt() => {
            let (outcome, reason) = (Outcome::Interrupted, "stopped by the user".to_owned());
            return Ok(Finished { outcome, reason, interrupt: Some(interrupt) });
        }
    };
    let whole = plan;
    let plan = Looping::plan_of_phase(whole, memory.phase);
    let mut looping = Looping {
        whole,
        plan,
        directory,
        started: Instant::now(),
        before: Duration::from_millis(memory.elapsed_ms),
        suspended: Duration::ZERO,
        inbox,
        memory,
        words: String::new(),
        snapshots,
        question: None,
        watch: super::wall::watch(plan),
        plugins: Plugins::new(plan.load_plugin.clone()),
        phase_began_with: BTreeMap::new(),
        stopped_by_hook: None,
    };
    looping.open(recorder)?;
    for order in &plan.orders {
        recorder.fact(Fact::Control { order: order.clone() })?;
        looping.memory.orders.take(order.clone());
    }
    let result = Box::pin(looping.all_phases(recorder, &mut interrupts)).await;
    let (outcome, reason, error) = match result {
        Ok((outcome, reason)) => (outcome, reason, None),
        Err(Halt::Leave) => (Outcome::Interrupted, "left at once".to_owned(), None),
        Err(Halt::OutOfTime) => (Outcome::Limit, "time limit reached".to_owned(), None),
        Err(Halt::Error(error)) => (outcome_of(&error), error.message.clone(), Some(error)),
    };
    let interrupt = if outcome == Outcome::Interrupted { interrupts.first() } else { None };
    let code = match (&error, interrupt) {
        (Some(error), _) => error.exit_code(),
        (None, Some(interrupt)) => u8::try_from(128 + interrupt.number()).unwrap_or(1),
        (None, None) => outcome.exit_code(),
    };
    let changed = looping.keep_whole_diff(recorder).await;
    recorder.hurry_notifications(looping.time_left());
    let closed = looping.close(recorder, &mut interrupts, (outcome, &reason), code, changed).await;
    looping.plugins.close(outcome, &reason).await;
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
    /// The plan of the run, with all of its phases.
    pub(super) whole: &'p Plan,
    /// The plan of the phase under way.
    pub(super) plan: &'p Plan,
    pub(super) directory: &'p RunDirectory,
    pub(super) started: Instant,
    /// How long it had taken before it was resumed.
    pub(super) before: Duration,
    /// How long ralph itself stopped.
    pub(super) suspended: Duration,
    /// What another terminal tells it.
    pub(super) inbox: Inbox<Order>,
    /// What a resumed run would need.
    pub(super) memory: Memory,
    /// The user's words as they were last read.
    pub(super) words: String,
    /// The working directory as it was at the start and as it was last seen.
    pub(super) snapshots: Snapshots,
    /// What the agent asks a person.
    pub(super) question: Option<String>,
    /// What an agent must not change unseen.
    pub(super) watch: Option<Watch>,
    /// The drivers and scripts that were loaded.
    pub(super) plugins: Plugins,
    /// What was different since the start of the run when this phase began.
    pub(super) phase_began_with: BTreeMap<String, Difference>,
    /// A hook wants the run to end after this iteration.
    pub(super) stopped_by_hook: Option<(Outcome, String)>,
}

impl Looping<'_> {
    fn open(&self, recorder: &mut Recorder) -> Result<(), UserError> {
        recorder.fact(self.run_start())?;
        self.plan.notices.iter().try_for_each(|message| recorder.fact(Fact::Notice { message: message.clone() }))
    }

    pub(super) fn run_start(&self) -> Fact {
        let Worker { agent, transcript, .. } = self.plan.chosen();
        Fact::RunStart {
            version: VERSION,
            ralph: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.directory.id.clone(),
            pid: std::process::id(),
            agent: agent.id().to_owned(),
            command: agent.command_line(&self.plan.workspace, self.plan.screen.attendance(), self.plan.screen.way()),
            transcript: if self.plan.screen == Screen::Users { PLAIN.name.to_owned() } else { transcript.name() },
            workspace: self.plan.workspace.display().to_string(),
            prompt: self.prompt_name(),
            max_iterations: self.plan.policy.max_iterations,
            max_seconds: self.plan.policy.max_time.map(|most| most.as_secs()),
            max_cost_usd: self.plan.policy.max_cost_usd,
        }
    }

    /// Runs the last hook and records the end.
    async fn close(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
        (outcome, reason): (Outcome, &str),
        code: u8,
        changed: Changed,
    ) -> Result<(), UserError> {
        let spent = self.memory.state.spent;
        let end = Fact::RunEnd {
            outcome,
            reason: reason.to_owned(),
            exit_code: code,
            iterations: self.memory.state.iterations,
            duration_ms: milliseconds(self.before + self.started.elapsed()),
            usage: self.memory.usage.clone(),
            cost: spent.cost(),
            unpriced: spent.unpriced,
            question: self.question.clone(),
            changed: Some(changed),
            compared: self.memory.compared.clone(),
        };
        let told = serde_json::to_value(&end).unwrap_or_default();
        // The outcome is decided; a hook cannot change it any more.
        if let HookEnd::RunOver((_, message)) = self.hook(HookMoment::AfterRun, told, recorder, interrupts).await? {
            recorder.fact(Fact::Notice { message })?;
        }
        recorder.fact(end)?;
        recorder.sync()
    }

    /// Plays iterations until one of them ends the phase.
    pub(super) async fn turn(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(Outcome, String), Halt> {
        if self.take_baseline(recorder, interrupts).await? {
            let (outcome, reason) = (Outcome::Interrupted, STOPPED.to_owned());
            return self.settle(outcome, reason, recorder).map_err(Halt::Error);
        }
        if self.memory.board == Board::default() && !self.plan.hats.hats.is_empty() {
            let event = Topic { topic: self.plan.hats.start().to_owned(), payload: String::new() };
            self.publish(recorder, 0, "the run", None, &event)?;
        }
        loop {
            if let Some((outcome, reason)) = self.ready(recorder, interrupts).await? {
                return self.settle(outcome, reason, recorder).map_err(Halt::Error);
            }
            self.inbox.ensure();
            match self.before_iteration(recorder, interrupts).await? {
                HookEnd::Continue => {}
                HookEnd::Skip => continue,
                HookEnd::RunOver((outcome, reason)) => {
                    return self.settle(outcome, reason, recorder).map_err(Halt::Error);
                }
            }
            self.read_prompt(recorder, interrupts).await?;
            // What the prompt said must not be lost with an iteration that does not count.
            let before = (self.memory.board.clone(), self.memory.orders.words.clone(), self.memory.remarks.clone());
            let assignment = self.assignment(recorder)?;
            self.memory.calls.add(Timestamp::now());
            let mut iteration = self.iteration(&assignment)?;
            let agent = &self.plan.workers[assignment.worker].agent;
            let (prompt, plan_file) = (&self.plan.prompt, self.plan.plan_file.clone());
            let (environment, workspace) = (self.environment(&assignment), self.plan.workspace.as_path());
            let next = Upcoming { agent, prompt, workspace, environment, plan_file };
            let deadline = self.deadline();
            let (inbox, orders) = (&mut self.inbox, &mut self.memory.orders);
            let mut inputs = Inputs { interrupts, inbox, orders, deadline };
            self.plugins.prepare(next, &mut iteration, recorder, inputs.lend()).await?;
            let output = Output::of(&iteration);
            let mut result = iteration.run(recorder, inputs.lend()).await?;
            let concluded = self.plugins.conclude(agent, &mut result, output, recorder, inputs).await;
            self.take_orders(recorder)?;
            self.suspended += result.suspended;
            if let Err(halt) = concluded {
                self.keep_receipt(result, recorder)?;
                return Err(halt);
            }
            self.memory.remarks.clear();
            self.evaluate(&mut result, &assignment, recorder, interrupts).await?;
            let IterationResult { report, mut receipt, must_stop, .. } = result;
            if let Some(signal) = &report.signal {
                recorder.fact(Fact::Signal { iteration: receipt.iteration, signal: signal.clone() })?;
            }
            report.complete(&mut receipt);
            self.memory.changed.commits += u32::try_from(receipt.commits.len()).unwrap_or(u32::MAX);
            self.memory.changed.rejected += u32::from(receipt.outcome == IterationOutcome::Rejected);
            let rejected = receipt.outcome == IterationOutcome::Rejected;
            self.remember_quota(&receipt.quota, agent.id(), recorder)?;
            let end = Fact::IterationEnd { receipt: Box::new(receipt) };
            let told = serde_json::to_value(&end).unwrap_or_default();
            recorder.fact(end)?;
            if rejected
                && let HookEnd::RunOver(over) = self.hook(HookMoment::OnRejected, told, recorder, interrupts).await?
            {
                self.stopped_by_hook.get_or_insert(over);
            }
            let (state, verdict) = decide(&self.policy(), self.memory.state, &report, self.elapsed());
            if state.iterations == self.memory.state.iterations || report.interrupted {
                let (board, words, remarks) = before;
                self.memory.board = board;
                self.memory.orders.words.splice(0..0, words);
                self.memory.remarks.splice(0..0, remarks);
            }
            self.memory.state = state;
            self.memory.last = Some(verdict.rejection().filter(|_| rejected).unwrap_or(&report.ended).to_owned());
            if let Some((outcome, reason)) = self.stopped_by_hook.take() {
                return self.settle(outcome, reason, recorder).map_err(Halt::Error);
            }
            if let Some(error) = must_stop {
                self.settle(Outcome::Failed, error.message.clone(), recorder)?;
                return Err(Halt::Error(error));
            }
            if let Some(end) = self.follow(verdict, &report, &assignment, recorder, interrupts).await? {
                return Ok(end);
            }
        }
    }

    /// The run ends in the hooks after an iteration: the iteration is over all the same, and what it spent counts.
    fn keep_receipt(&mut self, mut result: IterationResult, recorder: &mut Recorder) -> Result<(), UserError> {
        self.spend(&mut result, recorder)?;
        let IterationResult { report, mut receipt, .. } = result;
        report.complete(&mut receipt);
        let state = &mut self.memory.state;
        state.spent = state.spent.and(report.spent);
        if !report.was_cut_off() {
            state.iterations = receipt.iteration;
        }
        self.memory.last = Some(report.ended);
        recorder.fact(Fact::IterationEnd { receipt: Box::new(receipt) })?;
        self.settle(Outcome::Interrupted, "stopped by the user".to_owned(), recorder).map(drop)
    }

    /// Does what was decided; the end of the run, when it is one.
    async fn follow(
        &mut self,
        verdict: Verdict,
        report: &Report,
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        match verdict {
            Verdict::Finish { outcome, reason } => {
                let (outcome, reason) = match outcome {
                    Outcome::Complete => self.complete(reason, assignment, recorder, interrupts).await?,
                    outcome => (outcome, reason),
                };
                let reason = match self.help(report, assignment).filter(|_| outcome == Outcome::AgentUnusable) {
                    Some(help) if help.contains('\n') => {
                        for message in help.lines().map(str::to_owned) {
                            recorder.fact(Fact::Notice { message })?;
                        }
                        reason
                    }
                    Some(help) => format!("{reason}; {help}"),
                    None => reason,
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
                // The wait begins with the decision, however long it takes to write it down.
                let decided = Moment::now();
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, outcome: None, memory })?;
                recorder.sync()?;
                let after = match self.before_wait(after, recorder, interrupts).await? {
                    Ok(after) => after.saturating_sub(decided.elapsed()),
                    Err((outcome, reason)) => return self.settle(outcome, reason, recorder).map(Some),
                };
                let began = Moment::now();
                let end = self.wait(after, interrupts, recorder).await?;
                if class == Some(FailureClass::RateLimit) {
                    let state = &mut self.memory.state;
                    state.waited += began.elapsed().min(after);
                    // Whoever retries does not make the next wait longer.
                    state.limits -= u32::from(end == WaitEnd::Retry && state.limits > 0);
                }
                match end {
                    WaitEnd::Elapsed | WaitEnd::Retry => Ok(None),
                    WaitEnd::RunOver((outcome, reason)) => self.settle(outcome, reason, recorder).map(Some),
                }
            }
        }
    }

    /// The time since the run began, without the time it stopped.
    pub(super) fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed().saturating_sub(self.suspended)
    }

    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.policy().max_time?.saturating_sub(self.elapsed()))
    }

    /// When the time of the run is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.time_left()?)
    }

    /// The policy with the limits that were raised under way.
    pub(super) fn policy(&self) -> decide::Policy {
        let orders = &self.memory.orders;
        let policy = self.plan.policy;
        decide::Policy {
            max_iterations: orders
                .max_iterations
                .unwrap_or_else(|| policy.max_iterations.saturating_add(self.memory.phase.start)),
            max_cost_usd: orders.max_cost_usd.or(policy.max_cost_usd),
            max_time: orders.max_seconds.map(Duration::from_secs).or(policy.max_time),
            ..policy
        }
    }

    /// What a resumed run would need, as it is written down.
    pub(super) fn remembered(&mut self) -> Option<serde_json::Value> {
        self.memory.elapsed_ms = milliseconds(self.elapsed());
        serde_json::to_value(&self.memory).ok()
    }

    /// Takes the orders that came meanwhile.
    fn take_orders(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        while let Some(received) = self.inbox.poll() {
            let order = record_order(received, recorder)?;
            self.memory.orders.take(order);
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
            let wait = self.memory.calls.wait(most, Timestamp::now());
            if !wait.is_zero() {
                let reason = format!("limit reached: {} per hour", plural(most, "call"));
                if policy.max_time.is_some_and(|most| now + wait >= most) {
                    return Ok(Some((Outcome::Limit, format!("{reason}, and waiting would pass the time limit"))));
                }
                let (verdict, wait_ms) = ("wait".to_owned(), Some(milliseconds(wait)));
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, outcome: None, memory: None })?;
                if let WaitEnd::RunOver(end) = self.wait(wait, interrupts, recorder).await? {
                    return Ok(Some(end));
                }
            }
        }
        if let Some(end) = self.wait_for_quota(recorder, interrupts).await? {
            return Ok(Some(end));
        }
        self.take_orders(recorder)?;
        if self.memory.orders.stop {
            self.memory.orders.stop = false;
            return Ok(Some(stopped_by_order()));
        }
        if self.memory.orders.pause {
            let since = Instant::now();
            recorder.fact(Fact::Paused)?;
            recorder.sync()?;
            let end = self.paused(interrupts, recorder).await?;
            self.suspended += since.elapsed();
            if end.is_some() {
                return Ok(end);
            }
        }
        let most = self.policy().max_time.filter(|most| self.elapsed() >= *most);
        if let Some(most) = most {
            return Ok(Some((Outcome::Limit, format!("time limit reached: {} s", most.as_secs()))));
        }
        Ok(None)
    }
}

pub(super) fn stopped_by_order() -> (Outcome, String) {
    (Outcome::Interrupted, "stopped by `ralph stop`".to_owned())
}

/// A little longer, by chance: many loops that met the same overload must not all come back at once.
fn jittered(wait: Duration) -> Duration {
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 100;
    wait + wait * u32::try_from(chance).unwrap_or(0) / 1000
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
