//! Which agents are on this machine: each is asked for its version, all at the same time, none for long.
//!
//! It must never wait for a program that waits, and never ask a program that is not needed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinSet;

use super::definition::{Definition, THIS_PROGRAM};
use super::{Agent, Options, Turn};
use crate::error::UserError;
use crate::process::{self, Clocks, Exit, Invocation, Output, StartError, Stdin, StopStep, Stream, UnixSignal};

/// The longest that a program may take to say its version. The slowest known take five seconds when they are cold,
/// and three times as long when all others are asked too on a small machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Some agents write `{}` where a login will be.
const EMPTY_FILE: u64 = 4;

/// As much as a version may say.
const LONGEST_ANSWER: usize = 16 * 1024;

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The program, when it is there.
    pub path: Option<PathBuf>,
    /// How it is.
    pub state: State,
}

/// How an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It said its version, if that can be read.
    Installed {
        /// What it said.
        version: Option<String>,
    },
    /// There is no such program.
    Missing,
    /// It is there and cannot be used; why.
    Broken(String),
}

/// Whether a login was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// A variable or a file of a login is there.
    Seen,
    /// Nothing was seen, which says little: a login can be in a keyring.
    Unknown,
    /// It needs none.
    NotNeeded,
}

/// Looks for signs of a login. It never reads them.
pub fn auth(definition: &Definition) -> Auth {
    let auth = &definition.auth;
    if auth.variables.is_empty() && auth.files.is_empty() && auth.login.is_none() {
        return Auth::NotNeeded;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let exists = |file: &String| {
        let path = match (file.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return false,
            (None, _) => PathBuf::from(file),
        };
        std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > EMPTY_FILE)
    };
    let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if auth.variables.iter().any(is_set) || auth.files.iter().any(exists) { Auth::Seen } else { Auth::Unknown }
}

/// Finds the program of an agent: the first of its names that is there.
pub fn locate(definition: &Definition, options: Options, workspace: &Path) -> (Agent, Result<PathBuf, StartError>) {
    let candidates = match &options.overrides.command {
        Some(command) => vec![command.clone()],
        None => definition.commands.iter().map(|name| vec![name.clone()]).collect(),
    };
    let mut first = None;
    for candidate in candidates {
        let Some((program, leading)) = candidate.split_first() else { continue };
        let program = match program.as_str() {
            THIS_PROGRAM => std::env::current_exe().unwrap_or_else(|_| process::own_program()).into(),
            name => name.into(),
        };
        let agent = Agent {
            definition: definition.clone(),
            options: options.clone(),
            program,
            leading: leading.to_vec(),
            foreign: None,
        };
        let found = process::check(&version_call(&agent, workspace));
        match (&found, &first) {
            (Ok(_), _) => return (agent, found),
            // What is there and cannot be run says more than what is not there.
            (_, None | Some((_, Err(StartError::NotFound { .. })))) => first = Some((agent, found)),
            _ => {}
        }
    }
    first.unwrap_or_else(|| {
        let program = definition.id.clone().into();
        let error = StartError::NotFound { program, nearest: Vec::new() };
        let program = definition.id.clone().into();
        (Agent { definition: definition.clone(), options, program, leading: Vec::new(), foreign: None }, Err(error))
    })
}

fn version_call(agent: &Agent, workspace: &Path) -> Invocation {
    Invocation {
        args: agent.leading.iter().chain(&agent.definition.version.args).map(Into::into).collect(),
        env: agent.environment(&Turn::new("", workspace)),
        stdin: Stdin::Null,
        stop: vec![StopStep { signal: UnixSignal::Term, grace: Duration::from_millis(300) }],
        ..Invocation::new(&agent.program, workspace)
    }
}

/// Asks one agent for its version.
async fn probe(definition: Definition, options: Options, workspace: PathBuf, patience: Duration) -> Probe {
    let (agent, found) = locate(&definition, options, &workspace);
    let path = match found {
        Ok(path) => path,
        Err(StartError::NotFound { .. }) => return Probe { path: None, state: State::Missing },
        Err(error) => return Probe { path: None, state: State::Broken(error.to_string()) },
    };
    let state = ask(version_call(&agent, &workspace), patience).await;
    Probe { path: Some(path), state }
}

