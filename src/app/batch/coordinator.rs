//! Drives a batch: starts what may start, passes on what came of it, and merges one task at a time. Everything that it decides is recorded
//! first, so that another coordinator can continue after `kill -9`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::board::Screen;
use super::local::Places;
use super::merge_queue::{self, Merge};
use crate::batch::order::BatchOrder;
use crate::batch::runner::{Ended, Event, Runner, Work, WorkResult};
use crate::batch::schedule;
use crate::batch::sources::Source;
use crate::batch::state::{Fact, Ledger, Stage, TaskState};
use crate::batch::task::{Task, TaskId};
use crate::config::Settings;
use crate::control::Inbox;
use crate::error::{UserError, exit_code, io_reason};
use crate::git::Repository;
use crate::run::{Came, Interrupts};
use crate::ui::{self, out};

/// How often a task whose run was cut off is started again.
const MOST_LOST: u32 = 5;
/// The wait for a rate limit of unknown length.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often the clock is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How often a pause is sent to a run that was just started, until it takes orders.
const LOOK_FOR_NEW_RUN: Duration = Duration::from_millis(500);

type Merging = Pin<Box<dyn Future<Output = (TaskId, String, Result<Merge, UserError>)>>>;

pub(crate) struct Coordinator<R> {
    pub ledger: Rc<RefCell<Ledger>>,
    pub runner: R,
    pub settings: Rc<Settings>,
    pub places: Arc<Places>,
    pub source: Option<Box<dyn Source>>,
    pub lost: BTreeMap<TaskId, u32>,
    /// Why it ends before all is done, and the exit code.
    pub ending: Option<(u8, String)>,
    pub merging: Option<Merging>,
    pub jobs: usize,
    pub inbox: Inbox<BatchOrder>,
    /// The tasks that are worked on now, also those that were skipped meanwhile.
    pub live: BTreeSet<TaskId>,
    /// Those of them that know of a pause of the batch.
    pub told: BTreeSet<TaskId>,
    /// What happens is printed, unless a full screen shows it.
    pub screen: Screen,
}

impl<R: Runner> Coordinator<R> {
    pub(super) fn record(&self, fact: Fact) -> Result<(), UserError> {
        record(&self.ledger, &self.screen, fact)
    }

    pub(super) fn state(&self, id: &TaskId) -> Option<TaskState> {
        self.ledger.borrow().batch.task(id).cloned()
    }

