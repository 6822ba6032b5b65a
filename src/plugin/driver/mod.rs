//! A driver: a bash file of `driver_*` hooks that say how a platform's command line is built.
//!
//! The hooks run in one shell of the bridge; ralph starts the command itself. It must never evaluate what a hook gives
//! back: an array is an argument vector, a filter is a program of jq.

mod answer;
pub(crate) mod context;
pub(super) mod in_run;
pub(crate) mod session_id;
mod status_file;
pub(crate) mod tools;

use std::ffi::OsString;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::Duration;

use super::attempt::Attempt;
use super::bash::{Called, Failed, Shell};
use super::files;
use crate::agent::{Contract, Live, PluginFile};
use crate::error::UserError;
use crate::process::{ARGUMENT_LIMIT, Environment, Invocation, StopStep, UnixSignal};
use crate::run::plugins::Output;

/// What a filter shows when a driver has none.
const NO_FILTER: &str = "empty";

/// Variables of the shell itself, which say nothing about what the driver wants for its command.
const OF_THE_SHELL: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];

#[derive(Debug)]
pub(crate) struct Driver {
    shell: Shell,
    functions: Vec<String>,
    live: Live,
    /// What it says of itself.
    pub(crate) facts: Facts,
}

/// What a driver says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: String,
    /// `driver_display_name`.
    pub(crate) display_name: String,
    pub(crate) binary: String,
    /// What `driver_valid_tools` sets.
    pub(crate) tools: Vec<String>,
    /// `driver_supports_tool_allowlist`; not when it is absent.
    pub(crate) allowlist: bool,
    /// `driver_supports_sessions`; so when it is absent.
    pub(crate) sessions: bool,
    /// `driver_supports_live_output`; so when it is absent.
    pub(crate) live: bool,
}

/// What it means that a hook is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    Yes,
    No,
}

/// The command of one iteration.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) invocation: Invocation,
    /// What to tell: a live command that could not be made.
    pub(crate) notices: Vec<String>,
}

impl Driver {
    /// Sources the file and asks what the loop asks at its start.
    pub(crate) async fn load(file: &PluginFile, workspace: &Path, environment: Environment) -> Result<Self, UserError> {
        let mut shell = Shell::start(&file.path, workspace, environment, &file.helper)?;
        for (name, value) in &file.globals {
            shell.set(name, value).await?;
        }
        let functions = shell.load().await?;
        let missing = Contract::Driver.missing(&functions);
        if !missing.is_empty() {
            return Err(files::lacking(Contract::Driver, &file.path, &missing));
        }
        let mut driver = Self { shell, functions, live: file.live, facts: Facts::default() };
        driver.call("driver_valid_tools", &[]).await?;
        let tools = driver.shell.array("VALID_TOOL_PATTERNS").await?;
        driver.facts.tools = tools.iter().map(|tool| String::from_utf8_lossy(tool).into_owned()).collect();
        driver.facts.binary = driver.ask("driver_cli_binary").await?;
        driver.shell.set("CLAUDE_CODE_CMD", &driver.facts.binary).await?;
        driver.facts.display_name = driver.ask("driver_display_name").await?;
        driver.shell.set("DRIVER_DISPLAY_NAME", &driver.facts.display_name).await?;
        driver.facts.name = driver.ask("driver_name").await?;
        driver.facts.allowlist = driver.is("driver_supports_tool_allowlist", Absent::No).await?;
        driver.facts.sessions = driver.is("driver_supports_sessions", Absent::Yes).await?;
        driver.facts.live = driver.is("driver_supports_live_output", Absent::Yes).await?;
        Ok(driver)
    }

    /// True when the file defines it.
    pub(crate) fn has(&self, hook: &str) -> bool {
        self.functions.iter().any(|known| known == hook)
    }

    /// Sets a variable that its hooks read.
    pub(crate) async fn set(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        self.shell.set(name, value).await
    }

