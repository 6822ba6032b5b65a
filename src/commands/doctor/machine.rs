//! The machine around the agents: configuration, git, terminal, disk, and what runs of the past have left behind.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use super::super::runtime;
use super::Check;
use crate::agent::{Answer, PATIENCE, ask};
use crate::config::{self, CommandLine, FileLayer, Setting, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::{Lock, LockError, Store, Summary};
use crate::plural::plural;
use crate::process::{self, Exit, Invocation, Stdin};
use crate::run::start_error;

/// Below this a run will fail before long; below the other one it may.
const TOO_LITTLE: u64 = 100 * 1024 * 1024;
const LITTLE: u64 = 1024 * 1024 * 1024;

/// Looks at everything.
pub fn look(
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
    ];
    checks.extend(notice(settings, workspace));
    checks.extend(runs(workspace));
    Ok(checks)
}

/// The command that tells somebody: nobody would hear that it is not there.
fn notice(settings: &Settings, workspace: &Path) -> Option<Check> {
    let Setting { value: Some(CommandLine(argv)), origin } = &settings.notify_command else { return None };
    let invocation = Invocation::new(argv.first().map_or("", String::as_str), workspace);
    Some(match process::check(&invocation) {
        Ok(path) => Check::fine("notify", format!("{} (`notify.command`)", path.display())),
        Err(error) => {
            Check::note("notify", format!("{} (`notify.command`, from {origin})", start_error(&error).message))
                .advice("a run works without it, but nobody is told")
        }
    })
}

fn configuration(path: Option<PathBuf>, file: &FileLayer) -> Check {
    match (file.warnings.as_slice(), path) {
        ([], Some(path)) => Check::fine("config", path.display().to_string()),
        ([], None) => Check::fine("config", "no `ralph.yml`: the defaults hold").advice("`ralph init` writes one"),
        (warnings, _) => {
            let first = warnings[0].lines().next().unwrap_or_default().to_owned();
            Check::note("config", format!("{}, the first: {first}", plural(warnings.len() as u64, "warning")))
                .advice("`ralph config` shows all of them")
        }
    }
}

fn git(workspace: &Path) -> Result<Check, UserError> {
    let call = Invocation { args: vec!["--version".into()], stdin: Stdin::Null, ..Invocation::new("git", workspace) };
    let answer = runtime()?.block_on(ask(call, PATIENCE));
    let Answer::Said { exit: Exit::Code(0), stdout, .. } = answer else {
        return Ok(Check::note("git", "not installed, or it does not answer")
            .advice("agents use it to see and undo their work"));
    };
    let version = String::from_utf8_lossy(&stdout).trim().to_owned();
    Ok(match workspace.ancestors().find(|parent| parent.join(".git").exists()) {
        Some(root) => Check::fine("git", format!("{version}, repository `{}`", root.display())),
        None => Check::note("git", format!("{version}; this directory is in no repository"))
            .advice("`git init`, so that an agent's work can be seen and undone"),
    })
}

fn terminal() -> Check {
    if !std::io::stdout().is_terminal() {
        return Check::fine("terminal", "standard output is none: plain lines without colours");
    }
    let term = std::env::var("TERM").unwrap_or_default();
    match (term.as_str(), process::terminal_size()) {
        ("" | "dumb", _) => Check::note("terminal", "`TERM` says nothing: plain lines without colours"),
        (_, size) => Check::fine("terminal", format!("{term}, {}", plural(size.columns, "column"))),
    }
}

fn disk(workspace: &Path) -> Check {
    let free = match rustix::fs::statvfs(workspace) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Check::note("disk", format!("cannot be asked: {}", io_reason(&error.into()))),
    };
    let said = format!("{} MiB are free", free / (1024 * 1024));
    match free {
        ..TOO_LITTLE => Check::wrong("disk", said).advice("make room: ralph writes down everything that happens"),
        TOO_LITTLE..LITTLE => Check::note("disk", said).advice("make room: ralph writes down everything that happens"),
        _ => Check::fine("disk", said),
    }
}

/// What ralph itself has left here. Nothing is made that is not there.
fn runs(workspace: &Path) -> Vec<Check> {
    let place = workspace.join(".ralph");
    if !place.exists() || place.is_dir() && !place.join("runs").exists() {
        return vec![Check::fine("runs", "none yet in this directory")];
    }
    let unusable = |error: &std::io::Error| {
        vec![
            Check::wrong("runs", format!("cannot use `{}`: {}", place.display(), io_reason(error)))
                .advice("ralph keeps its journal there: mend the permissions"),
        ]
    };
    let store = match Store::open(workspace) {
        Ok(store) => store,
        Err(error) => return unusable(&error),
    };
    // Held while we look, so that no run begins under our eyes and is taken for a dead one.
    let _lock = match Lock::take(&store.lock()) {
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
        0 => Check::fine("runs", format!("{all} here, all of them ended")),
        _ => Check::note(
            "runs",
            format!("{unfinished} of {all} here never ended: ralph was killed, or the machine stopped"),
        )
        .advice("go on with the newest: `ralph resume`"),
    }];
    let strays = process::strays(|run| !store.has_run(run));
    checks.extend(strays.into_iter().map(|found| {
        let process::Stray { pid, command } = found.stray;
        Check::note("stray", format!("process {pid} of the dead run {} is still there: {command}", found.run))
            .advice(format!("end it with `kill {pid}`"))
    }));
    checks
}
