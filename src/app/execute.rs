//! A run that is ready: its journal, its view and its loop, from the first record to the exit code. `ralph run` begins one,
//! `ralph resume` takes one up again.

use std::path::Path;
use std::time::{Duration, Instant};

use super::steering::answered;
use super::{resume, warn};
use crate::app::clean;
use crate::app::follow_up;
use crate::app::view::{Show, Showing, Shown};
use crate::cli::ViewArgs;
use crate::config::{RawBytes, Settings};
use crate::control::Inbox;
use crate::error::{UserError, io_reason};
use crate::git;
use crate::journal::raw::Packer;
use crate::journal::{EventsFile, Holder, Journal, Lock, LockError, RunDirectory, Store, Summary, Wake};
use crate::process::{self, Size, runtime};
use crate::redact::Redactor;
use crate::run::notify::Notifier;
use crate::run::{Finished, Interrupts, Keys, Memory, Plan, Recorder, Room, run as run_loop};
use crate::ui::out;
use crate::ui::tui::{self, Left};

/// How long a reader that stalls may take for the last words.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The store of a working directory, locked for one run.
pub(crate) struct LockedWorkspace {
    pub store: Store,
    lock: Lock,
}

impl LockedWorkspace {
    /// Takes the lock; nothing was run when that fails.
    pub(crate) fn take(store: Store) -> Result<Self, UserError> {
        store.create().map_err(|error| unusable(store.path(), &error))?;
        let lock = Lock::take(&store).map_err(|error| match error {
            LockError::Held(holder) => held(holder.as_ref(), store.workspace()),
            LockError::Io(error) => unusable(store.workspace(), &error),
        })?;
        Ok(Self { store, lock })
    }
}

/// Everything that is needed to begin, or to continue.
pub(crate) struct PreparedRun {
    pub plan: Plan,
    pub directory: RunDirectory,
    /// Its journal, open at its end.
    pub journal: Journal,
    /// What is in the journal already.
    pub summary: Summary,
    /// What the loop remembers.
    pub memory: Memory,
    /// How its files are kept.
    pub keeping: Keeping,
}

/// What a full screen has for the agent's own.
fn pane(Size { rows, columns }: Size) -> Size {
    let (columns, rows) = tui::pane_size(columns, rows);
    Size { rows, columns }
}

/// How files of a run are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    raw: RawBytes,
    compress: bool,
    runs: Option<u32>,
}

impl From<&Settings> for Keeping {
    fn from(settings: &Settings) -> Self {
        Self { raw: settings.raw.value, compress: settings.compress.value, runs: settings.keep_runs.value }
    }
}

impl PreparedRun {
    /// Runs to the end and gives the exit code.
    pub(crate) fn run_to_end(mut self, locked: LockedWorkspace, show: Show, view: &ViewArgs) -> Result<u8, UserError> {
        let unusable = |error: &std::io::Error| unusable(locked.store.path(), error);
        let inbox = Inbox::open(&self.directory.id, locked.store.path()).map_err(|error| unusable(&error))?;
        if locked.store.is_inside_workspace() {
            self.plan.notices.push(format!(
                "records are kept in `{}`, inside of the workspace: the agent can change or delete them",
                locked.store.path().display()
            ));
        }
        let holder = Holder {
            pid: std::process::id(),
            run: self.directory.id.clone(),
            agent: self.plan.chosen().agent.id().to_owned(),
            since: jiff::Timestamp::now(),
            control: Some(inbox.path().to_owned()),
        };
        locked.lock.sign(&holder).map_err(|error| unusable(&error))?;
        // The lock is ours, so that no other run of this directory is alive.
        let runs = locked.store.runs().unwrap_or_default();
        // Only a run that did not end by itself can have left processes; it has no summary.
        if runs.iter().any(|run| run.id != self.directory.id && !run.summary().exists()) {
            self.plan.notices.extend(strays(&locked.store));
        }
        for run in runs {
            git::remove_leftovers(&run.path);
        }
        if let Some(path) = &self.plan.events_file
            && let Some(repository) = git::Repository::around(&self.plan.workspace)
        {
            // An agent must not commit a file of ralph's. Without the rule everything works; the file is only seen.
            let _ = repository.exclude(&self.plan.workspace.join(path));
        }
        let copy = self.plan.events_file.as_ref().map(|path| EventsFile::open(&self.plan.workspace.join(path)));
        let copy = copy.transpose().map_err(|error| {
            UserError::usage(format!("cannot write `journal.events_file`: {}", io_reason(&error)))
                .hint("it must be a file in a directory that you may write to")
        })?;
        if show == Show::Screen {
            self.plan.keys = Keys::Leave;
            self.plan.room = Room::Part(pane);
        }
        let wake = Wake::default();
        let mut showing =
            Showing::start(show, view, &self.plan.notify, &locked.store, &self.directory, &self.journal, &wake)?;
        let notifier = Notifier::new(self.plan.notify.clone(), self.plan.workspace.clone());
        let Self { plan, directory, journal, summary, memory, keeping } = self;
        let mut recorder = Recorder::new(journal, &directory, Redactor::of_process(), wake).after(summary);
        recorder = recorder.with_copy(copy).with_notifier(notifier);
        if keeping.raw == RawBytes::Exact {
            recorder = recorder.with_exact_raw_files();
        }
        let (store, current) = (locked.store.clone(), directory.raw());
        let earlier = move || store.runs().unwrap_or_default().iter().map(RunDirectory::raw).collect::<Vec<_>>();
        let packer = keeping.compress.then(|| {
            let raw = current.clone();
            Packer::start(current, move || earlier().into_iter().filter(|directory| *directory != raw).collect())
        });
        let runtime = runtime()?;
        let finished = runtime.block_on(run_loop(&plan, &directory, &mut recorder, memory, inbox));
        let notifier = recorder.into_notifier();
        let interrupt = finished.as_ref().ok().and_then(|finished| finished.interrupt);
        let wrong = notifier.map(|notifier| runtime.block_on(told(notifier)));
        let wrong = wrong.into_iter().flatten().map(|message| format!("notification failed: {message}"));
        let mut warnings: Vec<String> = wrong.collect();
        if let Some(wall) = &plan.wall {
            wall.close();
        }
        drop(packer);
        if let Some(keep) = keeping.runs
            && let Err(error) = clean::retain(&locked.store, keep)
        {
            warnings.push(error.message);
        }
        // Before the view has shown all: a reader that stalls must not keep the next run out.
        drop(locked);
        if showing.over(interrupt) == Shown::InPart {
            let place = directory.path.display();
            warnings.push(format!("some output could not be shown; the full record is in `{place}`"));
            leave(warnings, finished);
        }
        let left = showing.close();
        warn(warnings);
        let finished = finished?;
        match (finished.interrupt, left) {
            (Some(interrupt), _) => process::die_by(interrupt.number()),
            (None, Some(Left::Signal(number))) => process::die_by(number),
            (None, Some(Left::Answered(words))) => resume::answer(answered(words, directory.id, view)),
            (None, Some(Left::Closed | Left::Runs)) => Ok(finished.outcome.exit_code()),
            (None, None) => follow_up::end(finished.outcome.exit_code(), &directory, show, view),
        }
    }
}

