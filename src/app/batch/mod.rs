//! `ralph batch`: begins or continues a batch, and shows how far it is.

pub(crate) mod board;
mod coordinator;
mod local;
mod merge_queue;
mod on_fleet;
mod orders;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use self::board::Screen;
use self::coordinator::{Coordinator, batches};
pub(crate) use self::local::{Local, Places};
use crate::app::appearance::{columns, palette};
use crate::app::choose::settle;
use crate::app::find::{self, print, print_painted};
use crate::app::view::needs_terminal;
use crate::app::{repository, working_directory};
use crate::batch::order::BatchOrder;
use crate::batch::runner::Runner;
use crate::batch::sources;
use crate::batch::state::{self, Batch, Fact, Ledger, Stage, Start, TaskState};
use crate::batch::task::TaskId;
use crate::cli::batch::Begin;
use crate::config;
use crate::control::Inbox;
use crate::error::{UserError, io_reason};
use crate::git::{GitError, Repository, Writer};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::store::new_id;
use crate::journal::{State, Store};
use crate::process::{self, runtime};
use crate::ui;
use crate::ui::web::SeenBatch;

/// What the names of branches begin with that batches make for their result.
const OWN_TARGET: &str = "ralph/batch/";

/// How long the lock of a coordinator can outlive it.
const LOCK_OF_DEAD: std::time::Duration = std::time::Duration::from_secs(1);

/// The project, its settings and its repository.
struct Project {
    workspace: PathBuf,
    settings: config::Settings,
    state: State,
    store: Store,
    repository: Repository,
}

impl Project {
    fn here() -> Result<Self, UserError> {
        let workspace = working_directory()?;
        let file = config::nearest_file(None, &workspace)?;
        let settings = settle(config::environment().over(file.layer.clone()), &file, &workspace)?;
        let state = find::state(&settings, &workspace)?;
        let repository = Repository::around(&workspace)
            .ok_or_else(|| UserError::usage("a batch needs a git repository").hint("create one: `git init`"))?;
        let store = state.store(&repository.top);
        Ok(Self { workspace, settings, state, store, repository })
    }

    fn below(&self) -> PathBuf {
        self.workspace.strip_prefix(&self.repository.top).unwrap_or(Path::new("")).to_owned()
    }

    fn places(&self) -> Places {
        Places {
            state: self.state.clone(),
            worktrees: crate::app::placing::worktrees(&self.state, &self.settings, &self.repository.top),
            repository: self.repository.top.clone(),
            below: self.below(),
        }
    }

    /// The directory of the newest batch.
    fn newest(&self) -> Result<PathBuf, UserError> {
        let entries = std::fs::read_dir(batches(&self.store)).into_iter().flatten().flatten();
        let newest = entries.map(|entry| entry.path()).filter(|path| state::journal(path).is_file()).max();
        newest.ok_or_else(|| UserError::usage("no batch here").hint("start one: `ralph batch tasks.yml`"))
    }
}

fn failed(error: &GitError) -> UserError {
    UserError::usage(format!("cannot start the batch: {error}"))
}

/// `ralph batch SOURCE`.
pub(crate) fn begin(args: &Begin) -> Result<u8, UserError> {
    if args.tui {
        needs_terminal("--tui")?;
    }
    process::protect(process::own_program());
    let project = Project::here()?;
    let on = on_fleet::wanted(args)?;
    let found = sources::open(args.source.as_deref(), &project.workspace)?.read()?;
    sources::check(&found, &[])?;
    if found.is_empty() {
        return print("no open tasks\n");
    }
    let file = config::nearest_file(None, &project.workspace)?;
    repository::consent(&project.settings, &file, &project.workspace)?;
    let runtime = runtime()?;
    let head = runtime.block_on(project.repository.head());
    let commit = head
        .commit
        .ok_or_else(|| UserError::usage("a batch needs a commit to start from").hint("commit something first"))?;
    let id = new_id(jiff::Timestamp::now());
    let target = match (&args.into, head.branch) {
        (Some(Some(branch)), _) if project.repository.branch(branch).is_some() => branch.clone(),
        (Some(Some(branch)), _) => return Err(UserError::usage(format!("the branch `{branch}` does not exist"))),
        (Some(None), Some(branch)) => branch,
        (Some(None), None) => return Err(UserError::usage("`--into` needs a branch: HEAD is detached")),
        (None, _) => format!("{OWN_TARGET}{id}"),
    };
    let checks = project.settings.verify.value.checks.iter().filter(|check| check.required);
    let start = Start {
        batch: id.clone(),
        ralph: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: project.workspace.clone(),
        repository: project.repository.top.clone(),
        target,
        base: commit,
        source: args.source.clone().unwrap_or_default(),
        jobs: if on.is_some() { args.jobs.on_fleet() } else { args.jobs.count() },
        max_cost: args.max_cost,
        max_seconds: args.max_time.map(|time| time.as_secs()),
        max_failures: args.max_failures,
        merge_attempts: project.settings.merge_attempts.value,
        checks: checks.map(|it| (it.command.clone(), it.directory.clone(), it.timeout.as_secs())).collect(),
        run_args: args.run_args(),
        on,
    };
    let directory = batches(&project.store).join(&id);
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    project.store.create().map_err(unusable)?;
    RealDisk.directory(&directory.join("prompts")).map_err(unusable)?;
    let _lock = lock(&directory)?;
    let tasks = found.into_iter().map(|found| Fact::Added { task: Box::new(found.task) });
    let facts = std::iter::once(Fact::BatchStart { start: Box::new(start) }).chain(tasks);
    let ledger = Ledger::create(&directory, facts).map_err(unusable)?;
    drive(project, &directory, ledger, Wishes { tui: args.tui, on: args.on.as_deref() })
}

