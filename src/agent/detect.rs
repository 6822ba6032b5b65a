//! Which agents are on this machine: each is asked for its version, all at the same time, none for long.
//!
//! It must never wait for a program that waits, and never ask a program that is not needed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::definition::{Definition, THIS_PROGRAM};
use super::question::{Answer, PATIENCE, ask, call, outside};
use super::{Agent, Options};
use crate::error::UserError;
use crate::process::{self, Exit, Invocation, StartError};

/// Some agents write `{}` where a login will be.
const EMPTY_FILE: u64 = 4;

/// After this time the user sees which agents have not answered yet.
const SILENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The program, when it is there.
    pub path: Option<PathBuf>,
    pub state: Installation,
}

/// An agent that is looked for.
pub(crate) struct Question {
    pub(crate) definition: Definition,
    pub(crate) options: Options,
    pub(crate) start: Start,
}

/// Whether the program of an agent is started to learn more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A run needs it: as the run would start it.
    InWorkspace,
    /// A command only looks: outside of the workspace.
    Outside,
    /// The repository says what would run, and a command only looks.
    No,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    /// It said its version, if that can be read.
    Installed { version: Option<String> },
    /// There is no such program.
    Missing,
    /// It is there and cannot be used; why.
    Broken(String),
    /// It is there, and was not started.
    NotExamined,
}

/// Whether a login was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// A variable or a file of a login is there.
    Seen,
    /// Nothing was seen, which says little: a login can be in a keyring.
    Unknown,
    NotNeeded,
}

/// Looks for signs of a login. It never reads them.
pub(crate) fn auth(definition: &Definition) -> Auth {
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
pub(crate) fn locate(
    definition: &Definition,
    options: Options,
    workspace: &Path,
) -> (Agent, Result<PathBuf, StartError>) {
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
            plugin: None,
        };
        let found = process::check(&version_call(&agent, workspace));
        match (&found, &first) {
            (Ok(_), _) => return (agent, found),
            // What is there and cannot be run says more than what is not there.
            (_, None) => first = Some((agent, found)),
            (Err(StartError::NotFound { .. }), _) => {}
            (_, Some((_, Err(StartError::NotFound { .. })))) => first = Some((agent, found)),
            _ => {}
        }
    }
    first.unwrap_or_else(|| {
        let program = definition.id.clone().into();
        let error = StartError::NotFound { program, nearest: Vec::new() };
        let program = definition.id.clone().into();
        (Agent { definition: definition.clone(), options, program, leading: Vec::new(), plugin: None }, Err(error))
    })
}

fn version_call(agent: &Agent, workspace: &Path) -> Invocation {
    call(agent, &agent.definition.version.args, workspace)
}

/// Asks one agent for its version.
async fn probe(question: Question, workspace: PathBuf, patience: Duration) -> Probe {
    let Question { definition, options, start } = question;
    let (agent, found) = locate(&definition, options, &workspace);
    let path = match found {
        Ok(path) => path,
        Err(StartError::NotFound { .. }) => return Probe { path: None, state: Installation::Missing },
        Err(error) => return Probe { path: None, state: Installation::Broken(error.to_string()) },
    };
    let call = version_call(&agent, &workspace);
    let call = match start {
        Start::InWorkspace => call,
        Start::Outside => outside(call, &path, &workspace),
        Start::No => return Probe { path: Some(path), state: Installation::NotExamined },
    };
    let state = match ask(call, patience).await {
        Answer::Silent => Installation::Broken(format!("no version within {} s", patience.as_secs())),
        Answer::Unstartable(reason) => Installation::Broken(reason),
        // Some say it on standard error.
        Answer::Said { exit: Exit::Code(0), stdout, stderr } => {
            Installation::Installed { version: version(&stdout).or_else(|| version(&stderr)) }
        }
        Answer::Said { exit: Exit::Code(code), .. } => {
            Installation::Broken(format!("its version command failed with exit code {code}"))
        }
        Answer::Said { exit: Exit::Signal(signal), .. } => {
            Installation::Broken(format!("its version command was killed by Unix signal {signal}"))
        }
    };
    Probe { path: Some(path), state }
}

