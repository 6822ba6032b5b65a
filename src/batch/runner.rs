//! Through what a batch has its tasks worked on: children of this process (`local.rs`), or workers on other machines. The coordinator
//! decides what starts and what merges; a runner only works, and says what happened.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::task::{Task, TaskId};
use crate::control::Order;
use crate::error::UserError;

/// What a task is to be worked on with. Everything that is decided is in here, so that a worker needs nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub task: Arc<Task>,
    /// 1 at first, and one more each time the task is worked on again after a conflict, a failed check or `ralph batch retry`.
    /// An attempt that was cut off (killed, lost) is started again with the same number.
    pub attempt: u32,
    /// The branch that the work is on, `ralph/<batch>/<task>`.
    pub branch: String,
    /// The commit that the branch starts at. Only a first attempt uses it: the branch of a later one exists.
    pub base: String,
    /// The run to resume; `None` for a task that has none yet.
    pub run: Option<String>,
    /// When its work did not merge: what the agent is asked to do now, besides the task's own prompt, and the commit that did not merge.
    pub repair: Option<(String, String)>,
    /// What is left of the money of the batch.
    pub max_cost: Option<f64>,
}

/// What a runner says about a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// It is worked on, by this run.
    Started { run: String },
    /// What all its attempts have cost so far.
    Cost { usd: f64 },
    /// Nobody works on it any more. Exactly one for each `start`.
    Ended(Ended),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// The run, when there was one.
    pub run: Option<String>,
    /// What all its attempts have cost, as far as it is known.
    pub cost_usd: Option<f64>,
    pub result: WorkResult,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "snake_case")]
pub(crate) enum WorkResult {
    /// The run completed: its checks accepted the work, and everything is committed. `tip` is the newest commit of the branch, which
    /// the repository of the coordinator has.
    Complete { tip: String },
    /// The agent is rate-limited; the task can be started again at that time (`None`: not known). All tasks of the agent wait for it.
    RateLimited { agent: String, until: Option<Timestamp> },
    /// It was stopped by an order or by [`Runner::cancel`]; the run can be resumed.
    Stopped,
    /// The run did not complete, and starting it again would not help.
    Failed { why: String },
    /// The run was cut off by nobody's decision: its process was killed, its worker was lost. It is started again.
    Lost { why: String },
}

/// Works on tasks. One batch has one runner; its methods are called from one task of the runtime.
pub(crate) trait Runner {
    /// Starts an attempt. An error means that nothing was started and the task cannot be worked on at all. `start` must be safe to
    /// repeat: a coordinator that was killed calls it again with the same attempt, and work that is under way or done then must
    /// be found by the task and the attempt, not done twice.
    async fn start(&mut self, work: Work) -> Result<(), UserError>;

    /// What came of an attempt that a coordinator started which was killed since. `None`: it is started again.
    async fn look(&mut self, work: &Work) -> Option<Ended>;

    /// What happened next. Cancel-safe: a dropped call loses nothing. Does not return while nothing is under way.
    async fn next(&mut self) -> (TaskId, Event);

    /// Passes an order (hint, pause, continue, stop) to the loop of a task that is under way.
    async fn order(&mut self, task: &TaskId, order: &Order) -> Result<(), UserError>;

    /// Stops an attempt now. Its [`Event::Ended`] follows.
    fn cancel(&mut self, task: &TaskId);

    /// The work of a task is merged: what is kept for it elsewhere can go. Can be repeated.
    async fn merged(&self, task: &TaskId);
}
