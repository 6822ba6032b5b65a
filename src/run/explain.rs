//! Why an agent could not be started, in words that say what to do.

use crate::error::{UserError, io_reason};
use crate::process::StartError;

/// The message for a person.
pub(crate) fn start_error(error: &StartError) -> UserError {
    let message = error.to_string();
    match error {
        StartError::NotFound { program, nearest } => {
            let error = UserError::agent(format!("the agent's command was not found: `{}`", program.display()));
            let error = match nearest.as_slice() {
                [] => error,
                some => error.hint(format!(
                    "did you mean {}?",
                    some.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )),
            };
            error.hint("check the spelling, that it is installed, and that its directory is on PATH")
        }
        StartError::NotExecutable { path } => {
            UserError::agent(message).hint(format!("make it executable: `chmod +x {}`", path.display()))
        }
        StartError::WrongFormat { .. } => UserError::agent(message)
            .hint("a script needs a first line such as `#!/bin/sh`; a binary must be built for this machine"),
        StartError::MissingInterpreter { interpreter, .. } => {
            UserError::agent(message).hint(format!("install `{interpreter}`, or change the first line of the script"))
        }
        StartError::CwdGone { .. } => UserError::usage(format!("{message}: it was removed or is not accessible"))
            .hint("start ralph again in a directory that exists"),
        StartError::TooManyProcesses | StartError::TooManyFiles => {
            UserError::failed(message).hint("end some programs, or raise the limit with `ulimit`")
        }
        StartError::TooLong { .. } => {
            UserError::usage(message).hint("pass the prompt on stdin: set `cli.prompt_mode: stdin` in `ralph.yml`")
        }
        StartError::NoWall { .. } => {
            UserError::usage(message).hint("see what this machine offers: `ralph sandbox explain`")
        }
        StartError::Other { program, source } => {
            UserError::agent(format!("cannot start `{}`: {}", program.display(), io_reason(source)))
        }
    }
}