/// `ralph batch resume`, and `retry` of a task.
pub(crate) fn resume(retry: Option<&TaskId>, tui: bool) -> Result<u8, UserError> {
    process::protect(process::own_program());
    let project = Project::here()?;
    let directory = project.newest()?;
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    let _lock = lock(&directory)?;
    let mut ledger = Ledger::reopen(&directory).map_err(unusable)?;
    if let Some(task) = retry {
        let stage = &known(&ledger.batch, task)?.stage;
        if matches!(stage, Stage::Merged { .. }) {
            return Err(UserError::usage(format!("task `{task}` is merged")));
        }
    }
    ledger.record(Fact::Resumed).map_err(unusable)?;
    if let Some(task) = retry {
        ledger.record(Fact::Retried { task: task.clone() }).map_err(unusable)?;
    }
    drive(project, &directory, ledger, Wishes { tui, on: None })
}

/// `ralph batch hint`, `pause` and others that need a batch that is running.
pub(crate) fn order(order: &BatchOrder) -> Result<u8, UserError> {
    let directory = Project::here()?.newest()?;
    send(&directory, order).map_err(|why| UserError::usage(why).hint("see `ralph batch status`"))?;
    print(&format!("{}\n", order.effect()))
}

/// Gives a batch that is running an order; the error says why it cannot be done.
pub(crate) fn send(directory: &Path, order: &BatchOrder) -> Result<(), String> {
    if !is_running(directory) {
        return Err("the batch is not running".to_owned());
    }
    let socket = std::fs::read_to_string(control(directory)).map_err(|_| "the batch takes no orders yet".to_owned())?;
    crate::control::send(Path::new(&socket), order).map_err(|error| io_reason(&error))
}

/// Where the address of the socket is written.
fn control(directory: &Path) -> PathBuf {
    directory.join("control")
}

/// `ralph batch retry`: at once where the batch is running, and else by running it.
pub(crate) fn retry(task: &TaskId) -> Result<u8, UserError> {
    if is_running(&Project::here()?.newest()?) {
        return order(&BatchOrder::Retry { task: task.clone() });
    }
    resume(Some(task), false)
}

pub(crate) fn skip(task: &TaskId) -> Result<u8, UserError> {
    let project = Project::here()?;
    let directory = project.newest()?;
    if is_running(&directory) {
        return order(&BatchOrder::Skip { task: task.clone() });
    }
    let _lock = lock(&directory)?;
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    let mut ledger = Ledger::reopen(&directory).map_err(unusable)?;
    if matches!(known(&ledger.batch, task)?.stage, Stage::Merged { .. }) {
        return Err(UserError::usage(format!("task `{task}` is merged")));
    }
    ledger.record(Fact::Skipped { task: task.clone() }).map_err(unusable)?;
    print(&format!("skipped {task}; continue with `ralph batch resume`\n"))
}

pub(crate) fn add(source: &str) -> Result<u8, UserError> {
    let project = Project::here()?;
    let directory = project.newest()?;
    let found = sources::open(Some(source), &project.workspace)?.read()?;
    if is_running(&directory) {
        return order(&BatchOrder::Add { tasks: found.into_iter().map(|found| found.task).collect() });
    }
    let _lock = lock(&directory)?;
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    let mut ledger = Ledger::reopen(&directory).map_err(unusable)?;
    let tasks: Vec<_> = ledger.batch.tasks.iter().map(|state| Arc::clone(&state.task)).collect();
    sources::check(&found, &tasks.iter().map(|task| &**task).collect::<Vec<_>>())?;
    let count = found.len();
    for found in found {
        ledger.record(Fact::Added { task: Box::new(found.task) }).map_err(unusable)?;
    }
    print(&format!("added {}; continue with `ralph batch resume`\n", crate::plural::plural(count as u64, "task")))
}

/// The id that a person wrote.
pub(crate) fn task_id(name: &str) -> Result<TaskId, UserError> {
    TaskId::new(name).ok_or_else(|| no_task(name))
}

fn known<'a>(batch: &'a Batch, task: &TaskId) -> Result<&'a TaskState, UserError> {
    batch.task(task).ok_or_else(|| no_task(task.as_str()))
}

fn no_task(name: &str) -> UserError {
    UserError::usage(format!("the batch has no task `{name}`")).hint("`ralph batch status` lists the tasks")
}

