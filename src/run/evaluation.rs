//! After an iteration: what it changed, what it published, what it cost, and whether its claim holds.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use super::assignment::Assignment;
use super::budget::Spent;
use super::coordinator::Looping;
use super::decide::{Failure, Progress, Report, Verification};
use super::hooks::HookEnd;
use super::iteration::Halt;
use super::iteration_result::IterationResult;
use super::{Interrupts, Recorder, Worker, paths, sessions};
use crate::agent::Agent;
use crate::error::{UserError, io_reason};
use crate::event::{FailureClass, Topic};
use crate::git::{By, Change, Effort};
use crate::journal::receipt::MOST_FILES;
use crate::journal::store::WHOLE_DIFF;
use crate::journal::{Changed, CostSource, Fact, Lines, Receipt};
use crate::plural::plural;
use crate::signals::{Signal, task_list};
use crate::user_file;

/// Reading for so long without writing anything gets a nudge before it counts.
const LONG_READING: Duration = Duration::from_secs(20 * 60);

impl Looping<'_> {
    /// Looks at what the iteration did, and asks the user's commands when it claims to be the last.
    pub(super) async fn evaluate(
        &mut self,
        result: &mut IterationResult,
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let number = result.receipt.iteration;
        if let (Some(_), Some(Signal::Complete { marker } | Signal::Replan { marker })) =
            (&result.report.failure, &result.report.signal)
        {
            let (marker, line) = (marker.clone(), marker.clone());
            result.report.signal = Some(Signal::NearMiss { marker, reason: "the iteration failed".to_owned(), line });
        }
        if let Some(Signal::NearMiss { marker, reason, .. }) = &result.report.signal {
            self.memory.remarks.push(format!("{marker} in your last answer did not count: {reason}."));
        }
        let most = self.policy().max_time;
        if result.report.out_of_time && most.is_none_or(|most| self.elapsed() < most) {
            result.report.out_of_time = false;
            result.report.free = Some("the time limit was raised meanwhile".to_owned());
        }
        self.other_way(result, assignment);
        self.keep_session(result, assignment, recorder)?;
        self.publish_all(result, assignment, recorder)?;

        // What decides about the end of the run must be certain.
        let most_stalled = self.policy().max_stalled;
        let near_end = most_stalled > 0 && self.memory.state.stalled + 1 >= most_stalled;
        let certain = near_end || result.report.may_complete(plan.policy.until) || !plan.allowed_paths.is_empty();
        let effort = if certain { Effort::Full } else { Effort::Touched };
        let mut change = self.snapshots.take(By::Agent, plan.keeps_diffs, effort).await;
        self.tell_what_is_not_watched(recorder)?;
        if let Some(patch) = change.patch.take().filter(|_| change.moved != Some(false)) {
            result.receipt.lines = Lines::of(&patch);
            recorder.difference(&number.to_string(), &patch)?;
        }
        self.commit_iteration(number, &mut change, recorder).await?;
        self.snapshots.keep(number).await;
        self.tell_what_is_not_watched(recorder)?;
        let complaints = std::mem::take(&mut result.complaints);
        result.must_stop = self.look_at_wall(number, &complaints, recorder)?;
        result.report.veto = self.veto().await;
        let mut skipped = result.must_stop.is_some();
        match self.after_iteration(&result.receipt, recorder, interrupts).await? {
            HookEnd::Continue => {}
            HookEnd::Skip if plan.verify.is_empty() && plan.judges.is_empty() => {}
            // What was not checked is not accepted.
            HookEnd::Skip => {
                result.report.veto = Some("`hooks.after_iteration` skipped the checks".to_owned());
                skipped = true;
            }
            HookEnd::RunOver(end) => self.stopped_by_hook = Some(end),
        }
        if !skipped {
            let checks = self.ask_checks(result, assignment, recorder, interrupts).await?;
            let after_checks = self.look_at_wall(number, &[], recorder)?;
            result.must_stop = result.must_stop.take().or(after_checks);
            self.ask_judges(result, &checks, assignment, recorder, interrupts).await?;
        }
        if let Some(veto) = result.report.veto.as_ref().filter(|_| result.report.is_claim()) {
            self.memory.remarks.push(format!("completion rejected: {veto}."));
        }
        result.report.progress = self.progress(result, &change);
        result.receipt.take(change);
        self.spend(result, recorder)?;
        result.report.spent = result.report.spent.and(result.judges);
        self.substitute(&mut result.report, assignment);
        Ok(())
    }

    /// Keeps the session of the iteration; one that was refused is forgotten, and its failure costs nothing.
    fn keep_session(
        &mut self,
        result: &mut IterationResult,
        assignment: &Assignment,
        recorder: &mut Recorder,
    ) -> Result<(), UserError> {
        let agent = &self.plan.workers[assignment.worker].agent;
        let class = result.report.failure.as_ref().map(|failure| failure.class);
        let refused = result.report.resumed
            && !result.answered
            && matches!(class, Some(FailureClass::Agent | FailureClass::Config))
            && !result.report.interrupted;
        if refused {
            self.memory.sessions.forget(agent);
            let message = format!("`{}` did not resume its session; starting a fresh one", agent.id());
            recorder.fact(Fact::Notice { message })?;
            result.report.free = Some("retrying in a fresh session".to_owned());
            return Ok(());
        }
        if class == Some(FailureClass::Context) {
            self.memory.sessions.forget(agent);
            self.memory.remarks.push("the context of your last session was full; this is a fresh one.".to_owned());
            return Ok(());
        }
        let Receipt { session, usage, context, .. } = &result.receipt;
        let mut percent = None;
        if let sessions::Policy::Resume { until: Some(_), window, .. } = self.plan.session {
            percent = context.and_then(|context| context.percent(window));
            if percent.is_none() && class.is_none() && !std::mem::replace(&mut self.memory.noticed_unmeasured, true) {
                let missing = if context.is_some() {
                    "how large its context is: set `context_window`"
                } else {
                    "how full its context is"
                };
                let message = format!(
                    "`{}` does not report {missing}; its session continues until it reports that it is full",
                    agent.id()
                );
                recorder.fact(Fact::Notice { message })?;
            }
        }
        let outcome = sessions::Outcome { id: session.as_deref(), usage, context: percent };
        self.memory.sessions.keep(agent, &assignment.session, &outcome, Timestamp::now());
        Ok(())
    }

    /// A command that has never answered may take its prompt the other way; that is tried once, and costs nothing.
    fn other_way(&mut self, result: &mut IterationResult, assignment: &Assignment) {
        let memory = &mut self.memory;
        if result.answered {
            memory.answered.insert(assignment.worker);
        }
        let definition = &self.plan.workers[assignment.worker].agent.definition;
        let class = result.report.failure.as_ref().map(|failure| failure.class);
        let may = definition.tries_both_prompts
            && class == Some(FailureClass::Agent)
            && !result.report.interrupted
            && result.process.stopped.is_none()
            && !memory.answered.contains(&assignment.worker);
        if may && memory.other_way.insert(assignment.worker) {
            result.report.free = Some("retrying with the prompt on stdin".to_owned());
        }
    }

    /// Publishes what the iteration said and what came by `ralph emit`.
    fn publish_all(
        &mut self,
        result: &mut IterationResult,
        assignment: &Assignment,
        recorder: &mut Recorder,
    ) -> Result<(), UserError> {
        let number = result.receipt.iteration;
        let hat = assignment.hat.as_ref().map(|active| active.hat.clone());
        let by = hat.as_ref().map_or("the agent", |hat| hat.id.as_str());
        let from = hat.as_ref().map(|hat| hat.id.as_str());
        let said = std::mem::take(&mut result.heard.topics.said);
        let said = said.into_iter().map(|said| Topic { topic: said.topic, payload: said.payload });
        let mut events: Vec<Topic> = said.chain(std::mem::take(&mut self.memory.orders.emitted)).collect();
        if let Some(topic) = hat.as_ref().and_then(|hat| hat.default_publishes.clone())
            && events.is_empty()
            && result.report.failure.is_none()
        {
            events.push(Topic { topic, payload: String::new() });
        }
        for event in &events {
            if self.plan.rule.is_completion_event(&event.topic)
                && result.report.failure.is_none()
                && matches!(result.report.signal, None | Some(Signal::NearMiss { .. }))
            {
                result.report.signal = Some(Signal::Complete { marker: event.topic.clone() });
            }
            result.receipt.published.push(event.topic.clone());
            self.publish(recorder, number, by, from, event)?;
        }
        if let Some(hat) = hat.as_ref()
            && self.memory.board.is_newly_exhausted(hat)
        {
            let event = Topic { topic: format!("{}.exhausted", hat.id), payload: String::new() };
            self.publish(recorder, number, "the run", None, &event)?;
        }
        for problem in std::mem::take(&mut result.heard.topics.problems) {
            recorder.fact(Fact::Notice { message: problem.clone() })?;
            self.memory.remarks.push(problem);
        }
        Ok(())
    }

    pub(super) fn publish(
        &mut self,
        recorder: &mut Recorder,
        iteration: u32,
        by: &str,
        hat: Option<&str>,
        event: &Topic,
    ) -> Result<(), UserError> {
        let delivery = self.memory.board.publish(&self.plan.hats, hat, event);
        if hat.is_some() && !self.plan.rule.is_completion_event(&event.topic) {
            self.memory.remarks.extend(delivery.remark);
        }
        let (event, by) = (event.clone(), by.to_owned());
        recorder.fact(Fact::Published { iteration, event, by, heard_by: delivery.heard_by })
    }

    /// Looks at the working directory before the first iteration.
    pub(super) async fn begin_watching(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        if !self.plan.allowed_paths.is_empty() {
            self.snapshots.guard().await;
        }
        self.tell_what_is_not_watched(recorder)?;
        if self.memory.state.iterations == 0 {
            self.snapshots.keep(0).await;
        }
        self.tell_what_is_not_watched(recorder)?;
        let uncommitted = self.snapshots.uncommitted();
        if uncommitted > 0 && self.plan.keeps_diffs && self.memory.state.iterations == 0 {
            let them = if uncommitted == 1 { "it" } else { "them" };
            let files = plural(uncommitted as u64, "uncommitted file");
            let message = format!("{files}; the run's diff will start from {them}");
            recorder.fact(Fact::Notice { message })?;
        }
        for path in self.memory.forbidden.paths().map(str::to_owned).collect::<Vec<_>>() {
            let content = self.snapshots.content(&path).await;
            self.memory.forbidden.resume(&path, content.as_deref());
        }
        self.memory.was_here_before(self.snapshots.fingerprint());
        Ok(())
    }

    /// Keeps the net change of the run, and counts it. A run that ends must not fail for it.
    pub(super) async fn keep_whole_diff(&self, recorder: &mut Recorder) -> Changed {
        let mut changed = self.memory.changed;
        // A run that was killed left none, even when nothing has changed since it was resumed.
        let is_missing = self.memory.state.iterations > 0 && !self.directory.difference(WHOLE_DIFF).exists();
        if self.plan.keeps_diffs
            && (self.snapshots.has_changed() || is_missing)
            && let Some(patch) = self.snapshots.whole_patch().await
        {
            changed.count(patch.as_bytes());
            // Without the state at the start, the patch holds only what was changed since the run was resumed.
            let _ = if self.snapshots.knows_start() {
                recorder.whole_difference(WHOLE_DIFF, &patch)
            } else {
                recorder.difference(WHOLE_DIFF, &patch)
            };
        }
        changed
    }

    pub(super) fn tell_what_is_not_watched(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        self.snapshots.notices().into_iter().try_for_each(|message| recorder.fact(Fact::Notice { message }))
    }

    /// Why a claim cannot hold, whatever the agent says.
    async fn veto(&mut self) -> Option<String> {
        let plan = self.plan;
        if !plan.allowed_paths.is_empty() {
            let changed = match self.snapshots.since_start().await {
                Ok(changed) => changed,
                Err(error) => return Some(format!("`allowed_paths` cannot be checked: {error}")),
            };
            let changed = paths::since(&self.phase_began_with, changed);
            self.memory.forbidden.update(&plan.allowed_paths, &changed);
            let forbidden: Vec<String> =
                self.memory.forbidden.paths().take(20).map(|path| format!("`{path}`")).collect();
            if !forbidden.is_empty() {
                let allowed = plan.allowed_paths.join(", ");
                let veto = format!("{} changed, and only {allowed} may change: undo that", forbidden.join(", "));
                self.memory.remarks.push(veto.clone());
                return Some(veto);
            }
        }
        let path = plan.workspace.join(plan.plan_file.as_ref()?);
        let name = plan.plan_file.as_ref()?.display();
        let text = match user_file::read_text(&path, user_file::MOST_BYTES) {
            Ok(text) => text,
            Err(error) => return Some(format!("the plan `{name}` cannot be read: {}", io_reason(&error))),
        };
        let open = task_list::items(&text).open;
        let first = open.first()?;
        Some(match open.len() {
            1 => format!("one item of `{name}` is open: {first}"),
            more => format!("{more} items of `{name}` are open, the first is: {first}"),
        })
    }

    /// Whether the iteration moved anything.
    fn progress(&mut self, result: &IterationResult, change: &Change) -> Progress {
        let memory = &mut self.memory;
        let mut hasher = DefaultHasher::new();
        (result.work, &result.heard.last_words).hash(&mut hasher);
        let work = result.work.map(|_| hasher.finish());
        let repeated = work.is_some() && std::mem::replace(&mut memory.work, work) == work;
        let verification = match &result.report.verification {
            Verification::Failed { summary } => Some(summary.clone()),
            _ => None,
        };
        let other_verdict =
            verification.is_some() && memory.verification.is_some() && verification != memory.verification;
        memory.verification = verification.or_else(|| memory.verification.take());
        let been_here = memory.was_here_before(self.snapshots.fingerprint());
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
        memory.remarks.push(format!("{still}. Do the next step, or say what blocks you."));
        let long = Duration::from_millis(result.receipt.duration_ms) >= LONG_READING;
        if long && !std::mem::replace(&mut memory.nudged, true) { Progress::Nudge } else { Progress::None }
    }

    /// Counts tokens and money, and says what cannot be seen.
    pub(super) fn spend(&mut self, result: &mut IterationResult, recorder: &mut Recorder) -> Result<(), UserError> {
        let Receipt { usage, .. } = &result.receipt;
        let is_its = |worker: &&Worker| worker.agent.id() == result.receipt.agent;
        let of_hat = |worker: &&Worker| is_its(worker) && worker.hat.is_some() && worker.hat == result.receipt.hat;
        let workers = &self.plan.workers;
        let worker = workers.iter().find(of_hat).or_else(|| workers.iter().find(is_its));
        let asked_for = worker.and_then(|worker| worker.agent.options.model.as_deref());
        let cost = self.plan.prices.cost(usage, asked_for);
        result.report.spent = Spent::of(usage, cost);
        self.memory.usage.add(usage);
        let limited = self.plan.policy.max_cost_usd.is_some() && cost.is_none() && result.report.failure.is_none();
        if limited && !std::mem::replace(&mut self.memory.noticed_unpriced, true) {
            let model = usage.model.as_deref().map_or_else(String::new, |model| format!(" for model `{model}`"));
            let message = format!(
                "`{}` reports no cost, and no price is known{model}: the cost limit has no effect; add the price under `pricing:` in `ralph.yml`",
                result.receipt.agent
            );
            recorder.fact(Fact::Notice { message })?;
        }
        if cost.is_some_and(|cost| cost.source == CostSource::Estimated)
            && let Some(list) = self.plan.prices.list
            && !std::mem::replace(&mut self.memory.noticed_estimate, true)
        {
            let message = format!("cost estimated from list prices of {}; `--no-prices` turns it off", list.date);
            recorder.fact(Fact::Notice { message })?;
        }
        result.receipt.cost = cost;
        Ok(())
    }

    /// Who takes over from an agent that is limited or locked out.
    fn substitute(&mut self, report: &mut Report, assignment: &Assignment) {
        let now = Timestamp::now();
        let Some(failure) = &mut report.failure else { return };
        let memory = &mut self.memory;
        match failure.class {
            FailureClass::RateLimit => {
                let wait = failure.retry_after.unwrap_or(Duration::from_secs(3600));
                memory.cooldown.limited(assignment.worker, now + wait);
            }
            FailureClass::Auth => memory.cooldown.locked_out(assignment.worker),
            _ => return,
        }
        let order = self.plan.order(assignment.worker);
        if let Some(worker) = memory.cooldown.first(order.clone(), now) {
            report.substitute = Some(self.plan.workers[worker].agent.id().to_owned());
        } else if let (true, Some(wait)) = (self.plan.substitutes > 0, memory.cooldown.wait(order, now)) {
            // The first who is free again is waited for.
            let message = failure.message.clone();
            *failure = Failure { class: FailureClass::RateLimit, message, retry_after: Some(wait) };
        }
    }

    /// What the user can do about an agent that may not do its work.
    pub(super) fn help(&self, report: &Report, assignment: &Assignment) -> Option<String> {
        let class = report.failure.as_ref().map(|failure| failure.class);
        let agent = &self.plan.workers[assignment.worker].agent;
        let definition = &agent.definition;
        let help = match class {
            Some(FailureClass::Auth) => Some(definition.auth.login.clone().unwrap_or_else(|| login_of(agent))),
            Some(FailureClass::Permission) => definition.permission_help.clone(),
            _ if !report.denied.is_empty() => definition.permission_help.clone(),
            _ => None,
        };
        help.map(|help| help.trim().to_owned())
    }
}

/// What to do about the login of an agent that ralph knows only by its command.
fn login_of(agent: &Agent) -> String {
    let program = agent.plugin.is_none().then(|| format!("start `{}` once", agent.program.display()));
    format!(
        "{} and log in, or set the API key that it needs",
        program.as_deref().unwrap_or("start the agent's own CLI")
    )
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
        self.branch = change.branch;
    }
}
