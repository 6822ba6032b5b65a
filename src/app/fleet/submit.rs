//! `ralph batch --on`: the runner that puts tasks into the queue and follows what workers do with them. The branch of a finished task is
//! fetched, so that the merge queue of this machine finds it as if the task had been worked on here.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::connect;
use super::follow::Follower;
use super::queue::Queue;
use crate::app::batch::Places;
use crate::batch::fleet::entry::{Entry, FleetOrder, Phase};
use crate::batch::fleet::names;
use crate::batch::runner::{Ended, Event, Runner, Work, WorkResult};
use crate::batch::state::{OnFleet, Start};
use crate::batch::task::TaskId;
use crate::control::Order;
use crate::error::UserError;
use crate::git::{self, Repository, Writer};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::ui::{harmless, out};

/// A watch that is silent this long is made again.
const SILENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_secs(1);
/// How many results are fetched at once.
const FETCHES: usize = 4;

struct Followed {
    round: u32,
    run: Option<String>,
    cost: Option<f64>,
}

type Finishing = Pin<Box<dyn Future<Output = Option<(TaskId, Event)>>>>;

/// The runner of a fleet.
pub(crate) struct Fleet {
    inner: Rc<Queue>,
    followed: BTreeMap<TaskId, Followed>,
    entries: mpsc::UnboundedReceiver<(TaskId, Entry)>,
    events: VecDeque<(TaskId, Event)>,
    finishing: FuturesUnordered<Finishing>,
    background: Vec<JoinHandle<()>>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.background.iter().for_each(JoinHandle::abort);
    }
}

/// What can be said before anything is started.
pub(crate) fn check(on: &OnFleet) -> Result<(), UserError> {
    git::is_address(&on.repo).map_err(|why| {
        UserError::usage(format!("`--repo`: {why}"))
            .hint("workers use their own logins: `https://HOST/PATH`, `git@HOST:PATH`, or an absolute path")
    })?;
    match &on.label {
        Some(label) if !names::is_label(label) => {
            Err(UserError::usage(format!("`{}` is not a label", harmless(label)))
                .hint("a label has up to 40 letters, digits, `-` and `_`"))
        }
        _ => Ok(()),
    }
}

impl Fleet {
    /// Connects. `agent` is that of tasks that name none.
    pub(crate) async fn open(
        start: &Start,
        on: OnFleet,
        address: &str,
        agent: Option<String>,
        places: Arc<Places>,
    ) -> Result<Self, UserError> {
        let hub = Box::pin(connect::connect(address, &format!("ralph batch {}", start.batch))).await?;
        // What scales workers looks at it before there is one.
        let made = super::patiently(async || hub.workers(on.label.as_deref()).await).await;
        made.map_err(|error| UserError::usage(format!("cannot make the queue in NATS: {error}")))?;
        let writer = writer(&start.repository)?;
        let tips = writer.remote_tips(&on.repo).await;
        let tips =
            tips.map_err(|error| UserError::usage(format!("cannot use the repository `{}`: {error}", on.repo)))?;
        // The merge queue checks there, as beside worktrees of tasks.
        RealDisk.directory(&places.worktrees).map_err(|error| super::unusable(&places.worktrees, &error))?;
        let batch = start.batch.clone();
        let (of_journal, of_batch) = (Arc::clone(&places), batch.clone());
        let runs = move |task: &TaskId| {
            let branch = format!("ralph/{of_batch}/{}", task.in_branch());
            let store = of_journal.store(&branch);
            store.create().ok()?;
            Some(store.path().join("runs"))
        };
        let (follower, arrived) = Follower::new(hub.clone(), &batch, Box::new(runs));
        let (sender, entries) = mpsc::unbounded_channel();
        let watching = watch_entries(hub.state.clone(), batch.clone(), sender);
        let background = vec![tokio::spawn(follower.follow()), tokio::spawn(watching)];
        let inner = Queue {
            hub,
            batch,
            target: start.target.clone(),
            on,
            places,
            known: RefCell::new(tips.into_iter().collect()),
            agent,
            arrived,
            fetches: Semaphore::new(FETCHES),
        };
        Ok(Self {
            inner: Rc::new(inner),
            followed: BTreeMap::new(),
            entries,
            events: VecDeque::new(),
            finishing: FuturesUnordered::new(),
            background,
        })
    }

