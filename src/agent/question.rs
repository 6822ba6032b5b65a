//! Asking a program something: `--version`, `--help`. Nobody is there to answer it, and it may not take long.
//!
//! It must never wait for a program that waits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Agent, Turn};
use crate::process::{self, Clocks, Exit, Invocation, Output, Stdin, StopStep, Stream, UnixSignal};

/// The longest that a program may take to answer. The slowest known take five seconds when they are cold, and three
/// times as long when all others are asked too on a small machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// As much as a program may say.
const LONGEST_ANSWER: usize = 256 * 1024;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It ended.
    Said {
        /// How.
        exit: Exit,
        /// On standard output.
        stdout: Vec<u8>,
        /// On standard error.
        stderr: Vec<u8>,
    },
    /// It said nothing, or not all, in time.
    Silent,
    /// It could not be started; why.
    Unstartable(String),
}

/// The call of an agent's program with these words.
pub(crate) fn call(agent: &Agent, words: &[String], workspace: &Path) -> Invocation {
    Invocation {
        args: agent.leading.iter().chain(words).map(Into::into).collect(),
        env: agent.environment(&Turn::new("", workspace)),
        stdin: Stdin::Null,
        stop: vec![StopStep { signal: UnixSignal::Term, grace: Duration::from_millis(300) }],
        ..Invocation::new(&agent.program, workspace)
    }
}

/// The same call for a command that only looks: nothing in the workspace decides what runs, neither by `PATH` nor by the
/// directory that a program starts in.
pub(super) fn outside(call: Invocation, program: &Path, workspace: &Path) -> Invocation {
    let path = call.env.value("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path);
    let others = directories.filter(|directory| directory.is_absolute() && !is_inside(directory, workspace));
    let path = std::env::join_paths(others).unwrap_or_default();
    let mut env = call.env;
    env.set.push(("PATH".into(), path));
    Invocation { program: program.into(), cwd: "/".into(), env, ..call }
}

/// True for a path in the workspace or in the repository around it, by its name or by where it leads.
pub(crate) fn is_inside(path: &Path, workspace: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let around = workspace.ancestors().take_while(|place| home.as_deref() != Some(*place));
    let top = around.into_iter().find(|place| place.join(".git").exists()).unwrap_or(workspace);
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let parent = path.parent().map(real);
    path.starts_with(workspace)
        || real(path).starts_with(real(top))
        || parent.is_some_and(|parent| parent.starts_with(real(top)))
}

/// The program of a command, where it is in the workspace.
pub(crate) fn found_inside(program: &str, workspace: &Path) -> Option<PathBuf> {
    let found = process::check(&Invocation::new(program, workspace)).ok()?;
    is_inside(&found, workspace).then_some(found)
}

/// Starts it and hears what it says.
pub async fn ask(call: Invocation, patience: Duration) -> Answer {
    let clocks = Clocks { total: Some(patience), ..Clocks::default() };
    let mut process = match process::start(call, clocks) {
        Ok(process) => process,
        Err(error) => return Answer::Unstartable(error.to_string()),
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match process.next().await {
            Output::Bytes { from, bytes } => {
                let said = if from == Stream::Stdout { &mut stdout } else { &mut stderr };
                let room = LONGEST_ANSWER.saturating_sub(said.len());
                said.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Output::Ended(ended) if ended.stopped.is_some() => return Answer::Silent,
            Output::Ended(ended) => return Answer::Said { exit: ended.exit, stdout, stderr },
        }
    }
}
