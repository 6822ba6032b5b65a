//! `ralph batch --on`: the runner that puts tasks into the queue and follows what workers do with them. The branch of a finished task is
//! fetched, so that the merge queue of this machine finds it as if the task had been worked on here.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::kv;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::connect::{self, Hub};
use super::follow::{Arrived, Follower};
use super::lease::{self, Unwritten};
use super::upload;
use crate::app::batch::Places;
use crate::batch::fleet::entry::{Entry, FleetOrder, Orders, Phase};
use crate::batch::fleet::names;
use crate::batch::fleet::submitted::{OWN_VERSION, Repair, Submitted};
use crate::batch::runner::{Ended, Event, Runner, Work, WorkResult};
use crate::batch::state::{OnFleet, Start};
use crate::batch::task::TaskId;
use crate::control::Order;
use crate::error::UserError;
use crate::git::{self, GitError, PushError, Repository, Writer};
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::place::Place;
use crate::ui::{harmless, out};

/// A watch that is silent this long is made again.
const SILENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last part of a journal may take.
const JOURNAL: Duration = Duration::from_secs(60);
/// How long a worker may take to stop a task that is cancelled. After that its lease is taken away.
const CANCEL: Duration = Duration::from_secs(60);
/// How often something that another changes in the same moment is tried.
const TRIES: u32 = 10;
/// How many results are fetched at once.
const FETCHES: usize = 4;

struct Followed {
    round: u32,
    run: Option<String>,
    cost: Option<f64>,
}

/// What all parts of the runner know.
struct Inner {
    hub: Hub,
    batch: String,
    target: String,
    on: OnFleet,
    places: Arc<Places>,
    /// Commits that the repository is known to have.
    known: RefCell<BTreeSet<String>>,
    agent: Option<String>,
    arrived: watch::Receiver<Arrived>,
    fetches: Semaphore,
}

type Finishing = Pin<Box<dyn Future<Output = Option<(TaskId, Event)>>>>;

