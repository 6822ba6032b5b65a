//! A run that is ready: its journal, its view and its loop, from the first record to the exit code. `ralph run` begins one,
//! `ralph resume` takes one up again.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use super::clean;
use super::converse;
use super::showing::{Show, Showing};
use super::tui::answered;
use super::{resume, runtime, warn};
use crate::cli::ViewLooks;
use crate::config::{RawBytes, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::{EventsFile, Holder, Journal, Lock, LockError, Redactor, RunDirectory, Store, Summary, raw};
use crate::process::{self, Size};
use crate::run::notify::Notifier;
use crate::run::{Came, Interrupts, Keys, Memory, Observer, Plan, Recorder, Room, git, run as run_loop};
use crate::ui::Shown;
use crate::ui::tui::{self, Left};

/// The store of a working directory, locked for one run.
pub struct Stage {
    /// The store.
    pub store: Store,
    lock: Lock,
}

impl Stage {
    /// Takes the lock; nothing was run when that fails.
    pub fn take(workspace: &Path) -> Result<Self, UserError> {
        let store = Store::open(workspace).map_err(|error| unusable(workspace, &error))?;
        let lock = Lock::take(&store.lock()).map_err(|error| match error {
            LockError::Held(holder) => held(holder.as_ref(), workspace),
            LockError::Io(error) => unusable(workspace, &error),
        })?;
        Ok(Self { store, lock })
    }
}

/// Everything that is needed to begin, or to go on.
pub struct Performance {
    /// What is to be done.
    pub plan: Plan,
    /// Its directory.
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
pub struct Keeping {
    raw: RawBytes,
    compress: bool,
    runs: Option<u32>,
}

impl From<&Settings> for Keeping {
    fn from(settings: &Settings) -> Self {
        Self { raw: settings.raw.value, compress: settings.compress.value, runs: settings.keep_runs.value }
    }
}

impl Performance {
    /// Runs to the end and gives the exit code.
    pub fn play(mut self, mut stage: Stage, show: Show, looks: &ViewLooks) -> Result<u8, UserError> {
        let unusable = |error: &std::io::Error| unusable(&self.plan.workspace, error);
        let holder = Holder {
            pid: std::process::id(),
            run: self.directory.id.clone(),
            agent: self.plan.chosen().agent.id().to_owned(),
            since: jiff::Timestamp::now(),
        };
        stage.lock.sign(&holder).map_err(|error| unusable(&error))?;
        self.plan.notices.extend(strays(&stage.store));
        if let Some(path) = &self.plan.events_file {
            runtime()?.block_on(keep_out_of_git(&self.plan.workspace, path));
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
        let (mut showing, observer) =
            Showing::start(show, looks, &self.plan.notify, &stage.store, &self.directory, &self.journal)?;
        let notifier = Rc::new(RefCell::new(Notifier::new(self.plan.notify.clone(), self.plan.workspace.clone())));
        let observer = watched(observer, Rc::clone(&notifier));
        let Self { plan, directory, journal, summary, memory, keeping } = self;
        let mut recorder = Recorder::new(journal, &directory, Redactor::of_environment(), observer).after(summary);
        recorder = recorder.with_copy(copy).settled_by(showing.settler());
        if keeping.raw == RawBytes::Exact {
            recorder = recorder.with_exact_raw_files();
        }
        let runtime = runtime()?;
        let finished = runtime.block_on(run_loop(&plan, &directory, &mut recorder, memory));
        drop(recorder);
        let interrupt = finished.as_ref().ok().and_then(|finished| finished.interrupt);
        let wrong = Rc::into_inner(notifier).map(|notifier| runtime.block_on(told(notifier.into_inner())));
        let wrong = wrong.into_iter().flatten().map(|message| format!("a notice did not arrive: {message}"));
        let mut warnings: Vec<String> = wrong.collect();
        if showing.over(interrupt) == Shown::InPart {
            let place = directory.path.display();
            warnings.push(format!("not everything could be shown; everything that happened is in `{place}`"));
        }
        if keeping.compress
            && let Err(error) = raw::pack(&directory.raw())
        {
            warnings.push(format!("cannot pack the raw files: {}", io_reason(&error)));
        }
        if let Some(keep) = keeping.runs
            && let Err(error) = clean::retain(&stage.store, &directory.id, keep)
        {
            warnings.push(error.message);
        }
        drop(stage);
        let left = showing.close();
        warn(warnings);
        let finished = finished?;
        match (finished.interrupt, left) {
            (Some(interrupt), _) => process::die_by(interrupt.number()),
            (None, Some(Left::Signal(number))) => process::die_by(number),
            (None, Some(Left::Answered(words))) => resume::answer(answered(words, directory.id, looks)),
            (None, Some(Left::Closed)) => Ok(finished.outcome.exit_code()),
            (None, None) => converse::end(finished.outcome.exit_code(), &directory, show, looks),
        }
    }
}

/// A file of ralph's in a directory of the user's must not be committed by an agent: git is told where only this clone knows.
async fn keep_out_of_git(workspace: &Path, path: &Path) {
    let Some(name) = workspace.join(path).strip_prefix(workspace).ok().map(|path| path.to_string_lossy().into_owned())
    else {
        return;
    };
    if git(workspace, &["check-ignore", "--quiet", "--no-index", "--", &name]).await.is_some() {
        return;
    }
    let Some(told) = git(workspace, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"]).await
    else {
        return;
    };
    let prefix = git(workspace, &["rev-parse", "--show-prefix"]).await.unwrap_or_default();
    let exclude = String::from_utf8_lossy(&told).trim_end().to_owned();
    let line = format!("/{}{name}\n", String::from_utf8_lossy(&prefix).trim_end());
    if let Some(directory) = Path::new(&exclude).parent() {
        let _ = std::fs::create_dir_all(directory);
    }
    let file = std::fs::OpenOptions::new().append(true).create(true).open(exclude);
    // Without it everything works; the file is only seen.
    let _ = file.and_then(|mut file| file.write_all(format!("# ralph's copy of events\n{line}").as_bytes()));
}

/// Waits for notices that are on their way. A Unix signal gives them up, and nothing else: the run is over.
async fn told(notifier: Notifier) -> Vec<String> {
    let Ok(mut interrupts) = Interrupts::listen() else { return notifier.finish().await };
    let given_up = async {
        loop {
            if let Came::Interrupt(interrupt, _) = interrupts.next().await {
                return vec![format!("given up after {}", interrupt.name())];
            }
        }
    };
    tokio::select! {
        wrong = notifier.finish() => wrong,
        given_up = given_up => given_up,
    }
}

/// Who is told about records: what shows them, and who calls somebody because of them.
fn watched(mut shown: Observer, notifier: Rc<RefCell<Notifier>>) -> Observer {
    Box::new(move |appended| {
        notifier.borrow_mut().see(&appended.record);
        shown(appended);
    })
}

/// The directory cannot hold a journal.
pub fn unusable(workspace: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(format!("cannot use `{}`: {}", workspace.join(".ralph").display(), io_reason(error)))
        .hint("ralph keeps its journal there: make room on the disk or mend the permissions; nothing was run")
}

/// What dead runs of this directory have left behind. The lock is ours, so that no other run is alive.
fn strays(store: &Store) -> Vec<String> {
    let found = process::strays(|run| !store.has_run(run));
    let told = found.iter().map(|found| {
        let process::Stray { pid, command } = &found.stray;
        format!("process {pid} of the dead run {} is still there: {command}\nend it with `kill {pid}`", found.run)
    });
    told.collect()
}

/// Who else runs here.
fn held(holder: Option<&Holder>, workspace: &Path) -> UserError {
    let place = workspace.display();
    match holder {
        Some(Holder { pid, run, agent, since }) => {
            let since = since.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S");
            UserError::usage(format!(
                "another run is active in `{place}`: run {run}, agent `{agent}`, process {pid}, since {since}"
            ))
            .hint("wait for it, stop it with `ralph stop` (`--now`), or work in another directory")
        }
        None => UserError::usage(format!("another run is active in `{place}`"))
            .hint("wait for it, or work in another directory"),
    }
}
