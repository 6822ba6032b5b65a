//! An agent script: a bash file of `agent_*` functions that run the agent and read its output themselves.
//!
//! The hooks share one shell for the run. The agent, the display and the extractor run in shells of their own, which
//! begin with the state of that one, so that each can be stopped by itself. Nothing here decides what an answer means.

pub(super) mod in_run;
pub(super) mod plan_slices;
mod prompt_variables;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bash::{Shell, framed_state, work};
use super::driver::difference;
use super::files;
use crate::agent::{Contract, PluginFile};
use crate::error::UserError;
use crate::process::{self, Captured, Environment, Invocation, PrivateFile, Stdin, StopStep, UnixSignal};
use crate::run::prompt::Source;

/// How long the extractor may take. A slow one is slow for every line.
const EXTRACTION: Duration = Duration::from_secs(600);

/// As much as a response may say.
const LONGEST_RESPONSE: usize = 64 * 1024 * 1024;

/// The name of the agent's latest raw output, which hooks look for in the directory of their loop.
const LAST_OUTPUT: &str = "last_agent_output";

/// The plan of the loop that scripts were written for, in its directory.
pub(super) const PLAN: &str = "implementation_plan.md";

/// A loaded script.
#[derive(Debug)]
pub struct Script {
    plugin: PluginFile,
    workspace: PathBuf,
    environment: Environment,
    shell: Option<Shell>,
    functions: Vec<String>,
    /// What `AGENT_CLI` says.
    pub cli: String,
}

/// A shell that begins where the hooks are.
#[derive(Debug)]
pub struct Beginning {
    /// What to run.
    pub invocation: Invocation,
    /// What it reads before anything else.
    pub state: Vec<u8>,
}

/// What the extractor gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// The agent's own words.
    pub text: String,
    /// What went wrong with it.
    pub trouble: Option<String>,
}

impl Script {
    /// Sources the file and sees whether all is there, before anything is called.
    pub async fn load(file: &PluginFile, workspace: &Path, environment: Environment) -> Result<Self, UserError> {
        let mut script = Self {
            plugin: file.clone(),
            workspace: workspace.to_owned(),
            environment,
            shell: None,
            functions: Vec::new(),
            cli: String::new(),
        };
        script.open().await?;
        Ok(script)
    }

    async fn open(&mut self) -> Result<(), UserError> {
        let path = self.plugin.path.clone();
        let mut shell = Shell::start(&path, &self.workspace, self.environment.clone(), &self.plugin.helper)?;
        for (name, value) in &self.plugin.exports {
            shell.export(name, value).await?;
        }
        for (name, value) in &self.plugin.globals {
            shell.set(name, value).await?;
        }
        self.functions = shell.load().await?;
        let missing = Contract::Script.missing(&self.functions);
        if !missing.is_empty() {
            return Err(files::lacking(Contract::Script, &path, &missing));
        }
        let file = path.display();
        let Some(cli) = shell.value("AGENT_CLI").await?.filter(|cli| !cli.is_empty()) else {
            return Err(UserError::agent(format!("script `{file}` does not set `AGENT_CLI`"))
                .hint("it must name the agent's command, as in `AGENT_CLI=\"amp\"`"));
        };
        let found = shell.ask("command", &[b"-v", cli.as_bytes()]).await.map_err(|failed| failed.error(&path))?;
        if !found.succeeded() {
            return Err(UserError::agent(format!("the command of script `{file}` was not found: `{cli}`"))
                .hint("install it, or see that its directory is on PATH"));
        }
        shell.serve_jq().await?;
        self.cli = cli;
        self.shell = Some(shell);
        Ok(())
    }

    fn has(&self, hook: &str) -> bool {
        self.functions.iter().any(|known| known == hook)
    }

    /// Sets variables that the agent sees too.
    pub(crate) async fn export(&mut self, variables: &[(OsString, OsString)]) -> Result<(), UserError> {
        let shell = self.shell().await?;
        for (name, value) in variables {
            shell.export(&name.to_string_lossy(), &value.to_string_lossy()).await?;
        }
        Ok(())
    }

    /// The shell of the hooks; a new one when the last one was ended by a hook.
    async fn shell(&mut self) -> Result<&mut Shell, UserError> {
        if self.shell.is_none() {
            self.open().await?;
        }
        self.shell.as_mut().ok_or_else(|| UserError::failed("the shell of the script is gone"))
    }

