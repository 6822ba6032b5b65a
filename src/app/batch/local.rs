//! Works on tasks on this machine: each is a `ralph run` of this program in its own worktree, as a child process with its own journal.

use std::future::{Future, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::batch::runner::{Ended, Event, Runner, Work, WorkResult};
use crate::batch::task::TaskId;
use crate::control::{self, Order};
use crate::duration;
use crate::error::{UserError, io_reason};
use crate::git::{Repository, Writer};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::{Lock, Outcome, RunDirectory, State, Store, Summary};
use crate::process::{self, Clocks, Environment, Exit, Invocation, Output, Place, StopReason, Stream};
use crate::run::decide::wait_in;

/// How much of what a child says last is kept.
const KEPT: usize = 4096;
/// How often is looked for the run of a new child, and for its cost.
const LOOK_SOON: Duration = Duration::from_millis(150);
const LOOK_LATER: Duration = Duration::from_secs(5);

/// Where the runs of a batch work.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub state: State,
    /// The directory with the worktrees.
    pub worktrees: PathBuf,
    /// The top of the checkout, and the working directory below it.
    pub repository: PathBuf,
    pub below: PathBuf,
}

impl Places {
    /// As `placing.rs` names it.
    pub(crate) fn worktree(&self, branch: &str) -> PathBuf {
        self.worktrees.join(branch.strip_prefix("ralph/").unwrap_or(branch).replace('/', "-"))
    }

    pub(crate) fn store(&self, branch: &str) -> Store {
        // Not by its canonical name, which it has only while it is there: its parent always is.
        let directory = self.worktrees.canonicalize().unwrap_or_else(|_| self.worktrees.clone());
        let worktree = directory.join(self.worktree(branch).file_name().unwrap_or_default());
        self.state.store(&worktree.join(&self.below))
    }

    /// The newest run on a branch.
    pub(crate) fn run(&self, branch: &str) -> Option<RunDirectory> {
        let runs = self.store(branch).runs().ok()?;
        runs.into_iter().rev().find(|run| run.place().is_some_and(|place| place.branch == branch))
    }
}

struct Child {
    task: TaskId,
    branch: String,
    driver: Pin<Box<dyn Future<Output = Ended>>>,
    cancel: mpsc::UnboundedSender<()>,
}

/// The runner of this machine.
pub(crate) struct Local {
    places: Arc<Places>,
    /// Where prompts of tasks are kept.
    directory: PathBuf,
    run_args: Vec<String>,
    children: Vec<Child>,
    sender: mpsc::UnboundedSender<(TaskId, Event)>,
    events: mpsc::UnboundedReceiver<(TaskId, Event)>,
}