    /// Sets a variable that its command sees too.
    pub(crate) async fn export(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        self.shell.export(name, value).await
    }

    /// Builds the command line of one iteration.
    pub(crate) async fn build(
        &mut self,
        prompt_file: &Path,
        context: &str,
        session: &str,
        workspace: &Path,
    ) -> Result<Built, UserError> {
        let args = [prompt_file.as_os_str().as_bytes(), context.as_bytes(), session.as_bytes()];
        self.call("driver_build_command", &args).await?;
        let mut notices = Vec::new();
        let mut array = "CLAUDE_CMD_ARGS";
        if self.live == Live::Wanted && self.facts.live {
            self.shell.copy_array("CLAUDE_CMD_ARGS", "LIVE_CMD_ARGS").await?;
            array = "LIVE_CMD_ARGS";
            if self.has("driver_prepare_live_command") {
                let hook = "driver_prepare_live_command";
                let prepared = self.shell.call(hook, &[]).await.map_err(|failed| failed.error(self.shell.file()))?;
                if !prepared.succeeded() {
                    array = "CLAUDE_CMD_ARGS";
                    let message = refused(hook, &prepared).error(self.shell.file()).message;
                    notices.push(format!("{message}; continuing without live output"));
                }
            }
        }
        let argv = self.shell.array(array).await?;
        let Some((program, args)) = argv.split_first().filter(|(program, _)| !program.is_empty()) else {
            let file = self.shell.file().display();
            return Err(UserError::agent(format!("`{file}`: `driver_build_command` left `{array}` empty"))
                .hint("it must hold the command and all its arguments"));
        };
        if let Some(longest) = args.iter().map(Vec::len).max().filter(|&longest| longest > ARGUMENT_LIMIT) {
            return Err(self.too_long(longest));
        }
        let environment = self.shell.environment().await?;
        let word = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let invocation = Invocation {
            args: args.iter().map(word).collect(),
            env: difference(environment),
            stop: vec![
                StopStep { signal: UnixSignal::Int, grace: Duration::from_secs(3) },
                StopStep { signal: UnixSignal::Term, grace: Duration::from_secs(5) },
            ],
            ..Invocation::new(word(program), workspace)
        };
        Ok(Built { invocation, notices })
    }

    fn too_long(&self, longest: usize) -> UserError {
        UserError::usage(format!(
            "driver `{}` puts {longest} bytes into one argument of `{}`, and the system takes at most {ARGUMENT_LIMIT}",
            self.shell.file().display(),
            self.facts.binary
        ))
        .hint("put most of the prompt in a file, and let the prompt say: read that file")
        .hint("or let the driver hand the path on, where the command takes a file: its first argument is the path")
    }

    /// The program of jq that turns a line of live output into what is shown; `None` when there is nothing to show.
    pub(crate) async fn filter(&mut self) -> Result<Option<String>, UserError> {
        if self.live == Live::Off || !self.facts.live || !self.has("driver_stream_filter") {
            return Ok(None);
        }
        let filter = self.ask("driver_stream_filter").await?;
        Ok(Some(filter).filter(|filter| !["", NO_FILTER].contains(&filter.trim())))
    }

    /// The session to continue: what the driver finds in the output, then the usual places, then what its platform
    /// says, then what ralph's own reading told. The first that is something wins.
    /// Only the output of this try counts.
    pub(crate) async fn session(&mut self, output: &Output, told: Option<&str>) -> Result<Option<String>, UserError> {
        if !self.facts.sessions {
            return Ok(None);
        }
        // What cannot be read holds no id.
        let Ok(attempt) = Attempt::of(output) else { return Ok(told.and_then(session_id::usable)) };
        let path = attempt.path().as_os_str().as_bytes().to_vec();
        let own = self.look_for("driver_extract_session_id_from_output", &path).await?;
        if own.is_some() {
            return Ok(own);
        }
        let opened = std::fs::File::open(&output.path);
        let opened = opened.and_then(|mut file| file.seek(SeekFrom::Start(output.start)).map(|_| file));
        if let Ok(Some(id)) = opened.and_then(session_id::extract) {
            return Ok(Some(id));
        }
        let asked = self.look_for("driver_fallback_session_id", &path).await?;
        Ok(asked.or_else(|| told.and_then(session_id::usable)))
    }

