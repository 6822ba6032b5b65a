//! One task on a worker, from the lease to the recorded result: the loop runs as a child, as on any machine, and beside it the lease is
//! renewed, the journal is sent and the work is pushed. Nothing is pushed or recorded without the lease.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{AckKind, Message};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use super::cache::{self, Cache};
use super::connect::Hub;
use super::lease::{Lease, RENEWED, Unwritten};
use super::sending::Sending;
use super::upload;
use crate::app::batch::{Local, Places};
use crate::batch::fleet::entry::{FleetOrder, Orders, Phase};
use crate::batch::fleet::names;
use crate::batch::fleet::submitted::Submitted;
use crate::batch::runner::{Ended, Event, Runner as _, Work, WorkResult};
use crate::batch::task::Task;
use crate::control::Order;
use crate::error::UserError;
use crate::git::PushError;
use crate::journal::{RunDirectory, State};
use crate::ui::out;

/// How often the journal is looked at.
const LOOK: Duration = Duration::from_millis(400);
/// How often progress is reported to the queue.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long the end of a task may wait for a server that does not answer.
const LAST_WORDS: Duration = Duration::from_secs(3600);
const PAUSE: Duration = Duration::from_secs(2);

/// How the work on a task ended for this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The result is recorded.
    Recorded,
    /// Given back, for another worker.
    Released,
    /// Another worker has it, or the task is over: nothing was changed.
    Lost,
}

pub(crate) struct Assignment<'a> {
    pub hub: &'a Hub,
    pub cache: &'a Cache,
    pub state: &'a State,
    /// For files of this task.
    pub directory: PathBuf,
    pub submitted: &'a Submitted,
    /// As the policy allows it.
    pub task: Task,
    pub sandbox: &'a str,
    pub message: &'a Message,
    /// One fetch at a time, so that a first one is not made four times.
    pub fetching: &'a Mutex<()>,
    /// True once the worker is to end.
    pub ending: &'a Cell<bool>,
}

/// What the child and what watches over it know of each other.
#[derive(Default)]
struct Shared {
    ended: RefCell<Option<Ended>>,
    run: RefCell<Option<RunDirectory>>,
    cost: Cell<Option<f64>>,
}

enum Tell {
    Order(Order),
    Cancel,
}