/// Whether a coordinator holds the lock.
fn is_running(directory: &Path) -> bool {
    File::open(directory).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// One coordinator at a time: the lock is the operating system's, on the directory of the batch.
fn lock(directory: &Path) -> Result<File, UserError> {
    let file = File::open(directory);
    let file = file.map_err(|error| crate::app::execute::unusable(directory, &error))?;
    let since = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A process that a killed coordinator was about to start holds the lock a moment longer.
            Err(TryLockError::WouldBlock) if since.elapsed() < LOCK_OF_DEAD => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(UserError::usage("the batch is running").hint("see `ralph batch status`, or wait for it"));
            }
            Err(TryLockError::Error(error)) => return Err(crate::app::execute::unusable(directory, &error)),
        }
    }
}

/// What a person says besides what the batch remembers.
#[derive(Clone, Copy)]
struct Wishes<'a> {
    tui: bool,
    /// The address of the fleet with its credentials, if they were given.
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "only a fleet needs it"))]
    on: Option<&'a str>,
}

/// Runs a batch to its end: here, or on the fleet that it was started with.
fn drive(project: Project, directory: &Path, ledger: Ledger, wishes: Wishes) -> Result<u8, UserError> {
    let places = Arc::new(project.places());
    if let Some(fleet) = ledger.batch.start.on.clone() {
        return on_fleet::drive(project, directory, ledger, places, &fleet, wishes);
    }
    let local = Local::new(Arc::clone(&places), directory, ledger.batch.start.run_args.clone());
    drive_with(project, directory, ledger, places, local, wishes.tui)
}

fn drive_with<R: Runner>(
    project: Project,
    directory: &Path,
    ledger: Ledger,
    places: Arc<Places>,
    runner: R,
    tui: bool,
) -> Result<u8, UserError> {
    let start = ledger.batch.start.clone();
    let source = (!start.source.is_empty()).then_some(start.source.as_str());
    let unusable = |error: std::io::Error| crate::app::execute::unusable(directory, &error);
    let inbox = Inbox::open(&start.batch, directory).map_err(unusable)?;
    let address = inbox.path().as_os_str().as_encoded_bytes();
    RealDisk.replace(&control(directory), address).map_err(unusable)?;
    let runtime = runtime()?;
    runtime.block_on(make_target(&project.repository, &start)).map_err(|error| failed(&error))?;
    let screen = if tui { Screen::open(directory, Arc::clone(&places))? } else { Screen::none() };
    let coordinator = Coordinator {
        ledger: Rc::new(RefCell::new(ledger)),
        runner,
        settings: Rc::new(project.settings),
        places,
        source: sources::open(source, &start.workspace).ok(),
        lost: BTreeMap::new(),
        ending: None,
        merging: None,
        jobs: start.jobs.max(1),
        inbox,
        live: BTreeSet::new(),
        told: BTreeSet::new(),
        screen: screen.clone(),
    };
    let code = runtime.block_on(coordinator.run());
    screen.over(code.as_ref().is_ok_and(|code| *code >= 128));
    let code = code?;
    let batch = read(directory)?;
    print_painted(&ui::batch::report(&batch, false, palette(), columns().count()))?;
    match code {
        128.. => process::die_by(i32::from(code) - 128),
        code => Ok(code),
    }
}

/// Creates the branch of the batch's own, unless that was done already.
async fn make_target(repository: &Repository, start: &Start) -> Result<(), GitError> {
    if !start.target.starts_with(OWN_TARGET) || repository.branch(&start.target).is_some() {
        return Ok(());
    }
    let writer = Writer::open(repository.clone())?;
    writer.update_ref(&format!("refs/heads/{}", start.target), Some(&start.base), None, "start a batch").await
}

fn read(directory: &Path) -> Result<Batch, UserError> {
    let read = state::read(&state::journal(directory));
    let (batch, _) =
        read.map_err(|error| UserError::failed(format!("cannot read the batch: {}", io_reason(&error))))?;
    Ok(batch)
}

/// All batches of a project, as the page shows them. One that cannot be read is left out.
pub(crate) fn all(store: &Store) -> Vec<SeenBatch> {
    let entries = std::fs::read_dir(batches(store)).into_iter().flatten().flatten();
    let seen = |directory: PathBuf| {
        let batch = read(&directory).ok()?;
        Some(SeenBatch { batch, is_running: is_running(&directory), directory })
    };
    entries.filter_map(|entry| seen(entry.path())).collect()
}

/// `ralph batch status`.
pub(crate) fn status(json: bool) -> Result<u8, UserError> {
    let directory = Project::here()?.newest()?;
    let (batch, is_running) = (read(&directory)?, is_running(&directory));
    if !json {
        return print_painted(&ui::batch::report(&batch, is_running, palette(), columns().count()));
    }
    let text = serde_json::to_string_pretty(&ui::batch::json(&batch, is_running));
    print(&format!("{}\n", text.unwrap_or_default()))
}
