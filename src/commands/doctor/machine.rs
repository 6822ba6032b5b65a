//! The machine around the agents: configuration, git, terminal, disk, and what runs of the past have left behind.

use std::path::{Path, PathBuf};

use super::Check;
use crate::app::find::{self, Here};
use crate::config::{self, FileLayer, Setting, Settings, ShellLine};
use crate::error::{UserError, io_reason};
use crate::git;
use crate::journal::{Lock, LockError, Summary};
use crate::plugin;
use crate::plural::plural;
use crate::process::wall;
use crate::process::{self, Containment, Invocation, runtime};
use crate::run::start_error;
use crate::sandbox::{self, Mode, describe_machine};
use crate::ui::out;

/// Below this a run will fail before long; below the other one it may.
const TOO_LITTLE: u64 = 100 * 1024 * 1024;
const LITTLE: u64 = 1024 * 1024 * 1024;

pub(crate) fn look(
    workspace: &Path,
    given: Option<&Path>,
    file: &FileLayer,
    settings: &Settings,
) -> Result<Vec<Check>, UserError> {
    let mut checks = vec![
        configuration(given.map(Path::to_owned).or_else(|| config::find(workspace)), file),
        git(workspace)?,
        terminal(),
        disk(workspace),
        processes(),
        sandbox(settings),
    ];
    checks.extend(plugin::other_loops::notice(workspace).map(|notice| Check::fine("project", notice)));
    checks.extend(verify(settings, workspace));
    checks.extend(notice(settings, workspace));
    checks.push(records(settings, workspace));
    checks.extend(runs());
    Ok(checks)
}

/// Completion checks whose program is missing, so that no claim would ever be accepted.
fn verify(settings: &Settings, workspace: &Path) -> Vec<Check> {
    let Setting { value: crate::config::Verify { checks, .. }, origin } = &settings.verify;
    let look = |check: &crate::run::verify::Check| match check.find_program(workspace) {
        Ok(()) => Check::fine("verify", format!("`{}`", check.command)),
        Err(error) => Check::wrong("verify", format!("{} (from {origin})", error.message))
            .advice("check the spelling, and that the program is installed"),
    };
    checks.iter().map(look).collect()
}

/// The command for notifications: a run would not fail without it, so nobody would notice.
fn notice(settings: &Settings, workspace: &Path) -> Option<Check> {
    let Setting { value: Some(ShellLine(argv)), origin } = &settings.notify_command else { return None };
    let invocation = Invocation::new(argv.first().map_or("", String::as_str), workspace);
    Some(match process::check(&invocation) {
        Ok(path) => Check::fine("notify", format!("{} (`notify.command`)", path.display())),
        Err(error) => {
            Check::note("notify", format!("{} (`notify.command`, from {origin})", start_error(&error).message))
                .advice("a run works without it, but you are not notified; try `ralph notify --test`")
        }
    })
}

fn configuration(path: Option<PathBuf>, file: &FileLayer) -> Check {
    match (file.warnings.as_slice(), path) {
        ([], Some(path)) => Check::fine("config", path.display().to_string()),
        ([], None) => Check::fine("config", "no ralph.yml; using defaults").advice("`ralph init` writes one"),
        (warnings, _) => {
            let first = warnings[0].lines().next().unwrap_or_default().to_owned();
            Check::note("config", format!("{}, the first: {first}", plural(warnings.len() as u64, "warning")))
                .advice("`ralph config` shows all of them")
        }
    }
}

fn git(workspace: &Path) -> Result<Check, UserError> {
    let version = match runtime()?.block_on(git::version()) {
        Ok(version) => version,
        Err(error) => {
            return Ok(
                Check::note("git", error.to_string()).advice("install git; agents use it to see and undo their work")
            );
        }
    };
    Ok(match git::Repository::around(workspace) {
        Some(repository) => Check::fine("git", format!("{version}, repository `{}`", repository.top.display())),
        None => Check::note("git", format!("{version}; this directory is not in a repository"))
            .advice("run `git init`, so that you can see and undo the agent's work"),
    })
}

/// What keeps agents from leaving processes behind.
fn processes() -> Check {
    let Containment { control_group, orphans, table } = Containment::of_this_machine();
    if !table {
        return Check::wrong("processes", "cannot read the process table")
            .advice("mount `/proc`: without it ralph cannot see what an agent leaves running");
    }
    match (control_group, orphans) {
        (true, true) => Check::fine("processes", "each agent gets a control group; ralph adopts orphans"),
        (true, false) => Check::fine("processes", "each agent gets a control group"),
        (false, true) => Check::fine("processes", "ralph adopts orphans; control groups (cgroup v2) are not writable"),
        (false, false) => Check::note("processes", "orphans are found by their environment only")
            .advice("an agent's background processes can outlive it here"),
    }
}

