//! `ralph batch`: begins or continues a batch, and shows how far it is.

mod coordinator;
mod local;
mod merge_queue;

mod on_fleet;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use self::coordinator::{Coordinator, batches};
pub(crate) use self::local::{Local, Places};
use crate::app::choose::settle;
use crate::app::find::{self, print};
use crate::app::{repository, working_directory};
use crate::batch::runner::Runner;
use crate::batch::sources;
use crate::batch::state::{self, Batch, Fact, Ledger, Stage, Start};
use crate::batch::task::TaskId;
use crate::cli::batch::Begin;
use crate::config;
use crate::error::{UserError, io_reason};
use crate::git::{GitError, Repository, Writer};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::store::new_id;
use crate::journal::{State, Store};
use crate::process::{self, runtime};
use crate::ui::harmless;

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
    let writer = Writer::open(project.repository.clone()).map_err(|error| failed(&error))?;
    let target = match (&args.into, head.branch) {
        (Some(Some(branch)), _) if project.repository.branch(branch).is_some() => branch.clone(),
        (Some(Some(branch)), _) => return Err(UserError::usage(format!("the branch `{branch}` does not exist"))),
        (Some(None), Some(branch)) => branch,
        (Some(None), None) => return Err(UserError::usage("`--into` needs a branch: HEAD is detached")),
        (None, _) => {
            let name = format!("ralph/batch/{id}");
            let full = format!("refs/heads/{name}");
            let made = writer.update_ref(&full, Some(&commit), None, "start a batch");
            runtime.block_on(made).map_err(|error| failed(&error))?;
            name
        }
    };
    let checks = project.settings.verify.value.checks.iter().filter(|check| check.required);
    let start = Start {
        batch: id.clone(),
        ralph: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: project.workspace.clone(),
        repository: project.repository.top.clone(),
        target,
        source: args.source.clone().unwrap_or_default(),
        jobs: if on.is_some() { args.jobs.on_fleet() } else { args.jobs.count() },
        max_cost: args.max_cost,
        max_seconds: args.max_time.map(|time| time.as_secs()),
        max_failures: args.max_failures,
        merge_attempts: 2,
        checks: checks.map(|it| (it.command.clone(), it.directory.clone(), it.timeout.as_secs())).collect(),
        run_args: args.run_args(),
        on,
    };
    let directory = batches(&project.store).join(&id);
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    project.store.create().map_err(unusable)?;
    RealDisk.directory(&directory.join("prompts")).map_err(unusable)?;
    let _lock = lock(&directory)?;
    let mut ledger = Ledger::create(&directory).map_err(unusable)?;
    let tasks = found.into_iter().map(|found| Fact::Added { task: Box::new(found.task) });
    for fact in std::iter::once(Fact::BatchStart { start: Box::new(start) }).chain(tasks) {
        ledger.record(fact).map_err(unusable)?;
    }
    drive(project, &directory, ledger, args.on.as_deref())
}

/// `ralph batch resume`, and `retry` of a task.
pub(crate) fn resume(retry: Option<&str>) -> Result<u8, UserError> {
    process::protect(process::own_program());
    let project = Project::here()?;
    let directory = project.newest()?;
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    let _lock = lock(&directory)?;
    let mut ledger = Ledger::reopen(&directory).map_err(unusable)?;
    if ledger.batch.tasks.is_empty() {
        return Err(UserError::usage("the batch was interrupted before it began").hint("start it again: `ralph batch`"));
    }
    ledger.record(Fact::Resumed).map_err(unusable)?;
    if let Some(task) = retry {
        let id = known(&ledger.batch, task)?;
        if ledger.batch.task(&id).is_some_and(|state| state.stage.satisfies()) {
            return Err(UserError::usage(format!("task `{id}` is merged or skipped")));
        }
        ledger.record(Fact::Retried { task: id }).map_err(unusable)?;
    }
    drive(project, &directory, ledger, None)
}

/// `ralph batch skip`, without a coordinator.
pub(crate) fn skip(task: &str) -> Result<u8, UserError> {
    let project = Project::here()?;
    let directory = project.newest()?;
    let _lock = lock(&directory)?;
    let unusable = |error: std::io::Error| crate::app::execute::unusable(&directory, &error);
    let mut ledger = Ledger::reopen(&directory).map_err(unusable)?;
    let id = known(&ledger.batch, task)?;
    if ledger.batch.task(&id).is_some_and(|state| matches!(state.stage, Stage::Merged { .. })) {
        return Err(UserError::usage(format!("task `{id}` is merged")));
    }
    ledger.record(Fact::Skipped { task: id.clone() }).map_err(unusable)?;
    print(&format!("skipped {id}; continue with `ralph batch resume`\n"))
}

