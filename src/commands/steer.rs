//! `ralph hint`, `pause`, `continue`, `stop`, `retry`, `limit` and `emit`: words to a run under way.

use std::io::Read as _;
use std::path::PathBuf;

use super::run::working_directory;
use crate::cli;
use crate::error::{UserError, io_reason};
use crate::journal::{Lock, RunDirectory, Store, Topic};
use crate::process::RUN_ID;
use crate::run::control::{Command, send};

/// `ralph hint`.
pub fn hint(args: &cli::Words) -> Result<u8, UserError> {
    tell(&Command::Hint { words: args.words.join(" ") }, "the agent hears it in the next iteration")
}

/// `ralph pause`.
pub fn pause() -> Result<u8, UserError> {
    tell(&Command::Pause, "it pauses when this iteration is over; `ralph continue` goes on")
}

/// `ralph continue`.
pub fn go_on() -> Result<u8, UserError> {
    tell(&Command::Continue, "it goes on")
}

/// `ralph stop`.
pub fn stop(args: &cli::Stop) -> Result<u8, UserError> {
    let what = if args.now { "it is being stopped" } else { "it stops when this iteration is over" };
    tell(&Command::Stop { now: args.now }, what)
}

/// `ralph retry`.
pub fn retry() -> Result<u8, UserError> {
    tell(&Command::Retry, "it waits no longer")
}

/// `ralph limit`.
pub fn limit(args: &cli::Limit) -> Result<u8, UserError> {
    let command = Command::Limit {
        max_iterations: args.max_iterations,
        max_cost_usd: args.max_cost,
        max_seconds: args.max_time.map(|time| time.as_secs()),
    };
    tell(&command, "it holds from the next decision on")
}

/// `ralph emit`.
pub fn emit(args: &cli::Emit) -> Result<u8, UserError> {
    let payload = match (&args.json, args.payload.as_slice()) {
        (Some(json), _) => {
            serde_json::from_str::<serde_json::Value>(json)
                .map_err(|error| UserError::usage(format!("the payload is no JSON: {error}")))?;
            json.clone()
        }
        (None, [only]) if only == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                UserError::usage(format!("cannot read the payload from standard input: {}", io_reason(&error)))
            })?;
            text.trim_end().to_owned()
        }
        (None, words) => words.join(" "),
    };
    if args.topic.trim().is_empty() || args.topic.contains(['*', '\n', '"', '<']) {
        return Err(
            UserError::usage(format!("`{}` is no topic", args.topic)).hint("a topic is a word such as `build.done`")
        );
    }
    let command = Command::Emit { event: Topic { topic: args.topic.clone(), payload } };
    tell(&command, "it is heard when this iteration is over")
}

fn tell(command: &Command, what: &str) -> Result<u8, UserError> {
    use std::io::Write as _;
    let run = addressee()?;
    send(&run, command).map_err(|error| {
        UserError::failed(format!("cannot write to `{}`: {}", run.path.display(), io_reason(&error)))
    })?;
    // Nobody may be left to read it.
    let _ = writeln!(std::io::stdout(), "told run {}: {what}", run.id);
    Ok(0)
}

/// The run that is meant: the one this process is an agent of, else the one that is active here or in a parent directory.
fn addressee() -> Result<RunDirectory, UserError> {
    let (id, workspace) = (std::env::var(RUN_ID).ok(), std::env::var_os("RALPH_WORKSPACE"));
    if let (Some(id), Some(workspace)) = (id, workspace)
        && let store = Store::at(&PathBuf::from(workspace))
        && let Some(run) = store.run(&id)
        && Lock::holder(&store.lock()).is_some_and(|holder| holder.run == run.id)
    {
        return Ok(run);
    }
    let here = working_directory()?;
    for directory in here.ancestors() {
        let store = Store::at(directory);
        if let Some(run) = Lock::holder(&store.lock()).and_then(|holder| store.run(&holder.run)) {
            return Ok(run);
        }
    }
    Err(UserError::usage("no run is active in this directory")
        .hint("change to the directory where `ralph run` was started; `ralph runs` lists what ran there"))
}
