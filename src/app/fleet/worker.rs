//! `ralph worker`: takes tasks from the queue, as many at once as it has slots, and works on them under this user's policy.

use std::cell::Cell;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use tokio::sync::Mutex;

use super::cache::{self, Cache};
use super::connect::{self, Hub, MOST_DELIVERIES};
use super::lease::{self, Lease, Unwritten};
use super::work::{Assignment, Left};
use crate::batch::fleet::entry::{Claim, Entry, Phase, claim};
use crate::batch::fleet::names;
use crate::batch::fleet::policy::Policy;
use crate::batch::fleet::submitted::{OWN_VERSION, Submitted};
use crate::batch::runner::{Ended, WorkResult};
use crate::batch::task::TaskLimits;
use crate::cli::worker::Worker as Args;
use crate::config::{self, Dollars};
use crate::error::{UserError, io_reason};
use crate::git;
use crate::journal::State;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::process::{self, runtime};
use crate::run::{Came, Interrupts};
use crate::sandbox::Mode;
use crate::ui::{harmless, out};

/// How long a request for a task waits on the server.
const WAITS: Duration = Duration::from_secs(5);
/// How much later than that its end may be heard of. A server that is killed says nothing.
const LATE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
/// How long a task that another worker has is left alone.
const BUSY: Duration = Duration::from_secs(30);
/// How often a server that does not answer is asked for a lease before the task is given back.
const TRIES: u32 = 10;

struct Worker {
    hub: Hub,
    name: String,
    policy: Policy,
    sandbox: Mode,
    state: State,
    directory: PathBuf,
    ending: Cell<bool>,
    /// One fetch at a time, so that a first one is not made four times.
    fetching: Mutex<()>,
}

/// What this user allows, from the user's own configuration and the command line. A repository's `ralph.yml` has no part in it.
fn policy(args: &Args) -> Result<(Policy, Mode), UserError> {
    let own = config::own_file()?.layer;
    let listed = |own: Option<Vec<String>>, given: &[String]| {
        let mut all = given.to_vec();
        all.extend(own.unwrap_or_default());
        all
    };
    let policy = Policy {
        repos: listed(own.worker_repos.map(|it| it.value), &args.allow_repo),
        agents: listed(own.worker_agents.map(|it| it.value), &args.allow_agent),
        limits: TaskLimits {
            max_iterations: own.worker_max_iterations.and_then(|it| it.value),
            max_time: own.worker_max_time.and_then(|it| it.value),
            max_cost: own.worker_max_cost.and_then(|it| it.value).map(|Dollars(usd)| usd),
        },
    };
    let hint = "give `--allow-repo URL` and `--allow-agent NAME`, or set `worker.repos` and `worker.agents` in \
                `~/.config/ralph/ralph.yml`";
    if policy.repos.is_empty() {
        return Err(UserError::usage("this worker allows no repository").hint(hint));
    }
    if policy.agents.is_empty() {
        return Err(UserError::usage("this worker allows no agent").hint(hint));
    }
    if let Some(label) = args.labels.iter().find(|label| !names::is_label(label)) {
        return Err(UserError::usage(format!("`{}` is not a label", harmless(label)))
            .hint("a label has up to 40 letters, digits, `-` and `_`"));
    }
    Ok((policy, own.worker_sandbox.map_or(Mode::Workspace, |it| it.value)))
}

/// Runs until an order or a Unix signal ends it.
pub(crate) fn run(args: &Args) -> Result<u8, UserError> {
    process::protect(process::own_program());
    let (policy, sandbox) = policy(args)?;
    let state = State::of_user().ok_or_else(|| UserError::usage("HOME is not set").hint("set RALPH_STATE_DIR"))?;
    let directory = state.path().join("fleet");
    RealDisk.directory(&directory).map_err(|error| super::unusable(&directory, &error))?;
    let _lock = lock(&directory)?;
    // Of a worker that was killed.
    let _ = std::fs::remove_dir_all(directory.join("tasks"));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = format!("{host}-{}", std::process::id());
    runtime()?.block_on(async {
        let mut interrupts =
            Interrupts::listen().map_err(|error| UserError::failed(format!("cannot start: {}", io_reason(&error))))?;
        let hub = Box::pin(connect::connect(&args.on, &format!("ralph worker {name}"))).await?;
        let lacking = |error: async_nats::Error| UserError::usage(format!("cannot take tasks from NATS: {error}"));
        let mut consumers = vec![super::patiently(async || hub.workers(None).await).await.map_err(lacking)?];
        for label in &args.labels {
            consumers.push(super::patiently(async || hub.workers(Some(label)).await).await.map_err(lacking)?);
        }
        cache::clear(&directory.join("repositories"), &state).await;
        let worker = Rc::new(Worker {
            hub,
            name,
            policy,
            sandbox,
            state,
            directory,
            ending: Cell::new(false),
            fetching: Mutex::new(()),
        });
        out::tell(format_args!("worker {}: waiting for tasks ({} at once)", worker.name, args.slots).to_string());
        let slots = (0..args.slots).map(|slot| worker.slot(slot, &consumers));
        let all = futures_util::future::join_all(slots);
        tokio::pin!(all);
        let mut code = 0;
        loop {
            tokio::select! {
                _ = &mut all => break,
                came = interrupts.next() => match came {
                    Came::Interrupt(interrupt, _) if worker.ending.replace(true) => process::die_by(interrupt.number()),
                    Came::Interrupt(interrupt, _) => {
                        code = interrupt.number();
                        out::tell("stopping: tasks are given back; again: at once");
                    }
                    _ => {}
                },
            }
        }
        let _ = super::soon(worker.hub.client.flush()).await;
        if code != 0 {
            process::die_by(code);
        }
        Ok(0)
    })
}