/// `ralph batch add`, without a coordinator.
pub(crate) fn add(source: &str) -> Result<u8, UserError> {
    let project = Project::here()?;
    let directory = project.newest()?;
    let found = sources::open(Some(source), &project.workspace)?.read()?;
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

fn known(batch: &Batch, task: &str) -> Result<TaskId, UserError> {
    let id = TaskId::new(task).filter(|id| batch.task(id).is_some());
    id.ok_or_else(|| {
        UserError::usage(format!("the batch has no task `{task}`")).hint("`ralph batch status` lists the tasks")
    })
}

/// One coordinator at a time: the lock is the operating system's, on the directory of the batch.
fn lock(directory: &Path) -> Result<File, UserError> {
    let file = File::open(directory);
    let file = file.map_err(|error| crate::app::execute::unusable(directory, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(UserError::usage("the batch is running").hint("see `ralph batch status`, or wait for it"))
        }
        Err(TryLockError::Error(error)) => Err(crate::app::execute::unusable(directory, &error)),
    }
}

/// Runs a batch to its end: here, or on the fleet that it was started with. `on` has the credentials, if they were given.
fn drive(project: Project, directory: &Path, ledger: Ledger, on: Option<&str>) -> Result<u8, UserError> {
    let places = Arc::new(project.places());
    if let Some(fleet) = ledger.batch.start.on.clone() {
        return on_fleet::drive(project, directory, ledger, places, &fleet, on);
    }
    let local = Local::new(Arc::clone(&places), directory, ledger.batch.start.run_args.clone());
    drive_with(project, directory, ledger, places, local)
}

fn drive_with<R: Runner>(
    project: Project,
    directory: &Path,
    ledger: Ledger,
    places: Arc<Places>,
    runner: R,
) -> Result<u8, UserError> {
    let start = ledger.batch.start.clone();
    let source = (!start.source.is_empty()).then_some(start.source.as_str());
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
    };
    let code = runtime()?.block_on(coordinator.run())?;
    let (batch, _) = state::read(&state::journal(directory))
        .map_err(|error| UserError::failed(format!("cannot read the batch: {}", io_reason(&error))))?;
    print(&report(&batch))?;
    match code {
        128.. => process::die_by(i32::from(code) - 128),
        code => Ok(code),
    }
}

/// What became of each task, what it cost, and where the work is.
fn report(batch: &Batch) -> String {
    let width = batch.tasks.iter().map(|state| state.task.id.as_str().len()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for state in &batch.tasks {
        let _ = write!(text, "{:<8}  {:<width$}", state.stage.name(), state.task.id);
        if let Stage::Merged { commit } = &state.stage {
            let _ = write!(text, "  {}", commit.get(..7).unwrap_or(commit));
        }
        if let Some(usd) = state.cost_usd {
            let _ = write!(text, "  ${usd:.2}");
        }
        if let Some(why) = &state.why {
            let _ = write!(text, "  {}", harmless(why.lines().next().unwrap_or_default()));
        }
        if state.stage == Stage::Stuck && state.run.is_some() {
            let _ = write!(text, " (branch `{}`)", batch.branch(&state.task.id));
        }
        text.push('\n');
    }
    let merged = batch.tasks.iter().filter(|state| matches!(state.stage, Stage::Merged { .. })).count();
    let _ = write!(text, "{merged} of {} merged into `{}`", batch.tasks.len(), batch.start.target);
    if batch.cost() > 0.0 {
        let _ = write!(text, ", ${:.2}", batch.cost());
    }
    if let Some((_, why)) = &batch.end {
        let _ = write!(text, ": {why}");
    }
    text.push('\n');
    text
}

/// `ralph batch status`.
pub(crate) fn status(json: bool) -> Result<u8, UserError> {
    let directory = Project::here()?.newest()?;
    let (batch, _) = state::read(&state::journal(&directory))
        .map_err(|error| UserError::failed(format!("cannot read the batch: {}", io_reason(&error))))?;
    if !json {
        return print(&report(&batch));
    }
    let tasks = batch.tasks.iter().map(|state| {
        let commit = if let Stage::Merged { commit } = &state.stage { Some(commit) } else { None };
        serde_json::json!({
            "id": state.task.id, "state": state.stage.name(), "branch": batch.branch(&state.task.id),
            "commit": commit, "cost_usd": state.cost_usd, "why": state.why,
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let text = serde_json::to_string_pretty(&serde_json::json!({ "batch": batch.start.batch, "tasks": tasks }));
    print(&format!("{}\n", text.unwrap_or_default()))
}