/// The runner of a fleet.
pub(crate) struct Fleet {
    inner: Rc<Inner>,
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

fn failed(what: &str, error: impl std::fmt::Display) -> UserError {
    UserError::failed(format!("{what}: {error}"))
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
        let hub = connect::connect(address, &format!("ralph batch {}", start.batch)).await?;
        // What scales workers looks at it before there is one.
        let made = hub.workers(on.label.as_deref()).await;
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
        let inner = Inner {
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
    Writer::open(repository).map_err(|error| failed("cannot use the repository", error))
}

impl Inner {
    fn branch(&self, task: &TaskId) -> String {
        format!("ralph/{}/{}", self.batch, task.in_branch())
    }

    /// Makes the directory of a run that works elsewhere known here, as that of a branch.
    fn keep_place(&self, task: &TaskId, run: &str) {
        let branch = self.branch(task);
        let store = self.places.store(&branch).of(&self.places.repository);
        let path = store.path().join("runs").join(run);
        let run = RunDirectory { id: run.to_owned(), path };
        let place = Place {
            repository: self.places.repository.clone(),
            worktree: Some(self.places.worktree(&branch)),
            branch,
            ..Place::default()
        };
        if store.create().is_err() || std::fs::create_dir_all(&run.path).is_err() || run.set_place(&place).is_err() {
            out::warn(format!("{task}: the directory of its run cannot be written"));
        }
    }

    /// Reads the entry of a task, with patience.
    async fn entry(&self, task: &TaskId) -> Result<Option<(Entry, u64)>, UserError> {
        let key = names::state_key(&self.batch, task);
        for _ in 0..TRIES {
            if let Ok(read) = lease::read(&self.hub.state, &key).await {
                return Ok(read);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(UserError::failed("NATS does not answer"))
    }

    /// Makes sure that workers can fetch what the task starts from, and gives the commit that carries work that did not merge.
    async fn provide(&self, work: &Work, entry: Option<&Entry>) -> Result<Option<Repair>, GitError> {
        let branch = &work.branch;
        let repository = Repository::at(&self.places.repository);
        let writer = Writer::open(repository.ok_or_else(|| GitError::Failed("the repository is gone".to_owned()))?)?;
        let repo = &self.on.repo;
        if let Some((prompt, tip)) = &work.repair {
            let target_commit = work.base.clone();
            let known = entry.and_then(|entry| entry.carrier.clone());
            let there = writer.remote_branch(repo, branch).await?;
            let carrier = match known.filter(|known| there.as_ref() == Some(known)) {
                Some(carrier) => carrier,
                None => {
                    let message = "Give work back that did not merge\n";
                    let carrier = writer.same_files(&[tip, &target_commit], message).await?;
                    writer.push_branch(repo, branch, there.as_deref(), Some(&carrier)).await.map_err(pushing)?;
                    carrier
                }
            };
            let (prompt, tip, target) = (prompt.clone(), tip.clone(), self.target.clone());
            return Ok(Some(Repair { prompt, tip, target, target_commit, carrier }));
        }
        let is_known = self.known.borrow().contains(&work.base);
        if !is_known && writer.remote_branch(repo, branch).await?.is_none() {
            writer.push_branch(repo, branch, None, Some(&work.base)).await.map_err(pushing)?;
        }
        Ok(None)
    }

    /// Puts a task into the queue, or finds it there.
    async fn submit(&self, work: &Work) -> Result<u32, UserError> {
        let task = &work.task.id;
        let key = names::state_key(&self.batch, task);
        for _ in 0..TRIES {
            let read = self.entry(task).await?;
            let under_way = read.as_ref().is_some_and(|(entry, _)| !entry.is_done());
            let known = read.as_ref().map(|(entry, _)| entry);
            let repair = self.provide(work, known).await;
            let repair = repair.map_err(|error| failed("cannot push what the task starts from", error))?;
            let mut entry = match read.clone() {
                Some((entry, _)) if under_way => entry,
                Some((entry, _)) => entry.again(work.attempt),
                None => Entry::new(work.attempt),
            };
            entry.carrier = repair.as_ref().map(|repair| repair.carrier.clone());
            if !under_way {
                if read.is_some() {
                    self.withdraw(task).await;
                }
                let revision = read.map_or(0, |(_, revision)| revision);
                match lease::write(&self.hub.state, &key, &entry, revision).await {
                    Ok(_) => {}
                    Err(Unwritten::Lost) => continue,
                    Err(Unwritten::Unreachable) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                }
            }
            // A worker has it already: another message would only be in the way.
            if !matches!(entry.phase, Phase::Running { .. }) {
                self.publish(work, &entry, repair).await?;
            }
            return Ok(entry.round);
        }
        Err(UserError::failed("NATS does not answer"))
    }

    /// Takes a message out of the queue: one of an earlier round whose worker could not acknowledge it, or a cancelled one. By its number:
    /// a purge makes servers before 2.10 skip other messages.
    async fn withdraw(&self, task: &TaskId) {
        let subject = names::task_subject(&self.batch, task, self.on.label.as_deref());
        if let Some(Ok(message)) = super::soon(self.hub.tasks.get_last_raw_message_by_subject(&subject)).await {
            let _ = super::soon(self.hub.tasks.delete_message(message.sequence)).await;
        }
    }

    async fn publish(&self, work: &Work, entry: &Entry, repair: Option<Repair>) -> Result<(), UserError> {
        let mut task = (*work.task).clone();
        task.agent = task.agent.or_else(|| self.agent.clone());
        let subject = names::task_subject(&self.batch, &task.id, self.on.label.as_deref());
        let id = format!("{}.{}.{}", self.batch, names::token(&task.id), entry.round);
        let submitted = Submitted {
            batch: self.batch.clone(),
            task,
            attempt: entry.attempt,
            round: entry.round,
            repo: self.on.repo.clone(),
            base: work.base.clone(),
            below: self.places.below.to_string_lossy().into_owned(),
            repair,
            max_cost: work.max_cost,
        };
        let payload = serde_json::to_vec(&submitted).map_err(|error| failed("cannot write the task", error))?;
        let mut why = String::new();
        for _ in 0..TRIES {
            let mut headers = HeaderMap::new();
            headers.insert(names::VERSION, OWN_VERSION);
            headers.insert("Nats-Msg-Id", id.as_str());
            let sent = self.hub.context.publish_with_headers(subject.clone(), headers, payload.clone().into()).await;
            let stored = match sent {
                Ok(sent) => sent.await.map(drop),
                Err(error) => Err(error),
            };
            match stored {
                Ok(()) => return Ok(()),
                // It is in the queue already: there is room for one.
                Err(error) if error.to_string().contains("per subject exceeded") => return Ok(()),
                Err(error) => why = error.to_string(),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(failed("cannot put the task into the queue", why))
    }

    /// Fetches what a task left: its branch, the end of its journal, the files of its run.
    async fn finish(&self, task: &TaskId, mut ended: Ended, journal: u64) -> Ended {
        let Ok(_permit) = self.fetches.acquire().await else { return ended };
        if let WorkResult::Complete { tip } = &ended.result
            && let Err(error) = self.fetch(task, tip).await
        {
            ended.result = WorkResult::Lost { why: format!("cannot fetch its branch: {error}") };
        }
        let mut arrived = self.arrived.clone();
        let whole = arrived.wait_for(|arrived| arrived.get(task).is_some_and(|length| *length >= journal));
        if journal > 0 && tokio::time::timeout(JOURNAL, whole).await.is_err() {
            out::warn(format!("{task}: its journal has not arrived as a whole"));
        }
        if let Some(id) = &ended.run {
            self.keep_place(task, id);
            let path = self.places.store(&self.branch(task)).path().join("runs").join(id);
            let run = RunDirectory { id: id.clone(), path };
            if let Err(error) = upload::get(&self.hub, &self.batch, task, &run).await {
                out::warn(format!("{task}: cannot fetch the files of its run: {error}"));
            }
        }
        ended
    }

    async fn fetch(&self, task: &TaskId, tip: &str) -> Result<(), GitError> {
        let branch = self.branch(task);
        let repository = Repository::at(&self.places.repository);
        let writer = Writer::open(repository.ok_or_else(|| GitError::Failed("the repository is gone".to_owned()))?)?;
        if !writer.has_commit(tip).await {
            writer.fetch_branch(&self.on.repo, &branch).await?;
        }
        // What is merged is what the holder of the lease recorded, whatever the branch is.
        if !writer.has_commit(tip).await {
            return Err(GitError::Failed(format!("the branch `{branch}` does not have the commit {tip}")));
        }
        let old = writer.repository.branch(&branch);
        if old.as_deref() != Some(tip) {
            writer.update_ref(&format!("refs/heads/{branch}"), Some(tip), old.as_deref(), "fetch a task").await?;
        }
        Ok(())
    }

    /// Adds an order for the worker that has the task.
    async fn add_order(&self, task: &TaskId, order: FleetOrder) -> Result<(), UserError> {
        let key = names::orders_key(&self.batch, task);
        for _ in 0..TRIES {
            if let Ok(found) = self.hub.state.entry(&key).await {
                let (revision, mut orders) = match found {
                    Some(entry) => (entry.revision, serde_json::from_slice::<Orders>(&entry.value).unwrap_or_default()),
                    None => (0, Orders::default()),
                };
                orders.orders.push(order.clone());
                let bytes = serde_json::to_vec(&orders).map_err(|error| failed("cannot write the order", error))?;
                if self.hub.state.update(&key, bytes.into(), revision).await.is_ok() {
                    return Ok(());
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Err(UserError::failed("NATS does not answer"))
    }

    /// Stops a task: one that waits at once, one that a worker has by an order. A worker that does not answer loses its lease.
    async fn cancel(&self, task: &TaskId, round: u32) {
        let key = names::state_key(&self.batch, task);
        let began = Instant::now();
        let mut asked = false;
        loop {
            let Ok(Some((entry, revision))) = lease::read(&self.hub.state, &key).await else {
                if began.elapsed() > CANCEL {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            if entry.round != round || entry.is_done() {
                return;
            }
            if matches!(entry.phase, Phase::Queued) || began.elapsed() > CANCEL {
                let ended = Ended { run: entry.run.clone(), cost_usd: entry.cost_usd, result: WorkResult::Stopped };
                let stopped = Entry { phase: Phase::Done { ended }, ..entry };
                if lease::write(&self.hub.state, &key, &stopped, revision).await.is_ok() {
                    self.withdraw(task).await;
                    return;
                }
                continue;
            }
            if !asked {
                asked = self.add_order(task, FleetOrder::Cancel(round)).await.is_ok();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Removes the branch of a merged task.
    async fn remove_branch(&self, task: &TaskId) -> Result<(), GitError> {
        let branch = self.branch(task);
        let repository = Repository::at(&self.places.repository);
        let writer = Writer::open(repository.ok_or_else(|| GitError::Failed("the repository is gone".to_owned()))?)?;
        for _ in 0..TRIES {
            let Some(there) = writer.remote_branch(&self.on.repo, &branch).await? else { return Ok(()) };
            match writer.push_branch(&self.on.repo, &branch, Some(&there), None).await {
                Ok(()) => return Ok(()),
                Err(PushError::Moved) => {}
                Err(PushError::Git(error)) => return Err(error),
            }
        }
        Ok(())
    }
}

fn pushing(error: PushError) -> GitError {
    match error {
        PushError::Moved => GitError::Failed(PushError::Moved.to_string()),
        PushError::Git(error) => error,
    }
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