/// Ends the program although its reader stalls, as a terminal does after Ctrl-S: the last words get a moment, and no more.
fn leave(warnings: Vec<String>, finished: Result<Finished, UserError>) -> ! {
    let code = finished.as_ref().map_or_else(UserError::exit_code, |finished| finished.outcome.exit_code());
    let interrupt = finished.as_ref().ok().and_then(|finished| finished.interrupt);
    let said = std::thread::Builder::new().name("last words".into()).spawn(move || {
        warn(warnings);
        if let Err(error) = &finished {
            out::error(error);
        }
    });
    let start = Instant::now();
    while said.as_ref().is_ok_and(|said| !said.is_finished()) && start.elapsed() < LAST_WORDS {
        std::thread::sleep(Duration::from_millis(1));
    }
    match interrupt {
        Some(interrupt) => process::die_by(interrupt.number()),
        None => std::process::exit(i32::from(code)),
    }
}

/// Waits for notices that are on their way. A Unix signal gives them up, and nothing else: the run is over.
async fn told(notifier: Notifier) -> Vec<String> {
    let Ok(mut interrupts) = Interrupts::listen() else { return notifier.finish().await };
    let given_up = async { vec![format!("stopped after {}", interrupts.interrupt().await.name())] };
    tokio::select! {
        wrong = notifier.finish() => wrong,
        given_up = given_up => given_up,
    }
}

/// The directory cannot hold a journal.
pub(crate) fn unusable(place: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(format!("cannot use `{}`: {}", place.display(), io_reason(error)))
        .hint("ralph keeps its records there: free disk space or fix the permissions; nothing was run")
        .hint("`RALPH_STATE_DIR` names another place")
}

/// What dead runs of this directory have left behind. The lock is ours, so that no other run is alive.
fn strays(store: &Store) -> Vec<String> {
    let found = process::strays(|run| !store.has_run(run));
    let told = found.iter().map(|found| {
        let process::Stray { pid, command } = &found.stray;
        format!("process {pid} of the dead run {} is still running: {command}\nstop it: `kill {pid}`", found.run)
    });
    told.collect()
}

fn held(holder: Option<&Holder>, workspace: &Path) -> UserError {
    let place = workspace.display();
    match holder {
        Some(Holder { pid, run, agent, since, .. }) => {
            let since = since.to_zoned(crate::local_time::zone()).strftime("%H:%M:%S");
            UserError::usage(format!(
                "another run is active in `{place}`: run {run}, agent `{agent}`, process {pid}, since {since}"
            ))
            .hint("wait for it, stop it with `ralph stop` (`--now`), or work in another directory")
        }
        None => UserError::usage(format!("another run is active in `{place}`"))
            .hint("wait for it, or work in another directory"),
    }
}
