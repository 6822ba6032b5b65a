//! One run from its first record to its last: play, look, verify, decide, wait, again.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::budget::{Calls, Spent};
use super::control::Inbox;
use super::decide::{self, Failure, Progress, Report, Verdict, decide};
use super::hats::Worn;
use super::iteration::{Ears, Halt, Iteration, Played, TotalClock, told};
use super::plan::Worker;
use super::progress::{Change, Snapshot};
use super::prompt::{LoopContext, compose};
use super::{Came, Interrupt, Interrupts, LeftBehind, Memory, Plan, Recorder, Screen, paths, sessions, verify};
use crate::agent::{Session, Turn};
use crate::error::{Kind, UserError};
use crate::event::{FailureClass, Usage};
use crate::journal::record::{MOST_FILES, VERSION};
use crate::journal::{Fact, Outcome, Receipt, RunDirectory, Topic};
use crate::process::{self, Clocks, Link};
use crate::signals::{Signal, plan};
use crate::transcript::Context;

/// Reading for so long without writing anything gets a nudge before it counts.
const LONG_READING: Duration = Duration::from_secs(20 * 60);

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
        first_tree: Snapshot::default(),
        question: None,
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
        Kind::Agent => Outcome::AgentUnusable,
        Kind::Usage | Kind::Failed => Outcome::Failed,
    }
}

/// The state of the run under way.
struct Looping<'a> {
    plan: &'a Plan,
    directory: &'a RunDirectory,
    started: Instant,
    /// How long it had taken before it was resumed.
    before: Duration,
    /// How long ralph itself stood still.
    suspended: Duration,
    /// What another terminal tells it.
    inbox: Inbox,
    /// What a resumed run would need.
    memory: Memory,
    /// The user's words as they were last read.
    words: String,
    calls: Calls,
    /// The working directory as it was last seen.
    tree: Snapshot,
    /// The working directory when the run began.
    first_tree: Snapshot,
    /// What the agent asks a person.
    question: Option<String>,
}