/// The first word that looks like a version.
fn version(said: &[u8]) -> Option<String> {
    String::from_utf8_lossy(said)
        .split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// Asks all of them at the same time; the answers come in the order of the questions. `told` hears who is waited for,
/// once, when it takes long.
pub(crate) async fn probe_all(agents: Vec<Question>, workspace: &Path, told: impl FnOnce(&[&str])) -> Vec<Probe> {
    let mut probes = Probes::start(agents, workspace, PATIENCE);
    let mut told = Some(told);
    while probes.next(&mut told).await {}
    probes.answers.into_iter().flatten().collect()
}

/// The first, in the order of the questions, that is installed, or may be. Nobody is waited for longer than that needs. When there
/// is none, all answers; else the answers up to it.
pub(crate) async fn first(
    agents: Vec<Question>,
    workspace: &Path,
    told: impl FnOnce(&[&str]),
) -> Result<(usize, Vec<Probe>), Vec<Probe>> {
    let mut probes = Probes::start(agents, workspace, PATIENCE);
    let mut told = Some(told);
    loop {
        let known = probes.answers.iter().map_while(Option::as_ref);
        if let Some(index) = known
            .into_iter()
            .position(|probe| matches!(probe.state, Installation::Installed { .. } | Installation::NotExamined))
        {
            // The other probes are ended with the set.
            return Ok((index, probes.answers.into_iter().map_while(|answer| answer).collect()));
        }
        if !probes.next(&mut told).await {
            return Err(probes.answers.into_iter().flatten().collect());
        }
    }
}

struct Probes {
    tasks: JoinSet<(usize, Probe)>,
    names: Vec<String>,
    answers: Vec<Option<Probe>>,
    since: Instant,
}

impl Probes {
    fn start(agents: Vec<Question>, workspace: &Path, patience: Duration) -> Self {
        let answers = vec![None; agents.len()];
        let names = agents.iter().map(|question| question.definition.id.clone()).collect();
        let mut tasks = JoinSet::new();
        for (index, question) in agents.into_iter().enumerate() {
            let workspace = workspace.to_owned();
            tasks.spawn(async move { (index, probe(question, workspace, patience).await) });
        }
        Self { tasks, names, answers, since: Instant::now() }
    }

    /// Waits for one more answer; false when there are no more.
    async fn next(&mut self, told: &mut Option<impl FnOnce(&[&str])>) -> bool {
        loop {
            let answer = tokio::select! {
                answer = self.tasks.join_next() => answer,
                () = tokio::time::sleep_until(self.since + SILENCE), if told.is_some() => {
                    if let Some(told) = told.take() {
                        let waiting = self.names.iter().zip(&self.answers).filter(|(_, answer)| answer.is_none());
                        told(&waiting.map(|(name, _)| name.as_str()).collect::<Vec<_>>());
                    }
                    continue;
                }
            };
            match answer {
                Some(Ok((index, probe))) => self.answers[index] = Some(probe),
                Some(Err(_)) => {}
                None => {
                    for answer in self.answers.iter_mut().filter(|answer| answer.is_none()) {
                        *answer =
                            Some(Probe { path: None, state: Installation::Broken("the probe failed".to_owned()) });
                    }
                    return false;
                }
            }
            return true;
        }
    }
}

/// An agent that was asked for by name and cannot be found.
pub(crate) fn not_installed(agent: &Agent, asked: &str) -> UserError {
    let Definition { id, name, install, .. } = &agent.definition;
    let program = agent.program.to_string_lossy();
    let error =
        UserError::agent(format!("agent `{id}` ({name}) is not installed: `{program}` was not found (from {asked})"));
    let error = match &install.line {
        Some(line) => error.hint(format!("install it: `{line}`")),
        None => error,
    };
    match &install.link {
        Some(link) => error.hint(format!("documentation: {link}")),
        None => error,
    }
    .hint("`ralph agents` shows what is installed")
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