/// One worker for a state directory: it clears what a killed one has left.
fn lock(directory: &std::path::Path) -> Result<File, UserError> {
    let file = File::open(directory).map_err(|error| super::unusable(directory, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(UserError::usage("another worker uses this state directory")
            .hint("give that one more `--slots`, or set RALPH_STATE_DIR to another directory")),
        Err(TryLockError::Error(error)) => Err(super::unusable(directory, &error)),
    }
}

impl Worker {
    async fn slot(&self, slot: u16, consumers: &[Consumer<pull::Config>]) {
        let mut turn = usize::from(slot);
        while !self.ending.get() {
            turn = (turn + 1) % consumers.len();
            // Several queues take turns.
            let waits = if consumers.len() == 1 { WAITS } else { Duration::from_secs(1) };
            match next(&consumers[turn], waits).await {
                Ok(Some(message)) => self.handle(slot, &message).await,
                Ok(None) => {}
                Err(()) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn handle(&self, slot: u16, message: &Message) {
        if self.ending.get() {
            let _ = super::soon(message.ack_with(AckKind::Nak(None))).await;
            return;
        }
        let version = message.headers.as_ref().and_then(|headers| headers.get(names::VERSION));
        let read = Submitted::read(&message.subject, version.map(async_nats::HeaderValue::as_str), &message.payload);
        let read = read.and_then(|task| match git::is_address(&task.repo) {
            Ok(()) => Ok(task),
            Err(why) => Err(format!("its repository: {why}")),
        });
        let allowed = read.and_then(|submitted| Ok((self.policy.allow(&submitted)?, submitted)));
        let (task, submitted) = match allowed {
            Ok(allowed) => allowed,
            Err(why) => return self.refuse(message, &why).await,
        };
        let delivered = message.info().map_or(1, |info| info.delivered);
        let left = match self.lease_patiently(&submitted, message).await {
            // Only now: while another worker has it, it is not lost.
            Ok(Taken::Lease(lease)) if delivered > MOST_DELIVERIES + i64::from(lease.entry.given_back) => {
                let why = format!("{MOST_DELIVERIES} workers have not finished it");
                return self.refuse(message, &why).await;
            }
            Ok(Taken::Lease(lease)) => {
                let again = if lease.entry.leases > 1 { " (continued)" } else { "" };
                out::tell(format!("{}: started{again}", task.id));
                let directory = self.directory.join("tasks").join(slot.to_string());
                let assigned = Box::pin(self.assign(&submitted, task, message, directory, lease)).await;
                assigned.unwrap_or(Left::Lost)
            }
            Ok(Taken::Over) => Left::Recorded,
            Ok(Taken::Busy) => {
                let _ = super::soon(message.ack_with(AckKind::Nak(Some(BUSY)))).await;
                return;
            }
            Err(_) => {
                let _ = super::soon(message.ack_with(AckKind::Nak(Some(PAUSE)))).await;
                return;
            }
        };
        let id = &submitted.task.id;
        match left {
            Left::Recorded => {
                let _ = super::soon(message.double_ack()).await;
                out::tell(format!("{id}: done"));
            }
            Left::Released => {
                let _ = super::soon(message.ack_with(AckKind::Nak(None))).await;
                out::tell(format!("{id}: given back"));
            }
            // The message is another worker's now.
            Left::Lost => out::tell(format!("{id}: left to another worker")),
        }
    }

    async fn assign(
        &self,
        submitted: &Submitted,
        task: crate::batch::task::Task,
        message: &Message,
        directory: PathBuf,
        lease: Lease,
    ) -> Option<Left> {
        RealDisk.directory(&directory.join("prompts")).ok()?;
        let repositories = self.directory.join("repositories");
        RealDisk.directory(&repositories).ok()?;
        let cache = Cache::open(&repositories, &submitted.repo).ok()?;
        let assignment = Assignment {
            hub: &self.hub,
            cache: &cache,
            state: &self.state,
            directory,
            submitted,
            task,
            sandbox: self.sandbox.name(),
            message,
            fetching: &self.fetching,
            ending: &self.ending,
        };
        Some(assignment.run(lease).await)
    }

    /// The same while a cluster chooses a leader. The message is kept meanwhile: giving it back would count as a delivery.
    async fn lease_patiently(&self, submitted: &Submitted, message: &Message) -> Result<Taken, Unwritten> {
        for _ in 1..TRIES {
            let mut taking = Box::pin(self.lease(submitted));
            let taken = loop {
                tokio::select! {
                    taken = &mut taking => break taken,
                    () = tokio::time::sleep(lease::RENEWED) => {
                        let _ = super::soon(message.ack_with(AckKind::Progress)).await;
                    }
                }
            };
            if taken.is_ok() || self.ending.get() {
                return taken;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Box::pin(self.lease(submitted)).await
    }

    /// Takes the lease, if it can be had.
    async fn lease(&self, submitted: &Submitted) -> Result<Taken, Unwritten> {
        let state = &self.hub.state;
        let key = names::state_key(&submitted.batch, &submitted.task.id);
        let read = lease::read(state, &key).await?;
        let (entry, revision) = match (claim(read.as_ref().map(|(entry, _)| entry), submitted.round), read) {
            (Claim::Take, Some(read)) => read,
            (Claim::Wait, Some((_, revision))) => match lease::wait_for_end(state, &key, revision).await? {
                Some(free) => free,
                None => return Ok(Taken::Busy),
            },
            // A replica may be behind the submitter.
            (_, None) => return Ok(Taken::Busy),
            (_, Some((entry, _))) if entry.round < submitted.round => return Ok(Taken::Busy),
            (_, Some(_)) => return Ok(Taken::Over),
        };
        match Lease::take(state.clone(), key, entry, revision, &self.name).await {
            Ok(lease) => Ok(Taken::Lease(lease)),
            Err(Unwritten::Lost) => Ok(Taken::Busy),
            Err(error) => Err(error),
        }
    }

    /// Keeps a task that is not worked on, with the reason, and takes it out of the queue.
    async fn refuse(&self, message: &Message, why: &str) {
        out::warn(format!("refused {}: {}", harmless(&message.subject), harmless(why)));
        let mut headers = HeaderMap::new();
        if let Some(version) = message.headers.as_ref().and_then(|headers| headers.get(names::VERSION)) {
            headers.insert(names::VERSION, version.as_str());
        }
        headers.insert(names::WHY, why.replace(['\r', '\n'], " ").as_str());
        let subject = names::dead_subject(&message.subject);
        let stored = match self.hub.context.publish_with_headers(subject, headers, message.payload.clone()).await {
            Ok(stored) => stored.await.is_ok(),
            Err(_) => false,
        };
        if !stored {
            // It comes back.
            return;
        }
        if let Some((batch, task)) = names::of_subject(&message.subject) {
            let key = names::state_key(batch, &task);
            if let Ok(Some((entry, revision))) = lease::read(&self.hub.state, &key).await
                && !entry.is_done()
            {
                let why = format!("refused by a worker (ralph {OWN_VERSION}): {why}");
                let ended =
                    Ended { run: entry.run.clone(), cost_usd: entry.cost_usd, result: WorkResult::Failed { why } };
                let refused = Entry { phase: Phase::Done { ended }, ..entry };
                let _ = lease::write(&self.hub.state, &key, &refused, revision).await;
            }
        }
        let _ = super::soon(message.double_ack_with(AckKind::Term)).await;
    }
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Taken {
    Lease(Lease),
    /// It is done, or was replaced.
    Over,
    /// Another worker has it.
    Busy,
}

/// The next task, or none for now.
async fn next(consumer: &Consumer<pull::Config>, waits: Duration) -> Result<Option<Message>, ()> {
    let fetch = consumer.batch().max_messages(1).expires(waits).messages();
    let mut messages = super::soon(fetch).await.ok_or(())?.map_err(drop)?;
    match tokio::time::timeout(waits + LATE, messages.next()).await {
        Ok(Some(Ok(message))) => Ok(Some(message)),
        Ok(Some(Err(_))) | Err(_) => Err(()),
        Ok(None) => Ok(None),
    }
}