/// What this kernel offers for a wall around the agent, and whether one is wanted.
fn sandbox(settings: &Settings) -> Check {
    let machine = wall::machine();
    let options = settings.sandbox();
    let offered = describe_machine(&machine);
    let mode = options.mode.name();
    match sandbox::choose(&machine, options.backend) {
        Ok(_) if options.mode == Mode::Off => Check::fine("sandbox", format!("off; {offered}"))
            .advice("`--sandbox` or `sandbox: workspace` puts a wall around the agent"),
        Ok(_) => Check::fine("sandbox", format!("{mode}; {offered}")),
        Err(_) if options.mode == Mode::Off => Check::fine("sandbox", format!("off; {offered}")),
        Err(reason) => Check::wrong("sandbox", format!("{mode} is not available: {reason}"))
            .advice("use `--sandbox=off`, or `sandbox.required: false`, on a disposable machine"),
    }
}

fn terminal() -> Check {
    if !out::is_terminal() {
        return Check::fine("terminal", "stdout is not a terminal; plain lines without colours");
    }
    let term = std::env::var("TERM").unwrap_or_default();
    match (term.as_str(), crate::terminal::size()) {
        ("" | "dumb", _) => Check::note("terminal", "`TERM` is not set or `dumb`; plain lines without colours"),
        (_, size) => Check::fine("terminal", format!("{term}, {}", plural(size.columns, "column"))),
    }
}

fn disk(workspace: &Path) -> Check {
    let free = match rustix::fs::statvfs(workspace) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Check::note("disk", format!("unknown: {}", io_reason(&error.into()))),
    };
    let said = format!("{} MiB free", free / (1024 * 1024));
    match free {
        ..TOO_LITTLE => Check::wrong("disk", said).advice("free disk space; ralph records every event"),
        TOO_LITTLE..LITTLE => Check::note("disk", said).advice("free disk space; ralph records every event"),
        _ => Check::fine("disk", said),
    }
}

/// Where runs are kept. Nothing is created.
fn records(settings: &Settings, workspace: &Path) -> Check {
    let state = match find::state(settings, workspace) {
        Ok(state) => state,
        Err(error) => return Check::wrong("records", error.message).advice("set HOME or RALPH_STATE_DIR"),
    };
    let place = state.path().ancestors().find(|place| place.exists()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(place, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    match writable {
        Ok(()) if place.is_dir() => Check::fine("records", state.path().display().to_string()),
        _ => Check::wrong("records", format!("cannot write to `{}`", place.display()))
            .advice("runs are kept there: fix the permissions, or set RALPH_STATE_DIR"),
    }
}

/// What ralph itself has left here. Nothing is made that is not there.
fn runs() -> Vec<Check> {
    let store = match Here::find() {
        Ok(here) => here.store,
        Err(_) => return vec![Check::fine("runs", "none yet in this directory")],
    };
    let unusable = |error: &std::io::Error| {
        vec![
            Check::wrong("runs", format!("cannot use `{}`: {}", store.path().display(), io_reason(error)))
                .advice("ralph keeps its records there: fix the permissions"),
        ]
    };
    // Held while we look, so that a run that starts now is not taken for a dead one.
    let _lock = match Lock::take(&store) {
        Ok(lock) => lock,
        Err(LockError::Held(Some(holder))) => {
            return vec![Check::note("runs", format!("run {} is active, process {}", holder.run, holder.pid))];
        }
        Err(LockError::Held(None)) => return vec![Check::note("runs", "a run is active")],
        Err(LockError::Io(error)) => return unusable(&error),
    };
    let runs = store.runs().unwrap_or_default();
    let ended = runs.iter().filter(|run| Summary::of(run).is_ok_and(|summary| summary.end.is_some())).count();
    let (all, unfinished) = (runs.len(), runs.len() - ended);
    let mut checks = vec![match unfinished {
        0 => Check::fine("runs", format!("{all} here, all finished")),
        _ => Check::note(
            "runs",
            format!("{unfinished} of {all} here did not finish: ralph was killed, or the machine stopped"),
        )
        .advice("resume the newest: `ralph resume`"),
    }];
    let strays = process::strays(|run| !store.has_run(run));
    checks.extend(strays.into_iter().map(|found| {
        let process::Stray { pid, command } = found.stray;
        Check::note("stray", format!("process {pid} of the dead run {} is still running: {command}", found.run))
            .advice(format!("stop it: `kill {pid}`"))
    }));
    checks
}
