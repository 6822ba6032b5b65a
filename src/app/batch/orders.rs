//! What a batch does with the orders of a person.

use crate::batch::order::BatchOrder;
use crate::batch::runner::Runner;
use crate::batch::sources::{self, PlacedTask};
use crate::batch::state::{Fact, Stage, TaskState};
use crate::batch::task::TaskId;
use crate::control::{Order, Received};
use crate::error::UserError;

use super::coordinator::Coordinator;

/// The exit code of Ctrl-C.
const INTERRUPTED: u8 = 130;

impl<R: Runner> Coordinator<R> {
    /// Carries out an order. Its sender hears when it is recorded, or why it is not.
    pub(super) async fn obey(&mut self, received: Received<BatchOrder>) -> Result<(), UserError> {
        match self.carry_out(received.order.clone()).await {
            Ok(()) => drop(received.accept()),
            Err(Refusal::Why(why)) => received.refuse(why),
            Err(Refusal::Unrecorded(error)) => return Err(error),
        }
        Ok(())
    }

    async fn carry_out(&mut self, order: BatchOrder) -> Result<(), Refusal> {
        match order {
            BatchOrder::Hint { task, words } => self.hint(task, words).await,
            BatchOrder::Pause { task: Some(task) } => {
                let state = self.known(&task)?;
                if state.stage == Stage::Running {
                    self.pass_on(&task, &Order::Pause).await?;
                } else if state.stage.is_over() {
                    return Err(Refusal::Why(format!("task `{task}` is {}", self.word(&state))));
                }
                Ok(self.record(Fact::Paused { task: Some(task) })?)
            }
            BatchOrder::Pause { task: None } => {
                self.record(Fact::Paused { task: None })?;
                self.pause_running().await;
                Ok(())
            }
            BatchOrder::Continue { task: Some(task) } => {
                let state = self.known(&task)?;
                if state.stage == Stage::Running {
                    self.pass_on(&task, &Order::Continue).await?;
                }
                Ok(self.record(Fact::Continued { task: Some(task) })?)
            }
            BatchOrder::Continue { task: None } => {
                self.record(Fact::Continued { task: None })?;
                self.told.clear();
                for id in self.live.clone() {
                    // One that ends just now needs no order.
                    let _ = self.runner.order(&id, &Order::Continue).await;
                }
                Ok(())
            }
            BatchOrder::Stop { task: Some(task) } => self.stop(&task).await,
            BatchOrder::Stop { task: None } => {
                self.ending.get_or_insert_with(|| (INTERRUPTED, "stopped".to_owned()));
                for id in self.live.clone() {
                    // One that takes no orders yet has done nothing yet.
                    if self.runner.order(&id, &Order::Stop { now: false }).await.is_err() {
                        self.runner.cancel(&id);
                    }
                }
                Ok(())
            }
            BatchOrder::Cancel => {
                self.record(Fact::Cancelled)?;
                self.ending = Some((INTERRUPTED, "cancelled".to_owned()));
                self.cancel_all();
                Ok(())
            }
            BatchOrder::Retry { task } => {
                let state = self.known(&task)?;
                if !matches!(state.stage, Stage::Stuck | Stage::Skipped) || self.live.contains(&task) {
                    return Err(Refusal::Why(format!("task `{task}` is {}", self.word(&state))));
                }
                self.lost.remove(&task);
                Ok(self.record(Fact::Retried { task })?)
            }
            BatchOrder::Skip { task } => {
                let state = self.known(&task)?;
                if !matches!(state.stage, Stage::Waiting | Stage::Running | Stage::Stuck) {
                    return Err(Refusal::Why(format!("task `{task}` is {}", self.word(&state))));
                }
                self.record(Fact::Skipped { task: task.clone() })?;
                self.runner.cancel(&task);
                Ok(())
            }
            BatchOrder::Add { tasks } => {
                let found = tasks.into_iter().map(|task| PlacedTask { place: format!("task {}", task.id), task });
                let found: Vec<PlacedTask> = found.collect();
                let known: Vec<_> = self.ledger.borrow().batch.tasks.iter().map(|it| it.task.clone()).collect();
                let known: Vec<_> = known.iter().map(|task| &**task).collect();
                sources::check(&found, &known).map_err(|error| Refusal::Why(error.message))?;
                for PlacedTask { task, .. } in found {
                    self.record(Fact::Added { task: Box::new(task) })?;
                }
                Ok(())
            }
        }
    }

    /// The words go to the run, or wait for the next prompt of a task that is not running.
    async fn hint(&mut self, task: TaskId, words: String) -> Result<(), Refusal> {
        let state = self.known(&task)?;
        if state.stage == Stage::Running {
            return self.pass_on(&task, &Order::Hint { words }).await;
        }
        if state.stage.satisfies() {
            return Err(Refusal::Why(format!("task `{task}` is {}", self.word(&state))));
        }
        Ok(self.record(Fact::Hinted { task, words })?)
    }

    async fn stop(&mut self, task: &TaskId) -> Result<(), Refusal> {
        let state = self.known(task)?;
        match state.stage {
            Stage::Running => self.pass_on(task, &Order::Stop { now: false }).await,
            Stage::Waiting => Ok(self.stuck(task, "stopped".to_owned(), None)?),
            _ => Err(Refusal::Why(format!("task `{task}` is {}", self.word(&state)))),
        }
    }

    /// Tells the runs under way to pause. A run that has just been started takes no orders yet, so it gets the order later.
    pub(super) async fn pause_running(&mut self) {
        for id in self.live.clone() {
            if !self.told.contains(&id) && self.runner.order(&id, &Order::Pause).await.is_ok() {
                self.told.insert(id);
            }
        }
    }

    async fn pass_on(&mut self, task: &TaskId, order: &Order) -> Result<(), Refusal> {
        self.runner.order(task, order).await.map_err(|error| Refusal::Why(error.message))
    }

    fn known(&self, task: &TaskId) -> Result<TaskState, Refusal> {
        self.state(task).ok_or_else(|| Refusal::Why(format!("the batch has no task `{task}`")))
    }

    fn word(&self, state: &TaskState) -> &'static str {
        crate::ui::batch::stage(&self.ledger.borrow().batch, state).0
    }
}

/// Why an order is not carried out.
enum Refusal {
    Why(String),
    /// The batch cannot continue without its records.
    Unrecorded(UserError),
}

impl From<UserError> for Refusal {
    fn from(error: UserError) -> Self {
        Self::Unrecorded(error)
    }
}