impl Local {
    pub(crate) fn new(places: Arc<Places>, directory: &Path, run_args: Vec<String>) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Self { places, directory: directory.to_owned(), run_args, children: Vec::new(), sender, events }
    }

    fn keep(&self, name: &str, text: &str) -> Result<PathBuf, UserError> {
        let path = self.directory.join("prompts").join(name);
        let kept = RealDisk.replace(&path, text.as_bytes());
        kept.map_err(|error| UserError::failed(format!("cannot write `{}`: {}", path.display(), io_reason(&error))))?;
        Ok(path)
    }

    /// The command line of a child.
    async fn arguments(&self, work: &Work) -> Result<Vec<std::ffi::OsString>, UserError> {
        let id = &work.task.id;
        let run = self.places.run(&work.branch).filter(|run| Summary::of(run).is_ok_and(|it| !it.agent.is_empty()));
        if let Some(run) = run {
            let mut args: Vec<std::ffi::OsString> = vec!["resume".into(), run.id.into(), "--force".into()];
            if let Some((prompt, _)) = &work.repair {
                let path = self.keep(&format!("{id}.{}.md", work.attempt), prompt)?;
                args.extend(["--again".into(), path.into()]);
            } else if work.attempt > 1 {
                args.push("--again".into());
            }
            return Ok(args);
        }
        self.clear(work).await?;
        let path = self.keep(&format!("{id}.md"), &work.task.prompt)?;
        let mut args: Vec<std::ffi::OsString> = vec!["run".into(), "-P".into(), path.into()];
        args.push(format!("--worktree={}", work.branch).into());
        args.push(format!("--task-base={}", work.base).into());
        args.extend(work.task.verify.iter().map(|check| format!("--task-verify={check}").into()));
        args.extend(work.task.agent.iter().map(|agent| format!("--agent={agent}").into()));
        args.extend(work.task.model.iter().map(|model| format!("--model={model}").into()));
        let limits = &work.task.limits;
        args.extend(limits.max_iterations.map(|most| format!("--max-iterations={most}").into()));
        args.extend(limits.max_time.map(|most| format!("--max-time={}", duration::shown(most)).into()));
        let cost = [limits.max_cost, work.max_cost].into_iter().flatten().reduce(f64::min);
        args.extend(cost.map(|usd| format!("--max-cost={usd}").into()));
        let own = |arg: &&String| work.task.agent.is_none() || !arg.starts_with("--agent");
        args.extend(self.run_args.iter().filter(own).map(Into::into));
        Ok(args)
    }

    /// Removes what a child left that was killed before its run began: nothing was done there.
    async fn clear(&self, work: &Work) -> Result<(), UserError> {
        let cannot = |error: crate::git::GitError| UserError::failed(format!("cannot clear a worktree: {error}"));
        let repository =
            Repository::at(&self.places.repository).ok_or_else(|| UserError::failed("the repository is gone"))?;
        let Some(tip) = repository.branch(&work.branch) else {
            return match self.places.worktree(&work.branch) {
                path if path.exists() => {
                    Writer::open(repository).and_then(|it| it.remove_worktree(&path)).map_err(cannot)
                }
                _ => Ok(()),
            };
        };
        let writer = Writer::open(repository).map_err(cannot)?;
        writer.remove_worktree(&self.places.worktree(&work.branch)).map_err(cannot)?;
        writer.update_ref(&format!("refs/heads/{}", work.branch), None, Some(&tip), "").await.map_err(cannot)
    }
}

/// What a run came to; `None` for one that was cut off.
fn result(places: &Places, branch: &str) -> Option<Ended> {
    let run = places.run(branch)?;
    let summary = Summary::of(&run).ok()?;
    let reason = summary.end.as_ref().map(|end| end.reason.clone()).unwrap_or_default();
    let result = match summary.outcome()? {
        Outcome::Complete => {
            let tip = Repository::at(&places.repository).and_then(|repository| repository.branch(branch));
            tip.map_or_else(
                || WorkResult::Failed { why: "its branch is gone".to_owned() },
                |tip| WorkResult::Complete { tip },
            )
        }
        Outcome::RateLimited => {
            let at = summary.newest.unwrap_or_else(Timestamp::now);
            let until = wait_in(&reason).and_then(|wait| at.checked_add(wait).ok());
            WorkResult::RateLimited { agent: summary.agent.clone(), until }
        }
        Outcome::Interrupted => WorkResult::Stopped,
        _ => WorkResult::Failed { why: reason },
    };
    Some(Ended { run: Some(run.id), cost_usd: summary.cost().map(|cost| cost.usd), result })
}