async fn ask(call: Invocation, patience: Duration) -> State {
    let clocks = Clocks { total: Some(patience), ..Clocks::default() };
    let mut process = match process::start(call, clocks) {
        Ok(process) => process,
        Err(error) => return State::Broken(error.to_string()),
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match process.next().await {
            Output::Bytes { from, bytes } => {
                let said = if from == Stream::Stdout { &mut stdout } else { &mut stderr };
                let room = LONGEST_ANSWER.saturating_sub(said.len());
                said.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Output::Ended(ended) if ended.stopped.is_some() => {
                return State::Broken(format!("it did not say its version within {} s", patience.as_secs()));
            }
            Output::Ended(ended) => {
                return match ended.exit {
                    // Some say it on standard error.
                    Exit::Code(0) => State::Installed { version: version(&stdout).or_else(|| version(&stderr)) },
                    Exit::Code(code) => State::Broken(format!("asked for its version, it ended with exit code {code}")),
                    Exit::Signal(signal) => {
                        State::Broken(format!("asked for its version, it was ended by Unix signal {signal}"))
                    }
                };
            }
        }
    }
}

/// The first word that looks like a version.
fn version(said: &[u8]) -> Option<String> {
    String::from_utf8_lossy(said)
        .split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// Asks all of them at the same time; the answers come in the order of the questions.
pub async fn probe_all(agents: Vec<(Definition, Options)>, workspace: &Path) -> Vec<Probe> {
    let mut probes = Probes::start(agents, workspace, PATIENCE);
    while probes.next().await {}
    probes.answers.into_iter().flatten().collect()
}

/// The first, in the order of the questions, that is installed. Nobody is waited for longer than that needs. When there
/// is none, all answers.
pub async fn first(agents: Vec<(Definition, Options)>, workspace: &Path) -> Result<usize, Vec<Probe>> {
    let mut probes = Probes::start(agents, workspace, PATIENCE);
    loop {
        let known = probes.answers.iter().map_while(Option::as_ref);
        if let Some(index) = known.into_iter().position(|probe| matches!(probe.state, State::Installed { .. })) {
            // The other probes are ended with the set.
            return Ok(index);
        }
        if !probes.next().await {
            return Err(probes.answers.into_iter().flatten().collect());
        }
    }
}

/// Probes under way.
struct Probes {
    tasks: JoinSet<(usize, Probe)>,
    answers: Vec<Option<Probe>>,
}

impl Probes {
    fn start(agents: Vec<(Definition, Options)>, workspace: &Path, patience: Duration) -> Self {
        let answers = vec![None; agents.len()];
        let mut tasks = JoinSet::new();
        for (index, (definition, options)) in agents.into_iter().enumerate() {
            let workspace = workspace.to_owned();
            tasks.spawn(async move { (index, probe(definition, options, workspace, patience).await) });
        }
        Self { tasks, answers }
    }

    /// Waits for one more answer; false when there are no more.
    async fn next(&mut self) -> bool {
        match self.tasks.join_next().await {
            Some(Ok((index, probe))) => {
                self.answers[index] = Some(probe);
                true
            }
            Some(Err(_)) => true,
            None => {
                for answer in self.answers.iter_mut().filter(|answer| answer.is_none()) {
                    *answer = Some(Probe { path: None, state: State::Broken("the probe failed".to_owned()) });
                }
                false
            }
        }
    }
}

/// An agent that was asked for by name and cannot be found.
pub fn not_installed(agent: &Agent, asked: &str) -> UserError {
    let Definition { id, name, install, .. } = &agent.definition;
    let program = agent.program.to_string_lossy();
    let error =
        UserError::agent(format!("agent `{id}` ({name}) was asked for by {asked}, but `{program}` was not found"));
    let error = match &install.line {
        Some(line) => error.hint(format!("install it: `{line}`")),
        None => error,
    };
    match &install.link {
        Some(link) => error.hint(format!("read on: {link}")),
        None => error,
    }
    .hint("see what is installed: `ralph agents`")
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