    /// Runs the batch to its end and gives the exit code.
    pub(crate) async fn run(mut self) -> Result<u8, UserError> {
        let mut interrupts =
            Interrupts::listen().map_err(|error| UserError::failed(format!("cannot start: {}", io_reason(&error))))?;
        self.take_over().await?;
        let began = Timestamp::now();
        loop {
            self.look_at_limits(began);
            if self.ending.is_none() {
                self.start_tasks().await?;
                self.start_merge();
            }
            if self.ledger.borrow().batch.paused {
                self.pause_running().await;
            }
            if self.live.is_empty() && self.merging.is_none() && (self.ending.is_some() || !self.waits()) {
                return self.end();
            }
            let pause = self.patience();
            tokio::select! {
                biased;
                came = interrupts.next() => if let Came::Interrupt(interrupt, _) = came {
                    let code = u8::try_from(128 + interrupt.number()).unwrap_or(130);
                    self.ending = Some((code, "interrupted".to_owned()));
                    self.cancel_all();
                },
                received = self.inbox.next() => self.obey(received).await?,
                (task, event) = self.runner.next() => self.handle(&task, event)?,
                (task, tip, merge) = merged(&mut self.merging) => {
                    self.merging = None;
                    self.after_merge(&task, tip, merge).await?;
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// What a coordinator that was killed has left: merges that were done, attempts that ended, worktrees of merged tasks.
    async fn take_over(&mut self) -> Result<(), UserError> {
        let (start, tasks) = {
            let batch = &self.ledger.borrow().batch;
            (batch.start.clone(), batch.tasks.clone())
        };
        for state in tasks {
            let id = state.task.id.clone();
            let branch = self.ledger.borrow().batch.branch(&id);
            match &state.stage {
                Stage::Merging { commit, .. } if merge_queue::has(&start, commit).await => {
                    self.merged(&id, Some(commit.clone())).await?;
                }
                Stage::Merged { .. } => {
                    self.runner.merged(&id).await;
                    let _ = merge_queue::clean(&start, &self.places, &branch).await;
                }
                Stage::Running => {
                    let work = self.work(&state);
                    if let Some(ended) = self.runner.look(&work).await {
                        self.ended(&id, ended)?;
                    } else {
                        let why = "its coordinator was killed".to_owned();
                        self.record(Fact::Again { task: id, why, cost_usd: None })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a task can start later without anything else happening first: after a rate limit, or after a pause.
    fn waits(&self) -> bool {
        let batch = &self.ledger.borrow().batch;
        let waiting = |state: &&TaskState| state.stage == Stage::Waiting;
        let paused = |state: &TaskState| state.paused || batch.paused;
        let is_over = |state: &TaskState| state.stage.is_over();
        batch.paused && !batch.tasks.iter().all(is_over)
            || batch.tasks.iter().filter(waiting).any(|state| paused(state) || self.held_until(state).is_some())
    }

    /// How long to wait before looking again.
    fn patience(&self) -> Duration {
        if self.ledger.borrow().batch.paused && self.told.len() < self.live.len() {
            return LOOK_FOR_NEW_RUN;
        }
        LOOK.min(self.next_hold())
    }

    fn work(&self, state: &TaskState) -> Work {
        let batch = &self.ledger.borrow().batch;
        let base = Repository::at(&batch.start.repository).and_then(|it| it.branch(&batch.start.target));
        let (task, repair) = with_hints(state);
        Work {
            task,
            attempt: state.attempt,
            branch: batch.branch(&state.task.id),
            base: base.unwrap_or_default(),
            run: state.run.clone(),
            repair,
            max_cost: batch.start.max_cost.map(|most| (most - batch.cost()).max(0.01)),
        }
    }

    fn agent<'a>(&'a self, state: &'a TaskState) -> &'a str {
        state.task.agent.as_deref().unwrap_or(&self.settings.agent.value)
    }

    fn held_until(&self, state: &TaskState) -> Option<Timestamp> {
        let agent = self.agent(state);
        self.ledger.borrow().batch.held.get(agent).copied().filter(|until| *until > Timestamp::now())
    }

    fn next_hold(&self) -> Duration {
        let now = Timestamp::now();
        let held = &self.ledger.borrow().batch.held;
        let until = held.values().filter(|until| **until > now).min();
        until.map_or(LOOK, |until| Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
    }

    async fn start_tasks(&mut self) -> Result<(), UserError> {
        let starts = schedule::next(&self.ledger.borrow().batch, self.jobs, |state| self.held_until(state).is_some());
        for at in starts {
            let state = self.ledger.borrow().batch.tasks[at].clone();
            let id = state.task.id.clone();
            // An attempt that was cut off is the same attempt.
            let again = state.attempt > 0 && state.repair.is_none() && state.unmerged == 0 && state.why.is_some();
            let attempt = if again { state.attempt } else { state.attempt + 1 };
            self.record(Fact::Started { task: id.clone(), attempt })?;
            let work = self.work(&TaskState { attempt, ..state });
            match self.runner.start(work).await {
                Ok(()) => drop(self.live.insert(id)),
                Err(error) => self.stuck(&id, error.message, None)?,
            }
        }
        Ok(())
    }

    fn start_merge(&mut self) {
        if self.merging.is_some() || self.ledger.borrow().batch.paused {
            return;
        }
        let screen = self.screen.clone();
        let ledger = Rc::clone(&self.ledger);
        let batch = &self.ledger.borrow().batch;
        let next = batch.tasks.iter().find_map(|state| match &state.stage {
            Stage::Checking { tip } | Stage::Merging { tip, .. } => Some((Arc::clone(&state.task), tip.clone())),
            _ => None,
        });
        let Some((task, tip)) = next else { return };
        let (start, branch) = (batch.start.clone(), batch.branch(&task.id));
        let (settings, places) = (Rc::clone(&self.settings), Arc::clone(&self.places));
        self.merging = Some(Box::pin(async move {
            let before = |commit: &str| {
                let fact = Fact::Merging { task: task.id.clone(), commit: commit.to_owned() };
                record(&ledger, &screen, fact)
            };
            let done = merge_queue::merge(&start, &settings, &places, &task, (&branch, &tip), before).await;
            (task.id.clone(), tip, done)
        }));
    }

    async fn after_merge(
        &mut self,
        id: &TaskId,
        tip: String,
        merge: Result<Merge, UserError>,
    ) -> Result<(), UserError> {
        let Some(state) = self.state(id) else { return Ok(()) };
        match merge {
            Ok(Merge::Merged(commit)) => self.merged(id, commit).await,
            Ok(Merge::Unmerged { why, prompt }) => {
                let most = self.ledger.borrow().batch.start.merge_attempts;
                if state.unmerged >= most {
                    return self.stuck(id, why, None);
                }
                self.record(Fact::Unmerged { task: id.clone(), why, prompt, tip })
            }
            Ok(Merge::Blocked(why)) => self.stuck(id, why, None),
            Err(error) => self.stuck(id, error.message, None),
        }
    }

    async fn merged(&self, id: &TaskId, commit: Option<String>) -> Result<(), UserError> {
        let (start, branch) = {
            let batch = &self.ledger.borrow().batch;
            (batch.start.clone(), batch.branch(id))
        };
        self.record(Fact::Merged { task: id.clone(), commit })?;
        self.runner.merged(id).await;
        if let Err(error) = merge_queue::clean(&start, &self.places, &branch).await {
            out::warn(format_args!("cannot clean up after {id}: {error}"));
        }
        if let Some(Err(error)) = self.source.as_ref().map(|source| source.merged(id)) {
            out::warn(error.message);
        }
        Ok(())
    }

    pub(super) fn stuck(&self, id: &TaskId, why: String, cost_usd: Option<f64>) -> Result<(), UserError> {
        self.record(Fact::Stuck { task: id.clone(), why, cost_usd })
    }

    fn handle(&mut self, id: &TaskId, event: Event) -> Result<(), UserError> {
        match event {
            Event::Started { run } => self.record(Fact::Run { task: id.clone(), run }),
            Event::Cost { usd } => {
                // Known to the limit of the batch; recorded when the attempt ends.
                let batch = &mut self.ledger.borrow_mut().batch;
                batch
                    .tasks
                    .iter_mut()
                    .filter(|state| state.task.id == *id)
                    .for_each(|state| state.cost_usd = Some(usd));
                Ok(())
            }
            Event::Ended(ended) => self.ended(id, ended),
        }
    }

    fn ended(&mut self, id: &TaskId, ended: Ended) -> Result<(), UserError> {
        self.live.remove(id);
        self.told.remove(id);
        let Some(state) = self.state(id).filter(|state| state.stage == Stage::Running) else {
            // Someone left it out meanwhile.
            return Ok(());
        };
        if let Some(run) = ended.run.filter(|run| state.run.as_ref() != Some(run)) {
            self.record(Fact::Run { task: id.clone(), run })?;
        }
        let (task, cost_usd) = (id.clone(), ended.cost_usd);
        match ended.result {
            WorkResult::Complete { tip } => {
                self.lost.remove(id);
                self.record(Fact::Completed { task, tip, cost_usd })
            }
            WorkResult::RateLimited { agent, until } => {
                let until = until.or_else(|| Timestamp::now().checked_add(UNKNOWN_LIMIT).ok());
                let until = until.unwrap_or_else(Timestamp::now);
                let asked = self.agent(&state).to_owned();
                let known = self.ledger.borrow().batch.held.get(&asked).copied();
                if known.is_none_or(|known| known < until) {
                    self.record(Fact::Held { agent: asked.clone(), until })?;
                }
                if agent != asked {
                    self.record(Fact::Held { agent, until })?;
                }
                self.record(Fact::Again { task, why: "rate limit".to_owned(), cost_usd })
            }
            WorkResult::Stopped if self.ending.is_some() => {
                self.record(Fact::Again { task, why: "stopped".to_owned(), cost_usd })
            }
            WorkResult::Stopped => self.stuck(id, "stopped".to_owned(), cost_usd),
            WorkResult::Failed { why } => self.stuck(id, why, cost_usd),
            WorkResult::Lost { why } => {
                let lost = self.lost.entry(task.clone()).or_default();
                *lost += 1;
                if *lost >= MOST_LOST {
                    return self.stuck(id, why, cost_usd);
                }
                self.record(Fact::Again { task, why, cost_usd })
            }
        }
    }

    fn look_at_limits(&mut self, began: Timestamp) {
        if self.ending.is_some() {
            return;
        }
        let ledger = self.ledger.borrow();
        let batch = &ledger.batch;
        let stuck = batch.tasks.iter().filter(|task| task.stage == Stage::Stuck).count();
        let seconds = Timestamp::now().as_second() - began.as_second();
        let start = &batch.start;
        let why = if start.max_cost.is_some_and(|most| batch.cost() >= most) {
            "the cost limit of the batch is reached"
        } else if start.max_seconds.is_some_and(|most| u64::try_from(seconds).is_ok_and(|passed| passed >= most)) {
            "the time limit of the batch is reached"
        } else if start.max_failures.is_some_and(|most| stuck >= most as usize) {
            "too many tasks failed"
        } else {
            return;
        };
        self.ending = Some((exit_code::LIMIT, why.to_owned()));
        drop(ledger);
        self.cancel_all();
    }

    pub(super) fn cancel_all(&mut self) {
        for id in &self.live {
            self.runner.cancel(id);
        }
    }

    /// Nothing is under way any more.
    fn end(&self) -> Result<u8, UserError> {
        let waiting: Vec<TaskState> =
            self.ledger.borrow().batch.tasks.iter().filter(|task| task.stage == Stage::Waiting).cloned().collect();
        if self.ending.is_none() {
            for state in waiting {
                let needs =
                    state.task.needs.iter().filter(|need| !self.state(need).is_some_and(|it| it.stage.satisfies()));
                let names: Vec<&str> = needs.map(TaskId::as_str).collect();
                self.stuck(&state.task.id, format!("needs {}, which is not merged", names.join(", ")), None)?;
            }
        }
        let all = self.ledger.borrow().batch.tasks.iter().all(|task| task.stage.satisfies());
        let (code, why) = match &self.ending {
            Some(ending) => ending.clone(),
            None if all => (exit_code::COMPLETE, "all tasks are merged or skipped".to_owned()),
            None => (exit_code::FAILED, "some tasks are stuck".to_owned()),
        };
        self.record(Fact::BatchEnd { exit_code: code, why })?;
        Ok(code)
    }
}

async fn merged(merging: &mut Option<Merging>) -> (TaskId, String, Result<Merge, UserError>) {
    match merging {
        Some(merging) => merging.await,
        None => std::future::pending().await,
    }
}

fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot record what the batch does: {}", io_reason(error)))
}

/// Records a fact, and says it where nothing else shows it.
fn record(ledger: &RefCell<Ledger>, screen: &Screen, fact: Fact) -> Result<(), UserError> {
    let line = ui::batch::line(&fact, &ledger.borrow().batch);
    let recorded = ledger.borrow_mut().record(fact);
    recorded.map_err(|error| unrecorded(&error))?;
    if let Some(line) = line.filter(|_| !screen.is_taken()) {
        // The reader may be gone.
        let _ = out::print(&format!("{line}\n"));
    }
    Ok(())
}

/// The task with what a person said about it, and the same for a repair.
fn with_hints(state: &TaskState) -> (Arc<Task>, Option<(String, String)>) {
    if state.hints.is_empty() {
        return (Arc::clone(&state.task), state.repair.clone());
    }
    let hints: Vec<String> = state.hints.iter().map(|words| format!("A person says: {words}")).collect();
    let hints = hints.join("\n\n");
    let prompt = format!("{}\n\n{hints}", state.task.prompt);
    let repair = match &state.repair {
        Some((words, tip)) => Some((format!("{words}\n\n{hints}"), tip.clone())),
        // It has a run already, which gets the words as a new prompt.
        None if state.attempt > 0 => Some((hints, String::new())),
        None => None,
    };
    (Arc::new(Task { prompt, ..(*state.task).clone() }), repair)
}

/// Where the batches of a project are.
pub(crate) fn batches(store: &crate::journal::Store) -> PathBuf {
    store.path().join("batches")
}