    /// Takes what a worker wrote.
    fn take(&mut self, task: TaskId, entry: Entry) {
        let Some(followed) = self.followed.get_mut(&task).filter(|followed| followed.round == entry.round) else {
            return;
        };
        if let Some(run) = entry.run.clone().filter(|run| followed.run.as_ref() != Some(run)) {
            self.inner.keep_place(&task, &run);
            followed.run = Some(run.clone());
            self.events.push_back((task.clone(), Event::Started { run }));
        }
        if entry.cost_usd.is_some() && followed.cost != entry.cost_usd {
            followed.cost = entry.cost_usd;
            self.events.extend(entry.cost_usd.map(|usd| (task.clone(), Event::Cost { usd })));
        }
        if let Phase::Done { ended } = entry.phase {
            self.followed.remove(&task);
            let inner = Rc::clone(&self.inner);
            self.finishing.push(Box::pin(async move {
                let ended = inner.finish(&task, ended, entry.journal).await;
                Some((task, Event::Ended(ended)))
            }));
        }
    }
}

/// Follows the entries of a batch. Each is sent at least once after each change of hands, and again when the watch is made again.
async fn watch_entries(state: kv::Store, batch: String, sender: mpsc::UnboundedSender<(TaskId, Entry)>) {
    let key = format!("state.{batch}.*");
    loop {
        if let Ok(mut watch) = state.watch_with_history(&key).await {
            while let Ok(Some(Ok(found))) = tokio::time::timeout(SILENCE, watch.next()).await {
                let task = found.key.rsplit('.').next().and_then(names::task_of);
                let entry = serde_json::from_slice(&found.value).ok();
                if let (Some(task), Some(entry)) = (task, entry)
                    && sender.send((task, entry)).is_err()
                {
                    return;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn writer(repository: &std::path::Path) -> Result<Writer, UserError> {
    let repository = Repository::at(repository).ok_or_else(|| UserError::failed("the repository is gone"))?;
    Writer::open(repository).map_err(|error| UserError::failed(format!("cannot use the repository: {error}")))
}

impl Runner for Fleet {
    async fn start(&mut self, work: Work) -> Result<(), UserError> {
        let round = self.inner.submit(&work).await?;
        let task = work.task.id.clone();
        self.followed.insert(task.clone(), Followed { round, run: work.run.clone(), cost: None });
        // It may have changed before it was followed.
        if let Ok(Some((entry, _))) = self.inner.entry(&task).await {
            self.take(task, entry);
        }
        Ok(())
    }

    async fn look(&mut self, work: &Work) -> Option<Ended> {
        let (entry, _) = self.inner.entry(&work.task.id).await.ok()??;
        let Phase::Done { ended } = entry.phase else { return None };
        if entry.attempt != work.attempt {
            return None;
        }
        match (&ended.result, &work.repair) {
            (WorkResult::Complete { tip }, Some((_, before))) if tip == before => None,
            (WorkResult::Complete { .. } | WorkResult::Failed { .. }, _) => {
                Some(self.inner.finish(&work.task.id, ended, entry.journal).await)
            }
            _ => None,
        }
    }

    async fn next(&mut self) -> (TaskId, Event) {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            tokio::select! {
                Some(finished) = self.finishing.next(), if !self.finishing.is_empty() => {
                    if let Some(event) = finished {
                        return event;
                    }
                }
                Some((task, entry)) = self.entries.recv() => self.take(task, entry),
                else => std::future::pending().await,
            }
        }
    }

    async fn order(&mut self, task: &TaskId, order: &Order) -> Result<(), UserError> {
        if !self.followed.contains_key(task) {
            return Err(UserError::usage(format!("task `{task}` is not running")));
        }
        self.inner.add_order(task, FleetOrder::Loop(order.clone())).await
    }

    fn cancel(&mut self, task: &TaskId) {
        let Some(round) = self.followed.get(task).map(|followed| followed.round) else { return };
        let (inner, task) = (Rc::clone(&self.inner), task.clone());
        self.finishing.push(Box::pin(async move {
            inner.cancel(&task, round).await;
            None
        }));
    }

    async fn merged(&self, task: &TaskId) {
        if let Err(error) = self.inner.remove_branch(task).await {
            out::warn(format!("{task}: cannot remove its branch from the repository: {error}"));
        }
        let _ = self.inner.hub.state.purge(names::orders_key(&self.inner.batch, task)).await;
        let _ = self.inner.hub.runs.delete(names::run_object(&self.inner.batch, task)).await;
    }
}