    /// Calls `agent_pre_iteration` or `agent_post_iteration`, where there is one: what it says. It never fails the
    /// iteration.
    pub(crate) async fn hook(&mut self, hook: &str) -> Result<Vec<String>, UserError> {
        if !self.has(hook) {
            return Ok(Vec::new());
        }
        let path = self.plugin.path.clone();
        match self.shell().await?.call(hook, &[]).await {
            Ok(called) => {
                let said = called.complaints.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned);
                Ok(called.log.into_iter().chain(said).collect())
            }
            Err(failed) => {
                self.shell = None;
                let message = failed.error(&path).message;
                Ok(vec![format!("{message}; what the hooks remembered is lost")])
            }
        }
    }

    /// The agent's process for one iteration.
    pub(crate) async fn invocation(&mut self, prompt: &str) -> Result<Invocation, UserError> {
        let directory = std::env::temp_dir();
        let file = PrivateFile::new(&directory, prompt.as_bytes()).map_err(|error| {
            UserError::failed(format!("cannot write the prompt to `{}`: {error}", directory.display()))
        })?;
        let Beginning { invocation, state } = self.beginning("invoke", &[file.path().into()]).await?;
        let stop = vec![
            StopStep { signal: UnixSignal::Int, grace: Duration::from_secs(3) },
            StopStep { signal: UnixSignal::Term, grace: Duration::from_secs(5) },
        ];
        Ok(Invocation { stdin: Stdin::Bytes(state.into()), stop, files: vec![file], ..invocation })
    }

    /// The display filter: raw lines in, after its state; text out.
    pub async fn display(&mut self) -> Result<Beginning, UserError> {
        self.beginning("display", &[]).await
    }

    async fn beginning(&mut self, mode: &str, args: &[OsString]) -> Result<Beginning, UserError> {
        let (workspace, helper) = (self.workspace.clone(), self.plugin.helper.clone());
        let shell = self.shell().await?;
        let state = framed_state(&shell.state().await?);
        let environment = difference(shell.environment().await?);
        Ok(Beginning { invocation: work(mode, args, &workspace, environment, &helper), state })
    }

    /// The agent's own words in its raw output.
    pub(crate) async fn extract(&mut self, output: &Path) -> Result<Response, UserError> {
        let Beginning { invocation, state } = self.beginning("extract", &[output.into()]).await?;
        let invocation = Invocation { stdin: Stdin::Bytes(state.into()), ..invocation };
        let file = self.plugin.path.display();
        let captured = process::capture(invocation, EXTRACTION, LONGEST_RESPONSE)
            .await
            .map_err(|error| UserError::agent(format!("`{file}`: `agent_extract_response`: {error}")))?;
        let Captured { exit, stdout, stderr, cut } = captured;
        let said = String::from_utf8_lossy(&stderr);
        let said = said.trim().lines().last().map_or_else(String::new, |line| format!(": {line}"));
        let text = String::from_utf8_lossy(&stdout).trim_end_matches('\n').to_owned();
        let trouble = match exit {
            None => Some(format!("`agent_extract_response` took longer than {} s", EXTRACTION.as_secs())),
            Some(_) if cut => Some("`agent_extract_response` gave more than can be kept".to_owned()),
            Some(_) if text.trim().is_empty() => Some(format!("`agent_extract_response` found no response{said}")),
            Some(_) => None,
        };
        Ok(Response { text, trouble })
    }

    /// Lets hooks find the raw output of the iteration where they look for it.
    pub(crate) fn remember_output(&self, output: &Path) -> std::io::Result<()> {
        let place = self.workspace.join(self.plugin.home()).join(LAST_OUTPUT);
        match std::fs::remove_file(&place) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let output = if output.is_absolute() { output.to_owned() } else { self.workspace.join(output) };
        std::os::unix::fs::symlink(output, place)
    }

    pub(crate) async fn close(self) {
        if let Some(shell) = self.shell {
            shell.close().await;
        }
    }
}

/// A prompt with the variables that the loop of the script fills in, as they are now.
pub(super) fn filled(file: &PluginFile, prompt: &Source, words: &str, workspace: &Path) -> String {
    let home = workspace.join(file.home());
    let mode = prompt_variables::mode(prompt, &home);
    fill(words, &prompt_variables::all(&exports(file), mode, &home, workspace))
}

/// What a prompt may use beside the plan: what `config` sets, and what the loop exports.
fn exports(file: &PluginFile) -> Vec<(String, String)> {
    file.globals.iter().chain(&file.exports).cloned().collect()
}

/// The variables of a prompt, filled in: `$NAME` and `${NAME}` of the given names, and nothing else.
pub(crate) fn fill(prompt: &str, variables: &[(String, String)]) -> String {
    let mut out = String::with_capacity(prompt.len());
    let mut rest = prompt;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (braced, inner) = match rest.strip_prefix('{') {
            Some(inner) => (true, inner),
            None => (false, rest),
        };
        let end = inner.find(|letter| !is_part(letter)).unwrap_or(inner.len());
        let closed = !braced || inner[end..].starts_with('}');
        match variables.iter().find(|(name, _)| *name == inner[..end] && closed) {
            Some((_, value)) => {
                out.push_str(value);
                rest = &inner[end + usize::from(braced)..];
            }
            None => out.push('$'),
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_closed_list_of_variables_is_filled_in() {
        let variables = [("MODE".to_owned(), "build".to_owned()), ("EMPTY".to_owned(), String::new())];
        for (prompt, expected) in [
            ("Mode ${MODE} $MODE.", "Mode build build."),
            ("$MODES ${MODES} $HOME ${HOME} $5 $", "$MODES ${MODES} $HOME ${HOME} $5 $"),
            ("[${EMPTY}][$EMPTY]", "[][]"),
            ("${MODE", "${MODE"),
            ("$$MODE ${ MODE}", "$build ${ MODE}"),
            ("ä$MODEö", "äbuildö"),
        ] {
            assert_eq!(fill(prompt, &variables), expected, "{prompt}");
        }
    }
}
