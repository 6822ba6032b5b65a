//! Commands of the user that a run starts beside the agent: hooks, and those whose output is part of the prompt.
//! The one place where they are started, within a time and with bounded output.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::Interrupts;
use crate::process::{self, Captured, Environment, Exit, Invocation, Stdin};

/// How much of each stream of a command is kept.
const MOST_BYTES: usize = 32 * 1024;

/// How a command ended.
pub(super) enum CommandEnd {
    /// It ran: its exit code, and what it printed.
    Ran { code: i32, stdout: String, stderr: String },
    /// It could not be started, took too long, or was ended by a Unix signal; why.
    Broken(String),
    /// A person interrupted ralph meanwhile.
    Interrupted,
}

/// Runs a command in the workspace.
pub(super) async fn run(
    argv: &[String],
    input: Option<Vec<u8>>,
    timeout: Duration,
    workspace: &Path,
    environment: &[(OsString, OsString)],
    interrupts: &mut Interrupts,
) -> CommandEnd {
    let Some((program, args)) = argv.split_first() else { return CommandEnd::Broken("it is empty".to_owned()) };
    let invocation = Invocation {
        args: args.iter().map(Into::into).collect(),
        env: Environment { set: environment.to_vec(), ..Environment::default() },
        stdin: input.map_or(Stdin::Null, |bytes| Stdin::Bytes(bytes.into())),
        ..Invocation::new(program, workspace)
    };
    let captured = tokio::select! {
        captured = process::capture(invocation, timeout, MOST_BYTES) => captured,
        _ = interrupts.interrupt() => return CommandEnd::Interrupted,
    };
    match captured {
        Err(error) => CommandEnd::Broken(super::start_error(&error).message),
        Ok(Captured { exit: None, .. }) => CommandEnd::Broken(format!("timeout after {} s", timeout.as_secs())),
        Ok(Captured { exit: Some(Exit::Signal(number)), .. }) => {
            CommandEnd::Broken(format!("ended by {}", process::signal_name(number)))
        }
        Ok(Captured { exit: Some(Exit::Code(code)), stdout, stderr, .. }) => {
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            CommandEnd::Ran { code, stdout: text(stdout), stderr: text(stderr) }
        }
    }
}