    /// A hook that may know nothing: its status does not matter.
    async fn look_for(&mut self, hook: &str, output: &[u8]) -> Result<Option<String>, UserError> {
        if !self.has(hook) {
            return Ok(None);
        }
        let called = self.shell.ask(hook, &[output]).await.map_err(|failed| failed.error(self.shell.file()))?;
        Ok(session_id::usable(&called.answer.text()))
    }

    /// What to do about a tool that was not permitted.
    pub(crate) async fn denial_help(&mut self) -> Result<String, UserError> {
        if self.has("driver_permission_denial_help") {
            return self.ask("driver_permission_denial_help").await;
        }
        let file = self.shell.value("RALPHRC_FILE").await?.unwrap_or_else(|| ".ralphrc".to_owned());
        let name = &self.facts.display_name;
        Ok(format!(
            "{name} was not permitted to use a tool.\nPermit it in the settings of {name}, or in `{file}`, \
             and start again."
        ))
    }

    /// `driver_min_version` and `driver_check_available`, for whoever looks at the machine.
    pub(crate) async fn metadata(&mut self) -> Result<(Option<String>, Option<bool>), UserError> {
        let mut metadata = (None, None);
        if self.has("driver_min_version") {
            metadata.0 = session_id::usable(&self.ask("driver_min_version").await?);
        }
        if self.has("driver_check_available") {
            metadata.1 = Some(self.is("driver_check_available", Absent::Yes).await?);
        }
        Ok(metadata)
    }

    pub(crate) async fn close(self) {
        self.shell.close().await;
    }

    /// A hook that must succeed; what it sets stays.
    async fn call(&mut self, hook: &str, args: &[&[u8]]) -> Result<(), UserError> {
        let called = self.shell.call(hook, args).await;
        self.succeeded(hook, called).map(|_| ())
    }

    /// A hook that must succeed and prints its answer.
    async fn ask(&mut self, hook: &str) -> Result<String, UserError> {
        let called = self.shell.ask(hook, &[]).await;
        self.succeeded(hook, called).map(|called| called.answer.text())
    }

    fn succeeded(&self, hook: &str, called: Result<Called, Failed>) -> Result<Called, UserError> {
        let file = self.shell.file();
        let called = called.map_err(|failed| failed.error(file))?;
        if called.succeeded() { Ok(called) } else { Err(refused(hook, &called).error(file)) }
    }

    /// A hook whose status is the answer.
    async fn is(&mut self, hook: &str, absent: Absent) -> Result<bool, UserError> {
        if !self.has(hook) {
            return Ok(absent == Absent::Yes);
        }
        let called = self.shell.ask(hook, &[]).await.map_err(|failed| failed.error(self.shell.file()))?;
        Ok(called.succeeded())
    }
}

fn refused(hook: &str, called: &Called) -> Failed {
    Failed {
        what: format!("`{hook}` gave exit status {}", called.answer.status),
        complaints: called.complaints.clone(),
    }
}

/// What differs between the environment of the shell and ours.
pub(super) fn difference(theirs: Vec<(OsString, OsString)>) -> Environment {
    let ours =
        |name: &OsString| OF_THE_SHELL.iter().any(|known| name == known) || name.as_bytes().starts_with(b"BASH_FUNC_");
    let gone = std::env::vars_os()
        .filter(|(name, _)| !ours(name) && !theirs.iter().any(|(known, _)| known == name))
        .filter_map(|(name, _)| name.into_string().ok());
    let remove = gone.collect();
    let set = theirs.into_iter().filter(|(name, value)| !ours(name) && std::env::var_os(name).as_ref() != Some(value));
    Environment { set: set.collect(), remove }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