/// Who plays the next iteration, and how.
struct Cast {
    worker: usize,
    session: Session,
    worn: Option<Worn>,
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
            command: agent.command_line(&self.plan.workspace),
            transcript: transcript.name(),
            workspace: self.plan.workspace.display().to_string(),
            prompt: self.plan.prompt.name(),
            max_iterations: self.plan.policy.max_iterations,
            max_seconds: self.plan.policy.max_time.map(|most| most.as_secs()),
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
        let is_new = self.memory == Memory::default();
        self.tree = Snapshot::take(&self.plan.workspace).await;
        self.first_tree = self.tree.clone();
        self.memory.was_here_before(self.tree.fingerprint());
        if is_new && !self.plan.hats.hats.is_empty() {
            let event = Topic { topic: self.plan.hats.start().to_owned(), payload: String::new() };
            self.publish(recorder, 0, "the run", None, &event)?;
        }
        loop {
            if let Some(end) = self.ready(recorder, interrupts).await? {
                return Ok(end);
            }
            self.read_prompt(recorder)?;
            let cast = self.cast(recorder)?;
            self.calls.add(self.elapsed());
            let policy = self.policy();
            let iteration = self.iteration(&cast)?;
            let mut orders = std::mem::take(&mut self.memory.orders);
            let mut inbox = std::mem::replace(&mut self.inbox, Inbox::open(self.directory, u64::MAX));
            let ears = Ears { interrupts, inbox: &mut inbox, orders: &mut orders };
            let played = iteration.play(recorder, ears).await;
            while let Some(command) = inbox.poll() {
                told(&command, recorder)?;
                orders.take(command);
            }
            self.inbox = inbox;
            self.memory.orders = orders;
            let mut played = played?;
            self.suspended += played.suspended;
            self.memory.remarks.clear();
            self.evaluate(&mut played, &cast, recorder, interrupts).await?;
            let Played { report, receipt, .. } = played;
            if let Some(signal) = &report.signal {
                recorder.fact(Fact::Signal { iteration: receipt.iteration, signal: signal.clone() })?;
            }
            recorder.fact(Fact::IterationEnd { receipt })?;
            let (state, verdict) = decide(&policy, self.memory.state, &report, self.elapsed());
            self.memory.state = state;
            self.memory.last = Some(report.ended.clone());
            if let Some(end) = self.follow(verdict, &report, &cast, recorder, interrupts).await? {
                return Ok(end);
            }
        }
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
        self.memory.elapsed_ms = milliseconds(self.elapsed());
        self.memory.control_offset = self.inbox.offset();
        let memory = serde_json::to_value(&self.memory).ok();
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
                let verdict = "finish".to_owned();
                recorder.fact(Fact::Decision { verdict, reason: reason.clone(), wait_ms: None, memory })?;
                Ok(Some((outcome, reason)))
            }
            Verdict::Again { after, reason } => {
                let after = jittered(after);
                let wait_ms = (!after.is_zero()).then(|| milliseconds(after));
                let verdict = if after.is_zero() { "again" } else { "wait" }.to_owned();
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, memory })?;
                recorder.sync()?;
                self.wait(after, interrupts, recorder).await
            }
        }
    }

    /// What the user can do about an agent that may not do its work.
    fn with_help(&self, reason: String, report: &Report, cast: &Cast) -> String {
        let class = report.failure.as_ref().map(|failure| failure.class);
        let help = &self.plan.crew[cast.worker].agent.definition.permission_help;
        match help {
            Some(help) if class == Some(FailureClass::Permission) || !report.denied.is_empty() => {
                format!("{reason}\n{}", help.trim())
            }
            _ => reason,
        }
    }

    /// Looks at what the iteration did, and asks the user's commands when it claims to be the last.
    async fn evaluate(
        &mut self,
        played: &mut Played,
        cast: &Cast,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(), UserError> {
        let plan = self.plan;
        let number = played.receipt.iteration;
        if let (Some(_), Some(Signal::Complete { marker } | Signal::Replan { marker })) =
            (&played.report.failure, &played.report.signal)
        {
            let (marker, line) = (marker.clone(), marker.clone());
            played.report.signal = Some(Signal::NearMiss { marker, reason: "the iteration failed".to_owned(), line });
        }
        if let Some(Signal::NearMiss { marker, reason, .. }) = &played.report.signal {
            self.memory.remarks.push(format!("{marker} was seen in your last answer, but did not count: {reason}."));
        }
        self.keep_session(played, cast, recorder)?;
        self.publish_all(played, cast, recorder)?;

        let now = Snapshot::take(&plan.workspace).await;
        let change = now.since(&self.tree).await;
        played.report.veto = self.veto(&now).await;
        self.tree = now;
        if played.report.is_claim() && played.report.veto.is_none() && !plan.verify.is_empty() {
            let verified = if played.report.interrupted {
                verify::Verified { interrupted: true, ..verify::Verified::default() }
            } else {
                let verified = verify::verify(&plan.verify, &plan.workspace, &self.environment(cast), interrupts).await;
                let (passed, checks) = (verified.passed(), verified.checks.clone());
                recorder.fact(Fact::Verification { iteration: number, passed, checks })?;
                // What the commands changed is not the agent's work.
                self.tree = Snapshot::take(&plan.workspace).await;
                verified
            };
            played.report.interrupted |= verified.interrupted;
            played.report.verification = verified.verification();
            played.receipt.verified = (!verified.interrupted).then(|| verified.passed());
            if !verified.passed() && !verified.interrupted {
                self.memory.remarks.push(verified.told());
            }
        }
        if let Some(veto) = played.report.veto.as_ref().filter(|_| played.report.is_claim()) {
            self.memory.remarks.push(format!("you said that the work is done, but {veto}."));
        }
        played.report.progress = self.progress(played, &change);
        played.receipt.take(change);
        self.spend(played, recorder)?;
        self.substitute(&mut played.report, cast);
        Ok(())
    }

    /// Keeps the session of the iteration; one that was refused is forgotten, and its failure costs nothing.
    fn keep_session(&mut self, played: &mut Played, cast: &Cast, recorder: &mut Recorder) -> Result<(), UserError> {
        let agent = &self.plan.crew[cast.worker].agent;
        let class = played.report.failure.as_ref().map(|failure| failure.class);
        let refused = played.report.resumed
            && !played.answered
            && matches!(class, Some(FailureClass::Agent | FailureClass::Config))
            && !played.report.interrupted;
        if refused {
            self.memory.sessions.forget(agent);
            let message = format!("`{}` did not take up its session again; starting a fresh one", agent.id());
            recorder.fact(Fact::Notice { message })?;
            // As with a full context: once, and it does not count.
            if let Some(failure) = &mut played.report.failure {
                failure.class = FailureClass::Context;
            }
            return Ok(());
        }
        if class == Some(FailureClass::Context) {
            self.memory.sessions.forget(agent);
            self.memory.remarks.push("the context of your last session was full; this is a fresh one.".to_owned());
            return Ok(());
        }
        let Receipt { session, usage, .. } = &played.receipt;
        let outcome = sessions::Outcome { told: session.as_deref(), usage, context: None };
        self.memory.sessions.keep(agent, &cast.session, &outcome, Timestamp::now());
        Ok(())
    }

    /// Publishes what the iteration said and what came by `ralph emit`.
    fn publish_all(&mut self, played: &mut Played, cast: &Cast, recorder: &mut Recorder) -> Result<(), UserError> {
        let number = played.receipt.iteration;
        let hat = cast.worn.as_ref().map(|worn| worn.hat.clone());
        let by = hat.as_ref().map_or("the agent", |hat| hat.id.as_str());
        let from = hat.as_ref().map(|hat| hat.id.as_str());
        let said = std::mem::take(&mut played.heard.topics.said);
        let said = said.into_iter().map(|said| Topic { topic: said.topic, payload: said.payload });
        let mut events: Vec<Topic> = said.chain(std::mem::take(&mut self.memory.orders.emitted)).collect();
        if let Some(topic) = hat.as_ref().and_then(|hat| hat.default_publishes.clone())
            && events.is_empty()
            && played.report.failure.is_none()
        {
            events.push(Topic { topic, payload: String::new() });
        }
        for event in &events {
            played.receipt.published.push(event.topic.clone());
            self.publish(recorder, number, by, from, event)?;
        }
        if let Some(hat) = hat.as_ref().filter(|hat| self.memory.board.is_exhausted(hat)) {
            let event = Topic { topic: format!("{}.exhausted", hat.id), payload: String::new() };
            self.publish(recorder, number, "the run", None, &event)?;
        }
        for problem in std::mem::take(&mut played.heard.topics.problems) {
            recorder.fact(Fact::Notice { message: problem.clone() })?;
            self.memory.remarks.push(problem);
        }
        Ok(())
    }

    fn publish(
        &mut self,
        recorder: &mut Recorder,
        iteration: u32,
        by: &str,
        hat: Option<&str>,
        event: &Topic,
    ) -> Result<(), UserError> {
        let delivery = self.memory.board.publish(&self.plan.hats, hat, event);
        if hat.is_some() {
            self.memory.remarks.extend(delivery.remark);
        }
        let (event, by) = (event.clone(), by.to_owned());
        recorder.fact(Fact::Published { iteration, event, by, heard_by: delivery.heard_by })
    }

    /// Why a claim cannot hold, whatever the agent says.
    async fn veto(&mut self, now: &Snapshot) -> Option<String> {
        let plan = self.plan;
        if !plan.allowed_paths.is_empty() {
            let changed = now.since(&self.first_tree).await.files;
            let forbidden: Vec<&String> =
                changed.iter().filter(|path| !paths::is_allowed(&plan.allowed_paths, path)).take(20).collect();
            if !forbidden.is_empty() {
                let names = forbidden.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
                let allowed = plan.allowed_paths.join(", ");
                let veto = format!("{names} changed, and only {allowed} may change: undo that");
                self.memory.remarks.push(veto.clone());
                return Some(veto);
            }
        }
        let path = plan.workspace.join(plan.plan_file.as_ref()?);
        let text = std::fs::read_to_string(&path).ok()?;
        let open = plan::items(&text).open;
        let first = open.first()?;
        let name = plan.plan_file.as_ref()?.display();
        Some(match open.len() {
            1 => format!("one item of `{name}` is open: {first}"),
            more => format!("{more} items of `{name}` are open, the first is: {first}"),
        })
    }

    /// Whether the iteration moved anything.
    fn progress(&mut self, played: &Played, change: &Change) -> Progress {
        let memory = &mut self.memory;
        let mut hasher = DefaultHasher::new();
        (played.work, &played.heard.last_words).hash(&mut hasher);
        let work = played.work.map(|_| hasher.finish());
        let repeated = work.is_some() && std::mem::replace(&mut memory.work, work) == work;
        let verification = match &played.report.verification {
            decide::Verification::Failed { summary } => Some(summary.clone()),
            _ => None,
        };
        let other_verdict = verification.is_some() && memory.verification.is_some() && verification != memory.verification;
        memory.verification = verification.or_else(|| memory.verification.take());
        let been_here = memory.was_here_before(self.tree.fingerprint());
        let still = match change.moved {
            None => return Progress::Unknown,
            Some(true) if been_here => "the working directory is as it was some iterations ago",
            Some(true) if repeated => "the last iteration did the same as the one before",
            Some(true) => "",
            Some(false) if other_verdict => "",
            Some(false) => "the last iteration changed nothing in the working directory",
        };
        if still.is_empty() {
            memory.nudged = false;
            return Progress::Made;
        }
        memory.remarks.push(format!("{still}. Do the next step of the work, or say what keeps you from it."));
        let long = Duration::from_millis(played.receipt.duration_ms) >= LONG_READING;
        if long && !std::mem::replace(&mut memory.nudged, true) { Progress::Nudge } else { Progress::None }
    }

    /// Counts tokens and money, and says what cannot be seen.
    fn spend(&mut self, played: &mut Played, recorder: &mut Recorder) -> Result<(), UserError> {
        let Receipt { usage, .. } = &played.receipt;
        let cost = self.plan.pricing.cost(usage);
        played.report.spent = Spent::of(usage, cost);
        self.memory.usage.add(usage);
        let limited = self.plan.policy.max_cost_usd.is_some() && cost.is_none() && played.report.failure.is_none();
        if limited && !std::mem::replace(&mut self.memory.told_unpriced, true) {
            let model = usage.model.as_deref().map_or_else(String::new, |model| format!(" for model `{model}`"));
            let message = format!(
                "`{}` tells no cost, and `pricing:` has none{model}: `max_cost_usd` cannot be watched over",
                played.receipt.agent
            );
            recorder.fact(Fact::Notice { message })?;
        }
        played.receipt.cost = cost;
        Ok(())
    }

    /// Who takes over from an agent that is limited or locked out.
    fn substitute(&mut self, report: &mut Report, cast: &Cast) {
        let now = Timestamp::now();
        let Some(failure) = &mut report.failure else { return };
        let memory = &mut self.memory;
        match failure.class {
            FailureClass::RateLimit => {
                let wait = failure.retry_after.unwrap_or(Duration::from_secs(3600));
                memory.bench.limited(cast.worker, now + wait);
            }
            FailureClass::Auth => memory.bench.locked_out(cast.worker),
            _ => return,
        }
        let order = self.plan.order(cast.worker);
        if let Some(worker) = memory.bench.first(order.clone(), now) {
            report.substitute = Some(self.plan.crew[worker].agent.id().to_owned());
        } else if let (FailureClass::Auth, Some(wait)) = (failure.class, memory.bench.wait(order, now)) {
            // Locked out, but another one is only limited.
            let message = failure.message.clone();
            *failure = Failure { class: FailureClass::RateLimit, message, retry_after: Some(wait) };
        }
    }

    /// The time since the run began, without the time it stood still.
    fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed().saturating_sub(self.suspended)
    }

    /// The policy with the limits that were raised under way.
    fn policy(&self) -> decide::Policy {
        let orders = &self.memory.orders;
        let policy = self.plan.policy;
        decide::Policy {
            max_iterations: orders.max_iterations.unwrap_or(policy.max_iterations),
            max_cost_usd: orders.max_cost_usd.or(policy.max_cost_usd),
            max_time: orders.max_seconds.map(Duration::from_secs).or(policy.max_time),
            ..policy
        }
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

    /// Who plays next, in which session, with which hat.
    fn cast(&mut self, recorder: &mut Recorder) -> Result<Cast, UserError> {
        let plan = self.plan;
        let worn = if plan.hats.hats.is_empty() {
            None
        } else {
            let board = &mut self.memory.board;
            board.wear(&plan.hats).or_else(|| board.again(&plan.hats))
        };
        let wanted = worn.as_ref().and_then(|worn| worn.hat.agent.as_deref());
        let wanted = wanted.and_then(|name| plan.crew.iter().position(|worker| worker.agent.id() == name)).unwrap_or(0);
        let worker = self.memory.bench.first(plan.order(wanted), Timestamp::now()).unwrap_or(wanted);
        let agent = &plan.crew[worker].agent;
        let (session, reason) = self.memory.sessions.next(plan.session, agent, Timestamp::now());
        if let Some(message) = reason {
            recorder.fact(Fact::Notice { message })?;
        }
        Ok(Cast { worker, session, worn })
    }

    /// Variables for the agent and for what the user runs about it.
    fn environment(&self, cast: &Cast) -> Vec<(OsString, OsString)> {
        let variable =
            |name: &str, value: &dyn AsRef<std::ffi::OsStr>| (OsString::from(name), value.as_ref().to_owned());
        let mut variables = vec![
            variable("RALPH_RUN_ID", &self.directory.id),
            variable("RALPH_ITERATION", &(self.memory.state.iterations + 1).to_string()),
            variable("RALPH_AGENT", &self.plan.crew[cast.worker].agent.id()),
            variable("RALPH_WORKSPACE", &self.plan.workspace),
        ];
        variables.extend(cast.worn.as_ref().map(|worn| variable("RALPH_HAT", &worn.hat.id)));
        variables
    }

    /// The next iteration: the prompt is composed, the time that is left is known.
    fn iteration<'a>(&'a mut self, cast: &Cast) -> Result<Iteration<'a>, UserError> {
        let plan = self.plan;
        let words = self.words.clone();
        let policy = self.policy();
        let number = self.memory.state.iterations + 1;
        let marker = (!plan.rule.is_mentioned_in(&words)).then(|| plan.rule.told());
        let role = cast.worn.as_ref().map(|worn| worn.told(&plan.hats));
        let remarks = [self.memory.remarks.clone(), std::mem::take(&mut self.memory.orders.words)].concat();
        let context = LoopContext {
            iteration: number,
            of: policy.max_iterations,
            last: self.memory.last.as_deref(),
            role: role.as_deref(),
            remarks: &remarks,
            marker,
        };
        let prompt = compose(&words, &context);
        let Worker { agent, transcript, timeout } = &plan.crew[cast.worker];
        let mut turn = Turn { environment: self.environment(cast), ..Turn::new(&prompt, &plan.workspace) };
        turn.session = cast.session.clone();
        let left = policy.max_time.map(|most| most.saturating_sub(self.elapsed()).max(Duration::from_millis(1)));
        let (total, clock) = match (*timeout, left) {
            (Some(total), Some(left)) if left <= total => (Some(left), TotalClock::Run),
            (None, Some(left)) => (Some(left), TotalClock::Run),
            (total, _) => (total, TotalClock::Iteration),
        };
        let mut invocation = agent.invocation(&turn)?;
        if plan.screen == Screen::Terminal {
            invocation.link = Link::Pty(process::terminal_size());
        }
        invocation.leave_running |= plan.left_behind == LeftBehind::Leave;
        let session_usage = self.memory.sessions.usage(agent, &cast.session);
        let startup = plan.clocks.startup.filter(|_| transcript.name() != crate::transcript::PLAIN.name);
        Ok(Iteration {
            number,
            of: policy.max_iterations,
            invocation,
            line_cap: plan.line_cap,
            // An agent of plain text may say nothing until it is done: only its silence without work counts.
            clocks: Clocks { total, startup, ..plan.clocks },
            total_clock: clock,
            prompt_bytes: prompt.len(),
            transcript,
            context: Context { prompts: vec![prompt, words], session_usage },
            rule: &plan.rule,
            raw: self.directory.raw(),
            workspace: &plan.workspace,
            agent: agent.id(),
            hat: cast.worn.as_ref().map(|worn| worn.hat.id.clone()),
            resumes: match &cast.session {
                Session::Resume(id) | Session::Fork(id) => Some(id.clone()),
                Session::New | Session::Given(_) => None,
            },
        })
    }

    /// Nothing keeps the next iteration from beginning: no order to stop or to pause, no limit of calls. Gives the end of
    /// the run when one does for good.
    async fn ready(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Option<(Outcome, String)>, UserError> {
        while let Some(command) = self.inbox.poll() {
            told(&command, recorder)?;
            self.memory.orders.take(command);
        }
        if self.memory.orders.stop {
            self.memory.orders.stop = false;
            return Ok(Some(stopped_by_order()));
        }
        if self.memory.orders.pause {
            recorder.fact(Fact::Notice { message: "paused; `ralph continue` goes on".to_owned() })?;
            recorder.sync()?;
            if let Some(end) = self.paused(interrupts, recorder).await? {
                return Ok(Some(end));
            }
        }
        let policy = self.policy();
        let spent = self.memory.state.spent;
        if let Some(message) = spent.expected_overshoot(policy.max_tokens, policy.max_cost_usd) {
            recorder.fact(Fact::Notice { message })?;
        }
        let now = self.elapsed();
        if let Some(most) = self.plan.calls_per_hour {
            let wait = self.calls.wait(most, now);
            if !wait.is_zero() {
                let reason = format!("the limit of {most} calls an hour is reached");
                if policy.max_time.is_some_and(|most| now + wait >= most) {
                    return Ok(Some((Outcome::Limit, format!("{reason}, and waiting would pass the time limit"))));
                }
                let (verdict, wait_ms) = ("wait".to_owned(), Some(milliseconds(wait)));
                recorder.fact(Fact::Decision { verdict, reason, wait_ms, memory: None })?;
                return self.wait(wait, interrupts, recorder).await;
            }
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
        loop {
            tokio::select! {
                biased;
                came = interrupts.next() => match came {
                    Came::Suspend => process::suspend_self(),
                    Came::Resized => {}
                    Came::Retry => return Ok(None),
                    Came::Interrupt(interrupt, _) => return interrupted(interrupt, recorder).map(Some),
                },
                command = self.inbox.next() => {
                    told(&command, recorder)?;
                    let retry = command == super::control::Command::Retry;
                    self.memory.orders.take(command);
                    if retry {
                        return Ok(None);
                    }
                    if self.memory.orders.stop {
                        self.memory.orders.stop = false;
                        return Ok(Some(stopped_by_order()));
                    }
                }
                () = &mut sleep => return Ok(None),
            }
        }
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

impl Plan {
    /// Who may play instead of a worker: first that one, then the substitutes.
    fn order(&self, wanted: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        std::iter::once(wanted).chain((0..=self.substitutes).filter(move |&worker| worker != wanted))
    }
}

impl Receipt {
    /// Takes over what changed.
    fn take(&mut self, change: Change) {
        self.progress = change.moved;
        self.more_files = u32::try_from(change.files.len().saturating_sub(MOST_FILES)).unwrap_or(u32::MAX);
        self.files = change.files;
        self.files.truncate(MOST_FILES);
        self.commits = change.commits;
        self.head_before = change.head_before;
        self.head_after = change.head_after;
    }
}

fn interrupted(interrupt: Interrupt, recorder: &mut Recorder) -> Result<(Outcome, String), UserError> {
    let unix_signal = interrupt.name().to_owned();
    recorder.fact(Fact::Interrupt { unix_signal, action: "ended the run between iterations".into() })?;
    Ok((Outcome::Interrupted, "stopped by the user".to_owned()))
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
