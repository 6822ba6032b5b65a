//! A run that is ready: its journal, its view and its loop, from the first record to the exit code. `ralph run` begins one,
//! `ralph resume` takes one up again.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::clean;
use super::looks::{Tense, line_view};
use super::runtime;
use crate::cli::{Output, ViewLooks};
use crate::config::{RawBytes, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::writer::Appended;
use crate::journal::{Holder, Journal, Lock, LockError, Redactor, RunDirectory, Store, Summary, raw};
use crate::process;
use crate::run::notify::Notifier;
use crate::run::{Memory, Plan, Recorder, run as run_loop};
use crate::ui::{Feed, JsonView, Shown, View};

/// How long the view may stand still when the run is over, before it is given up. Ctrl-C ends it sooner.
const LAST_LINES: Duration = Duration::from_secs(60);

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
    pub fn play(mut self, mut stage: Stage, output: Output, looks: &ViewLooks) -> Result<u8, UserError> {
        let unusable = |error: &std::io::Error| unusable(&self.plan.workspace, error);
        let holder = Holder {
            pid: std::process::id(),
            run: self.directory.id.clone(),
            agent: self.plan.chosen().agent.id().to_owned(),
            since: jiff::Timestamp::now(),
        };
        stage.lock.sign(&holder).map_err(|error| unusable(&error))?;
        self.plan.notices.extend(strays(&stage.store));
        let view: Box<dyn View> = match output {
            Output::Lines if self.plan.notify.terminal => Box::new(line_view(looks, Tense::Present)),
            Output::Lines => Box::new(line_view(looks, Tense::Present).silent()),
            Output::Json => Box::new(JsonView::new(std::io::stdout())),
        };
        let feed = Feed::start_at(view, self.directory.journal(), self.journal.length())
            .map_err(|error| UserError::failed(format!("cannot start the view: {error}")))?;
        let feed = Rc::new(RefCell::new(feed));
        let notifier = Notifier::new(self.plan.notify.clone(), self.plan.workspace.clone());
        let notifier = Rc::new(RefCell::new(notifier));
        let (observer, herald) = (Rc::clone(&feed), Rc::clone(&notifier));
        let observer = Box::new(move |appended: Appended| {
            herald.borrow_mut().see(&appended.record);
            observer.borrow_mut().send(appended);
        });
        let Self { plan, directory, journal, summary, memory, keeping } = self;
        let mut recorder = Recorder::new(journal, &directory, Redactor::of_environment(), observer).after(summary);
        if keeping.raw == RawBytes::Exact {
            recorder = recorder.with_exact_raw_files();
        }
        let runtime = runtime()?;
        let finished = runtime.block_on(run_loop(&plan, &directory, &mut recorder, memory));
        drop(recorder);
        process::restore_signals();
        let mut stderr = std::io::stderr();
        let wrong = Rc::into_inner(notifier).map(|notifier| runtime.block_on(notifier.into_inner().finish()));
        if let Some(feed) = Rc::into_inner(feed)
            && feed.into_inner().finish(LAST_LINES) == Shown::InPart
        {
            let place = directory.path.display();
            let _ =
                writeln!(stderr, "warning: not everything could be shown; everything that happened is in `{place}`");
        }
        for message in wrong.unwrap_or_default() {
            let _ = writeln!(stderr, "warning: a notice did not arrive: {message}");
        }
        if keeping.compress
            && let Err(error) = raw::pack(&directory.raw())
        {
            let _ = writeln!(stderr, "warning: cannot pack the raw files: {}", io_reason(&error));
        }
        if let Some(keep) = keeping.runs
            && let Err(error) = clean::retain(&stage.store, &directory.id, keep)
        {
            let _ = writeln!(stderr, "warning: {}", error.message);
        }
        let finished = finished?;
        drop(stage);
        match finished.interrupt {
            Some(interrupt) => process::die_by(interrupt.number()),
            None => Ok(finished.outcome.exit_code()),
        }
    }
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
            .hint(format!("wait for it, stop it with `kill -INT {pid}`, or work in another directory"))
        }
        None => UserError::usage(format!("another run is active in `{place}`"))
            .hint("wait for it, or work in another directory"),
    }
}