impl Assignment<'_> {
    /// Works on the task until its result is recorded, it is given back, or the lease is lost.
    pub(crate) async fn run(self, mut lease: Lease) -> Left {
        let begun = self.begin(&mut lease).await;
        let (local, remote, places) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let result = WorkResult::Failed { why: error.message };
                let ended = Ended { run: lease.entry.run.clone(), cost_usd: lease.entry.cost_usd, result };
                return self.record(&mut lease, ended).await;
            }
        };
        let shared = Shared::default();
        let (tell, told) = mpsc::unbounded_channel();
        let branch = self.submitted.branch();
        let child = child(local, &self.task, &places, &branch, &shared, told);
        let watch = self.watch(&mut lease, remote, &shared, &tell);
        let ((), left) = tokio::join!(child, watch);
        self.clean(&places).await;
        left
    }

    fn places(&self) -> Places {
        Places {
            state: self.state.clone(),
            worktrees: cache::worktrees(self.state, &self.cache.top),
            repository: self.cache.top.clone(),
            below: PathBuf::from(&self.submitted.below),
        }
    }

    /// Says that the task is worked on while something takes long that comes before its run.
    async fn meanwhile<F: Future>(&self, what: F) -> F::Output {
        tokio::pin!(what);
        loop {
            tokio::select! {
                done = &mut what => return done,
                () = tokio::time::sleep(RENEWED) => {
                    let _ = super::soon(self.message.ack_with(AckKind::Progress)).await;
                }
            }
        }
    }

    /// Fetches, and starts the child.
    async fn begin(&self, lease: &mut Lease) -> Result<(Local, Option<String>, Rc<Places>), UserError> {
        let branch = self.submitted.branch();
        let take_over = (lease.entry.leases > 1).then_some(lease.entry.leases);
        let fetch = async || {
            let _alone = self.fetching.lock().await;
            self.cache.begin(self.submitted, take_over).await
        };
        let fetched = self.meanwhile(super::patiently(fetch)).await;
        let beginning = fetched.map_err(|error| UserError::failed(format!("cannot fetch the repository: {error}")))?;
        let places = self.places();
        // What an earlier worker on this machine left of it.
        self.remove_records(&places, &branch);
        let mut args = vec![format!("--sandbox={}", self.sandbox), "--task-worker".to_owned()];
        let journal = self.directory.join("journal.jsonl");
        if let Some(run) = lease.entry.run.clone().filter(|_| lease.entry.journal > 0) {
            let length = lease.entry.journal;
            let read = async || super::follow::journal_so_far(self.hub, self.submitted, length).await;
            let known = self.meanwhile(super::patiently(read)).await;
            let known = known.map_err(|error| UserError::failed(format!("cannot read the journal so far: {error}")))?;
            let write =
                |path: &PathBuf, text: &[u8]| std::fs::write(path, text).map_err(|error| super::unusable(path, &error));
            lease.entry.journal = known.len() as u64;
            write(&journal, &known)?;
            if !known.is_empty() {
                args.push(format!("--task-journal={}", journal.display()));
            }
            args.push(format!("--task-run={run}"));
            if known.is_empty() {
                // It begins again.
            } else if let Some(repair) = &self.submitted.repair {
                let path = self.directory.join("again.md");
                write(&path, repair.prompt.as_bytes())?;
                args.push(format!("--task-again={}", path.display()));
            } else if self.submitted.attempt > 1 {
                args.push("--task-again".to_owned());
            }
        } else if let Some(run) = &lease.entry.run {
            // Nothing of it was pushed: it begins again, as the same run.
            args.push(format!("--task-run={run}"));
        }
        let mut local = Local::new(Arc::new(places.clone()), &self.directory, args);
        let work = Work {
            task: Arc::new(self.task.clone()),
            attempt: 1,
            branch,
            base: beginning.commit,
            run: None,
            repair: None,
            max_cost: self.submitted.max_cost,
        };
        local.start(work).await?;
        Ok((local, beginning.remote, Rc::new(places)))
    }

    /// Keeps the lease, sends the journal and pushes, until the child has ended and everything is there.
    async fn watch(
        &self,
        lease: &mut Lease,
        mut remote: Option<String>,
        shared: &Shared,
        tell: &mpsc::UnboundedSender<Tell>,
    ) -> Left {
        let mut sending = Sending::new(self.hub, self.submitted, lease.entry.leases, lease.entry.journal);
        let (mut progress, mut asked) = (Instant::now(), Instant::now());
        let mut released = false;
        let left = loop {
            tokio::time::sleep(LOOK).await;
            if progress.elapsed() >= PROGRESS {
                progress = Instant::now();
                let _ = super::soon(self.message.ack_with(AckKind::Progress)).await;
            }
            if self.ending.get() && !released {
                released = true;
                let _ = tell.send(Tell::Cancel);
            }
            let known = shared.run.borrow().as_ref().map(|run| run.id.clone());
            if known.is_some() && lease.entry.run != known {
                // Before its journal: whoever takes over continues the same run.
                lease.entry.run = known;
                if lease.save().await == Err(Unwritten::Lost) {
                    break Left::Lost;
                }
            }
            lease.entry.cost_usd = shared.cost.get().or(lease.entry.cost_usd);
            if lease.since_renewal() >= RENEWED && lease.save().await == Err(Unwritten::Lost) {
                break Left::Lost;
            }
            if asked.elapsed() >= RENEWED {
                asked = Instant::now();
                self.pass_orders(lease, tell).await;
            }
            let run = shared.run.borrow().clone();
            if let Some(run) = &run
                && sending.send_some(run).await
                && self.push(lease, &mut remote, sending.sent()).await == Err(Unwritten::Lost)
            {
                break Left::Lost;
            }
            let ended = shared.ended.borrow().clone();
            if let Some(ended) = ended {
                return self.end(lease, &mut remote, &mut sending, ended, released).await;
            }
        };
        out::warn(format!("{}: another worker has it; stopped", self.task.id));
        let _ = tell.send(Tell::Cancel);
        while shared.ended.borrow().is_none() {
            tokio::time::sleep(LOOK).await;
            // The second one kills.
            let _ = tell.send(Tell::Cancel);
        }
        left
    }

    /// Pushes what the branch has, if the lease is still ours.
    async fn push(&self, lease: &mut Lease, remote: &mut Option<String>, journal: u64) -> Result<(), Unwritten> {
        let branch = self.submitted.branch();
        let Some(tip) = self.cache.branch(&branch) else { return Ok(()) };
        if remote.as_ref() != Some(&tip) {
            // Fresh: the server says that it is ours, and not so long ago that it could be over.
            lease.save().await?;
            if !lease.is_current() {
                return Err(Unwritten::Unreachable);
            }
            match self.cache.push(&branch, remote.as_deref(), &tip).await {
                Ok(()) => *remote = Some(tip.clone()),
                Err(PushError::Moved) => return Err(Unwritten::Lost),
                Err(PushError::Git(error)) => {
                    out::warn(format!("{}: cannot push: {error}", self.task.id));
                    return Err(Unwritten::Unreachable);
                }
            }
        }
        (lease.entry.pushed, lease.entry.journal) = (Some(tip), journal);
        lease.save().await
    }

    /// The child has ended: everything is sent, then the result is recorded.
    async fn end(
        &self,
        lease: &mut Lease,
        remote: &mut Option<String>,
        sending: &mut Sending<'_>,
        mut ended: Ended,
        released: bool,
    ) -> Left {
        let began = Instant::now();
        let run = self.places().run(&self.submitted.branch());
        lease.entry.run = run.as_ref().map(|run| run.id.clone()).or(lease.entry.run.take());
        lease.entry.cost_usd = ended.cost_usd.or(lease.entry.cost_usd);
        loop {
            let sent = match &run {
                Some(run) => sending.send_all(run).await,
                None => true,
            };
            let pushed = if sent {
                self.push(lease, remote, sending.sent()).await
            } else {
                lease.save().await.and(Err(Unwritten::Unreachable))
            };
            match pushed {
                Ok(()) => break,
                Err(Unwritten::Lost) => return Left::Lost,
                Err(Unwritten::Unreachable) if began.elapsed() > LAST_WORDS => {
                    out::warn(format!("{}: the work could not be pushed; given up", self.task.id));
                    return Left::Lost;
                }
                Err(Unwritten::Unreachable) => {
                    let _ = super::soon(self.message.ack_with(AckKind::Progress)).await;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if released && ended.result == WorkResult::Stopped {
            lease.entry.phase = Phase::Queued;
            lease.entry.given_back += 1;
            return match lease.save().await {
                Ok(()) => Left::Released,
                Err(_) => Left::Lost,
            };
        }
        if let WorkResult::Complete { tip } = &mut ended.result
            && let Some(pushed) = &lease.entry.pushed
        {
            tip.clone_from(pushed);
        }
        if let Some(run) = &run
            && let Err(error) = upload::put(self.hub, self.submitted, run, &self.directory).await
        {
            out::warn(format!("{}: cannot store the directory of the run: {error}", self.task.id));
        }
        ended.run.clone_from(&lease.entry.run);
        self.record(lease, ended).await
    }

    async fn record(&self, lease: &mut Lease, ended: Ended) -> Left {
        lease.entry.phase = Phase::Done { ended };
        let began = Instant::now();
        loop {
            match lease.save().await {
                Ok(()) => return Left::Recorded,
                Err(Unwritten::Lost) => return Left::Lost,
                Err(Unwritten::Unreachable) if began.elapsed() > LAST_WORDS => return Left::Lost,
                Err(Unwritten::Unreachable) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Orders that came since.
    async fn pass_orders(&self, lease: &mut Lease, tell: &mpsc::UnboundedSender<Tell>) {
        let key = names::orders_key(&self.submitted.batch, &self.submitted.task.id);
        let Some(Ok(Some(bytes))) = super::soon(self.hub.state.get(key)).await else { return };
        let Ok(Orders { orders }) = serde_json::from_slice(&bytes) else { return };
        for order in orders.into_iter().skip(lease.entry.orders) {
            lease.entry.orders += 1;
            let _ = match order {
                FleetOrder::Cancel(round) if round == self.submitted.round => tell.send(Tell::Cancel),
                FleetOrder::Cancel(_) => Ok(()),
                FleetOrder::Loop(order) => tell.send(Tell::Order(order)),
            };
        }
    }

    /// Removes the runs of the task. Their place is named after the worktree, which may be gone.
    fn remove_records(&self, places: &Places, branch: &str) {
        let worktree = places.worktree(branch);
        let parent = places.worktrees.canonicalize().unwrap_or_else(|_| places.worktrees.clone());
        let mut workspace = parent.join(worktree.file_name().unwrap_or_default());
        // `join` with nothing would add a slash, and another name is another store.
        if !self.submitted.below.is_empty() {
            workspace.push(&self.submitted.below);
        }
        let _ = std::fs::remove_dir_all(self.state.store(&workspace).path());
    }

    /// Everything of the task that is on this machine: it is pushed, sent and stored elsewhere, or belongs to another worker.
    async fn clean(&self, places: &Places) {
        let branch = self.submitted.branch();
        if let Ok(writer) = self.cache.writer() {
            let _ = writer.remove_worktree(&places.worktree(&branch));
            if let Some(tip) = writer.repository.branch(&branch) {
                let _ = writer.update_ref(&format!("refs/heads/{branch}"), None, Some(&tip), "").await;
            }
        }
        self.remove_records(places, &branch);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Drives the child and passes orders on to it.
async fn child(
    mut local: Local,
    task: &Task,
    places: &Places,
    branch: &str,
    shared: &Shared,
    mut told: mpsc::UnboundedReceiver<Tell>,
) {
    loop {
        tokio::select! {
            (_, event) = local.next() => match event {
                Event::Started { .. } => *shared.run.borrow_mut() = places.run(branch),
                Event::Cost { usd } => shared.cost.set(Some(usd)),
                Event::Ended(ended) => {
                    *shared.ended.borrow_mut() = Some(ended);
                    return;
                }
            },
            Some(tell) = told.recv() => match tell {
                Tell::Cancel => local.cancel(&task.id),
                Tell::Order(order) => {
                    if let Err(error) = local.order(&task.id, &order).await {
                        out::warn(format!("{}: {}", task.id, error.message));
                    }
                }
            },
        }
    }
}
