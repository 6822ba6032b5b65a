//! After an iteration: what it changed, what it published, what it cost, and whether its claim holds.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use super::budget::Spent;
use super::casting::Cast;
use super::coordinator::Looping;
use super::decide::{Failure, Progress, Report, Verification};
use super::iteration::{Ears, Played};
use super::progress::{Change, Snapshot};
use super::{Interrupts, Recorder, paths, sessions, verify};
use crate::error::{UserError, io_reason};
use crate::event::FailureClass;
use crate::journal::receipt::MOST_FILES;
use crate::journal::{Fact, Receipt, Topic};
use crate::signals::{Signal, plan};

/// Reading for so long without writing anything gets a nudge before it counts.
const LONG_READING: Duration = Duration::from_secs(20 * 60);

impl Looping<'_> {
    /// Looks at what the iteration did, and asks the user's commands when it claims to be the last.
    pub(super) async fn evaluate(
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
        let most = self.policy().max_time;
        if played.report.out_of_time && most.is_none_or(|most| self.elapsed() < most) {
            played.report.out_of_time = false;
            played.report.free = Some("the time limit was raised meanwhile".to_owned());
        }
        self.other_way(played, cast);
        self.keep_session(played, cast, recorder)?;
        self.publish_all(played, cast, recorder)?;

        let now = Snapshot::take(&plan.workspace, plan.events_file.as_deref()).await;
        let change = now.since(&self.tree).await;
        played.report.veto = self.veto(&now).await;
        if let Some(shelf) = self.shelf.as_mut().filter(|_| change.moved != Some(false))
            && let Some(difference) = shelf.keep(now.changed()).await
        {
            recorder.difference(number, &String::from_utf8_lossy(&difference))?;
        }
        self.tree = now;
        if played.report.is_claim() && played.report.veto.is_none() && !plan.verify.is_empty() {
            let verified = if played.report.interrupted {
                verify::Verified { interrupted: true, ..verify::Verified::default() }
            } else {
                let verified = {
                    let environment = self.environment(cast);
                    let (inbox, orders) = (&mut self.inbox, &mut self.memory.orders);
                    let mut ears = Ears { interrupts, inbox, orders };
                    verify::verify(&plan.verify, &plan.workspace, &environment, &mut ears, recorder).await?
                };
                let (passed, checks) = (verified.passed(), verified.checks.clone());
                recorder.fact(Fact::Verification { iteration: number, passed, checks })?;
                // What the commands changed is not the agent's work.
                self.tree = Snapshot::take(&plan.workspace, plan.events_file.as_deref()).await;
                if let Some(shelf) = &mut self.shelf {
                    shelf.keep(self.tree.changed()).await;
                }
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
            played.report.free = Some("once more, in a fresh session".to_owned());
            return Ok(());
        }
        if class == Some(FailureClass::Context) {
            self.memory.sessions.forget(agent);
            self.memory.remarks.push("the context of your last session was full; this is a fresh one.".to_owned());
            return Ok(());
        }
        let Receipt { session, usage, context, .. } = &played.receipt;
        let mut percent = None;
        if let sessions::Policy::Resume { until: Some(_), window, .. } = self.plan.session {
            percent = context.and_then(|context| context.percent(window));
            if percent.is_none() && class.is_none() && !std::mem::replace(&mut self.memory.told_unmeasured, true) {
                let missing = if context.is_some() {
                    "how large its context is: set `context_window`"
                } else {
                    "how full its context is"
                };
                let message = format!(
                    "`{}` does not tell {missing}; its session goes on until it says that it is full",
                    agent.id()
                );
                recorder.fact(Fact::Notice { message })?;
            }
        }
        let outcome = sessions::Outcome { told: session.as_deref(), usage, context: percent };
        self.memory.sessions.keep(agent, &cast.session, &outcome, Timestamp::now());
        Ok(())
    }

    /// A command that has never answered may take its prompt the other way; that is tried once, and costs nothing.
    fn other_way(&mut self, played: &mut Played, cast: &Cast) {
        let memory = &mut self.memory;
        if played.answered {
            memory.answered.insert(cast.worker);
        }
        let definition = &self.plan.crew[cast.worker].agent.definition;
        let class = played.report.failure.as_ref().map(|failure| failure.class);
        let may = definition.tries_both_prompts
            && class == Some(FailureClass::Agent)
            && !played.report.interrupted
            && !memory.answered.contains(&cast.worker);
        if may && memory.other_way.insert(cast.worker) {
            played.report.free = Some("once more, with the prompt on standard input".to_owned());
        }
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
        if let Some(hat) = hat.as_ref()
            && self.memory.board.is_newly_exhausted(hat)
        {
            let event = Topic { topic: format!("{}.exhausted", hat.id), payload: String::new() };
            self.publish(recorder, number, "the run", None, &event)?;
        }
        for problem in std::mem::take(&mut played.heard.topics.problems) {
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
        let name = plan.plan_file.as_ref()?.display();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Some(format!("the plan `{name}` cannot be read: {}", io_reason(&error))),
        };
        let open = plan::items(&text).open;
        let first = open.first()?;
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
            Verification::Failed { summary } => Some(summary.clone()),
            _ => None,
        };
        let other_verdict =
            verification.is_some() && memory.verification.is_some() && verification != memory.verification;
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
        } else if let (true, Some(wait)) = (self.plan.substitutes > 0, memory.bench.wait(order, now)) {
            // The first who is free again is waited for.
            let message = failure.message.clone();
            *failure = Failure { class: FailureClass::RateLimit, message, retry_after: Some(wait) };
        }
    }

    /// What the user can do about an agent that may not do its work.
    pub(super) fn with_help(&self, reason: String, report: &Report, cast: &Cast) -> String {
        let class = report.failure.as_ref().map(|failure| failure.class);
        let help = &self.plan.crew[cast.worker].agent.definition.permission_help;
        match help {
            Some(help) if class == Some(FailureClass::Permission) || !report.denied.is_empty() => {
                format!("{reason}\n{}", help.trim())
            }
            _ => reason,
        }
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
        self.branch = change.branch;
    }
}
