//! What a submitter does in NATS and git for one task: it puts the task into the queue once, provides what it starts from, stops it, and fetches
//! what came of it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::connect::Hub;
use super::follow::Arrived;
use super::lease::{self, Unwritten};
use super::upload;
use crate::app::batch::Places;
use crate::batch::fleet::entry::{Entry, FleetOrder, Orders, Phase};
use crate::batch::fleet::names;
use crate::batch::fleet::submitted::{OWN_VERSION, Repair, Submitted};
use crate::batch::runner::{Ended, Work, WorkResult};
use crate::batch::state::OnFleet;
use crate::batch::task::TaskId;
use crate::error::UserError;
use crate::git::{GitError, PushError, Repository, Writer};
use crate::journal::RunDirectory;
use crate::journal::place::Place;
use crate::ui::out;

const PAUSE: Duration = Duration::from_secs(1);
/// How long the last part of a journal may take.
const JOURNAL: Duration = Duration::from_secs(60);
/// How long a worker may take to stop a task that is cancelled. After that its lease is taken away.
const CANCEL: Duration = Duration::from_secs(60);
/// How often something that another changes in the same moment is tried.
const TRIES: u32 = 10;

/// What all parts of the runner know.
pub(super) struct Queue {
    pub(super) hub: Hub,
    pub(super) batch: String,
    pub(super) target: String,
    pub(super) on: OnFleet,
    pub(super) places: Arc<Places>,
    /// Commits that the repository is known to have.
    pub(super) known: RefCell<BTreeSet<String>>,
    pub(super) agent: Option<String>,
    pub(super) arrived: watch::Receiver<Arrived>,
    pub(super) fetches: Semaphore,
}

fn failed(what: &str, error: impl std::fmt::Display) -> UserError {
    UserError::failed(format!("{what}: {error}"))
}

impl Queue {
    pub(super) fn branch(&self, task: &TaskId) -> String {
        format!("ralph/{}/{}", self.batch, task.in_branch())
    }

    /// Makes the directory of a run that works elsewhere known here, as that of a branch.
    pub(super) fn keep_place(&self, task: &TaskId, run: &str) {
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
    pub(super) async fn entry(&self, task: &TaskId) -> Result<Option<(Entry, u64)>, UserError> {
        let key = names::state_key(&self.batch, task);
        for _ in 0..TRIES {
            if let Ok(read) = lease::read(&self.hub.state, &key).await {
                return Ok(read);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(UserError::failed("NATS does not answer"))
    }

    fn repair(&self, work: &Work, carrier: String) -> Option<Repair> {
        let (prompt, tip) = work.repair.clone()?;
        Some(Repair { prompt, tip, target: self.target.clone(), target_commit: work.base.clone(), carrier })
    }

    /// Makes sure that workers can fetch what the task starts from, and gives the commit that carries work that did not merge.
    pub(super) async fn provide(&self, work: &Work, entry: Option<&Entry>) -> Result<Option<Repair>, GitError> {
        let (branch, repo) = (&work.branch, &self.on.repo);
        // A worker may have pushed since: what is there stays.
        let under_way = entry.filter(|entry| !entry.is_done());
        if under_way.is_some() {
            return Ok(under_way.and_then(|entry| self.repair(work, entry.carrier.clone()?)));
        }
        let repository = Repository::at(&self.places.repository);
        let writer = Writer::open(repository.ok_or_else(|| GitError::Failed("the repository is gone".to_owned()))?)?;
        if let Some((_, tip)) = &work.repair {
            let there = writer.remote_branch(repo, branch).await?;
            let carrier = writer.same_files(&[tip, &work.base], "Give work back that did not merge\n").await?;
            writer.push_branch(repo, branch, there.as_deref(), Some(&carrier)).await.map_err(pushing)?;
            return Ok(self.repair(work, carrier));
        }
        let is_known = self.known.borrow().contains(&work.base);
        if !is_known && writer.remote_branch(repo, branch).await?.is_none() {
            writer.push_branch(repo, branch, None, Some(&work.base)).await.map_err(pushing)?;
        }
        Ok(None)
    }

    /// Puts a task into the queue, or finds it there.
    pub(super) async fn submit(&self, work: &Work) -> Result<u32, UserError> {
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
            if !under_way {
                entry.carrier = repair.as_ref().map(|repair| repair.carrier.clone());
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
    pub(super) async fn withdraw(&self, task: &TaskId) {
        let subject = names::task_subject(&self.batch, task, self.on.label.as_deref());
        if let Some(Ok(message)) = super::soon(self.hub.tasks.get_last_raw_message_by_subject(&subject)).await {
            let _ = super::soon(self.hub.tasks.delete_message(message.sequence)).await;
        }
    }

    pub(super) async fn publish(&self, work: &Work, entry: &Entry, repair: Option<Repair>) -> Result<(), UserError> {
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
    pub(super) async fn finish(&self, task: &TaskId, mut ended: Ended, journal: u64) -> Ended {
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
            if let Err(error) = super::patiently(async || upload::get(&self.hub, &self.batch, task, &run).await).await {
                out::warn(format!("{task}: cannot fetch the files of its run: {error}"));
            }
        }
        ended
    }

    pub(super) async fn fetch(&self, task: &TaskId, tip: &str) -> Result<(), GitError> {
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
    pub(super) async fn add_order(&self, task: &TaskId, order: FleetOrder) -> Result<(), UserError> {
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
    pub(super) async fn cancel(&self, task: &TaskId, round: u32) {
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
    pub(super) async fn remove_branch(&self, task: &TaskId) -> Result<(), GitError> {
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
