//! `ralph run`: settings, agent, prompt, journal and view are put together; then the loop runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dry_run;
use super::looks::line_view;
use super::planning::{Planned, plan};
use super::runtime;
use crate::cli::{Output, Run};
use crate::error::{UserError, io_reason};
use crate::journal::{Holder, Journal, Lock, LockError, Store};
use crate::process;
use crate::run::{Memory, Recorder, run as run_loop};
use crate::ui::{Feed, JsonView, Shown, View};

/// How long the view may stand still when the run is over, before it is given up. Ctrl-C ends it sooner.
const LAST_LINES: Duration = Duration::from_secs(60);

/// Runs the loop and gives its exit code.
pub fn run(args: &Run, mode: Option<&str>) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    // Looking for agents already starts some.
    process::protect(process::own_program());
    let output = args.output;
    let looks_view = || -> Box<dyn View> {
        match output {
            Output::Lines => Box::new(line_view(&args.looks)),
            Output::Json => Box::new(JsonView::new(std::io::stdout())),
        }
    };
    let planned = plan(args, mode, workspace)?;
    if args.dry_run {
        let report = dry_run::report(&planned, output)?;
        // Nobody may be left to read it.
        let _ = std::io::stdout().write_all(report.as_bytes());
        return Ok(0);
    }
    let Planned { mut plan, .. } = planned;
    let unusable = |error: &std::io::Error| {
        UserError::usage(format!("cannot use `{}`: {}", plan.workspace.join(".ralph").display(), io_reason(error)))
            .hint("ralph keeps its journal there: make room on the disk or mend the permissions; nothing was run")
    };
    let store = Store::open(&plan.workspace).map_err(|error| unusable(&error))?;
    let mut lock = Lock::take(&store.lock()).map_err(|error| match error {
        LockError::Held(holder) => held(holder.as_ref(), &plan.workspace),
        LockError::Io(error) => unusable(&error),
    })?;
    let directory = store.create_run().map_err(|error| unusable(&error))?;
    let journal = Journal::create(&directory.journal()).map_err(|error| unusable(&error))?;
    lock.sign(&Holder {
        pid: std::process::id(),
        run: directory.id.clone(),
        agent: plan.chosen().agent.id().to_owned(),
        since: jiff::Timestamp::now(),
    })
    .map_err(|error| unusable(&error))?;

    plan.notices.extend(strays(&store));
    let feed = Feed::start(looks_view(), directory.journal())
        .map_err(|error| UserError::failed(format!("cannot start the view: {error}")))?;
    let feed = std::rc::Rc::new(std::cell::RefCell::new(feed));
    let observer = std::rc::Rc::clone(&feed);
    let mut recorder = Recorder::new(journal, Box::new(move |appended| observer.borrow_mut().send(appended)));
    let finished = runtime()?.block_on(run_loop(&plan, &directory, &mut recorder, Memory::default()));
    drop(recorder);
    process::restore_signals();
    if let Some(feed) = std::rc::Rc::into_inner(feed)
        && feed.into_inner().finish(LAST_LINES) == Shown::InPart
    {
        let mut stderr = std::io::stderr();
        let place = directory.path.display();
        let _ = writeln!(stderr, "warning: not everything could be shown; everything that happened is in `{place}`");
    }
    let finished = finished?;
    drop(lock);
    match finished.interrupt {
        Some(interrupt) => process::die_by(interrupt.number()),
        None => Ok(finished.outcome.exit_code()),
    }
}

/// Where the user is.
pub fn working_directory() -> Result<PathBuf, UserError> {
    std::env::current_dir().map_err(|error| {
        UserError::usage(format!("the working directory is gone or not accessible: {}", io_reason(&error)))
            .hint("change to a directory that exists")
    })
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
