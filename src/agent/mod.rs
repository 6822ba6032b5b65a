//! How an agent is invoked: a description in, an [`Invocation`] out. Pure, except for looking itself up.
//!
//! This room never spawns anything and knows nothing of what an agent prints.

mod catalog;
mod custom;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::error::UserError;
use crate::process::{Environment, Invocation, Stdin, StopStep, UnixSignal};

pub use catalog::{find, names};
pub use custom::custom;

/// A longer prompt does not go on a command line: one argument ends at 131,071 bytes, and `ps` shows it.
pub const LONGEST_ARGUMENT: usize = 100 * 1024;

/// What an agent's own shell leaves in the environment. An agent that sees it believes that it runs inside another one,
/// and refuses, or talks to the other's window.
const OUTER_SESSION: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

/// How a prompt reaches an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Written to standard input.
    Stdin,
    /// As the argument of a flag.
    Flag(String),
    /// As the last argument.
    Positional,
}

/// An agent that can be run.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The program.
    pub program: OsString,
    /// Its arguments, before the prompt.
    pub args: Vec<OsString>,
    /// How it takes the prompt.
    pub delivery: Delivery,
    /// What its output is.
    pub dialect: Option<&'static str>,
    /// The prompt it works on when the user gives none.
    pub own_prompt: Option<&'static str>,
    /// How it is asked to stop.
    pub stop: Vec<StopStep>,
}

/// What one iteration wants of the agent.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// The prompt as it is sent.
    pub prompt: &'a str,
    /// Where the agent works.
    pub workspace: &'a Path,
    /// Variables for the agent.
    pub environment: Vec<(OsString, OsString)>,
}

impl Agent {
    /// The command of one iteration.
    pub fn invocation(&self, turn: &Turn<'_>) -> Result<Invocation, UserError> {
        let mut args = self.args.clone();
        if self.delivery != Delivery::Stdin && turn.prompt.len() > LONGEST_ARGUMENT {
            return Err(UserError::usage(format!(
                "the prompt has {} bytes, and agent `{}` takes it on its command line, where at most {LONGEST_ARGUMENT} fit",
                turn.prompt.len(),
                self.name,
            ))
            .hint("give it on standard input: `prompt_mode: stdin` under `cli:` in `ralph.yml`")
            .hint("or put the text in a file and let the prompt name it"));
        }
        let stdin = match &self.delivery {
            Delivery::Stdin => Stdin::Bytes(turn.prompt.as_bytes().into()),
            Delivery::Flag(flag) => {
                args.extend([flag.into(), turn.prompt.into()]);
                Stdin::Null
            }
            Delivery::Positional => {
                args.push(turn.prompt.into());
                Stdin::Null
            }
        };
        Ok(Invocation {
            args,
            env: Environment { set: turn.environment.clone(), remove: OUTER_SESSION.map(str::to_owned).to_vec() },
            stdin,
            stop: self.stop.clone(),
            ..Invocation::new(&self.program, turn.workspace)
        })
    }

    /// The command line without the prompt, for people.
    pub fn command_line(&self) -> Vec<String> {
        std::iter::once(&self.program).chain(&self.args).map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// How an agent is stopped that says nothing else about it.
fn usual_stop() -> Vec<StopStep> {
    let step = |signal, seconds| StopStep { signal, grace: Duration::from_secs(seconds) };
    vec![step(UnixSignal::Int, 3), step(UnixSignal::Term, 5)]
}