/// Waits for a child and says what came of it.
async fn drive(
    mut process: process::Process,
    places: Arc<Places>,
    work: Work,
    events: mpsc::UnboundedSender<(TaskId, Event)>,
    mut cancelled: mpsc::UnboundedReceiver<()>,
) -> Ended {
    let mut said: Vec<u8> = Vec::new();
    let mut known = work.run.is_some();
    let mut was_cancelled = false;
    let exit = loop {
        let look = if known { LOOK_LATER } else { LOOK_SOON };
        tokio::select! {
            biased;
            output = process.next() => match output {
                Output::Bytes { from: Stream::Stderr, bytes } => {
                    said.extend_from_slice(bytes);
                    said.drain(..said.len().saturating_sub(KEPT));
                }
                Output::Bytes { .. } => {}
                Output::Ended(ended) => break ended.exit,
            },
            Some(()) = cancelled.recv() => {
                if was_cancelled { process.kill() } else { process.stop(StopReason::Asked) }
                was_cancelled = true;
            }
            () = tokio::time::sleep(look) => {
                let Some(run) = places.run(&work.branch) else { continue };
                if !known {
                    known = true;
                    let _ = events.send((work.task.id.clone(), Event::Started { run: run.id }));
                } else if work.max_cost.is_some()
                    && let Some(cost) = Summary::of(&run).ok().and_then(|summary| summary.cost())
                {
                    let _ = events.send((work.task.id.clone(), Event::Cost { usd: cost.usd }));
                }
            }
        }
    };
    if let Some(ended) = result(&places, &work.branch) {
        return ended;
    }
    let run = places.run(&work.branch).map(|run| run.id);
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find(|line| line.starts_with("error:")).or_else(|| said.lines().last());
    let line = line.unwrap_or_default().trim_start_matches("error: ").to_owned();
    let result = match exit {
        _ if was_cancelled => WorkResult::Stopped,
        Exit::Signal(number) => {
            WorkResult::Lost { why: format!("its process was ended by {}", process::signal_name(number)) }
        }
        Exit::Code(code) => WorkResult::Failed { why: format!("its run ended with exit code {code}: {line}") },
    };
    Ended { run, cost_usd: None, result }
}

impl Runner for Local {
    async fn start(&mut self, work: Work) -> Result<(), UserError> {
        let invocation = Invocation {
            args: self.arguments(&work).await?,
            // Credentials of a fleet are the worker's, not the agent's.
            env: Environment {
                remove: ["RALPH_RUN_ID", "NATS_*"].map(str::to_owned).to_vec(),
                ..Environment::default()
            },
            place: Place::Outside,
            ..Invocation::new(process::own_program(), self.places.repository.join(&self.places.below))
        };
        let child = process::start(invocation, Clocks::default())
            .map_err(|error| UserError::failed(format!("cannot start the run: {error}")))?;
        let (cancel, cancelled) = mpsc::unbounded_channel();
        let (task, branch) = (work.task.id.clone(), work.branch.clone());
        let driver = Box::pin(drive(child, Arc::clone(&self.places), work, self.sender.clone(), cancelled));
        self.children.push(Child { task, branch, driver, cancel });
        Ok(())
    }

    async fn look(&mut self, work: &Work) -> Option<Ended> {
        let ended = result(&self.places, &work.branch)?;
        match (&ended.result, &work.repair) {
            (WorkResult::Complete { tip }, Some((_, before))) if tip == before => None,
            (WorkResult::Complete { .. }, _) => Some(ended),
            (WorkResult::Failed { .. }, None) if work.attempt == 1 => Some(ended),
            _ => None,
        }
    }

    async fn next(&mut self) -> (TaskId, Event) {
        poll_fn(|context| {
            for at in 0..self.children.len() {
                if let Poll::Ready(ended) = self.children[at].driver.as_mut().poll(context) {
                    let child = self.children.swap_remove(at);
                    return Poll::Ready((child.task, Event::Ended(ended)));
                }
            }
            match self.events.poll_recv(context) {
                Poll::Ready(Some(event)) => Poll::Ready(event),
                _ => Poll::Pending,
            }
        })
        .await
    }

    async fn order(&mut self, task: &TaskId, order: &Order) -> Result<(), UserError> {
        let child = self.children.iter().find(|child| child.task == *task);
        let store = child.map(|child| self.places.store(&child.branch));
        let socket = store.and_then(|store| Lock::holder(&store)).and_then(|holder| holder.control);
        let socket = socket.ok_or_else(|| UserError::usage(format!("task `{task}` is not running")))?;
        control::send(&socket, order).map_err(|error| {
            UserError::failed(format!("task `{task}` did not accept the order: {}", io_reason(&error)))
        })
    }

    fn cancel(&mut self, task: &TaskId) {
        for child in self.children.iter().filter(|child| child.task == *task) {
            let _ = child.cancel.send(());
        }
    }

    // Everything is on this machine, and the merge queue cleans up.
    async fn merged(&self, _: &TaskId) {}
}
