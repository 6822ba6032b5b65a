//! Tests of the whole program that read like sentences:
//! `Test::new().agent(says("done")).run().complete()`.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::must_use_candidate, missing_docs)]

mod pty;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fake_agent::{Iteration, Recorded, Script};
use serde_json::Value;

/// No test may take longer than this; a test that does has found a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an agent does in a test: one iteration that repeats, or a whole script.
pub trait Behaviour {
    fn script(self) -> Script;
}

impl Behaviour for Iteration {
    fn script(self) -> Script {
        Script::new().iteration(self)
    }
}

impl Behaviour for Script {
    fn script(self) -> Script {
        self
    }
}

/// A run of ralph in a directory of its own.
pub struct Test {
    directory: tempfile::TempDir,
    agent: Option<Script>,
    args: Vec<String>,
    prompt: Option<String>,
    stdin: Option<Vec<u8>>,
    env: Vec<(String, String)>,
    command: &'static str,
}

impl Test {
    pub fn new() -> Self {
        fake_terminal::hear_signals();
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        std::fs::create_dir(directory.path().join("agent")).unwrap();
        let prompt = Some("Do the work.".to_owned());
        Self { directory, agent: None, args: Vec::new(), prompt, stdin: None, env: Vec::new(), command: "run" }
    }

    /// The agent plays this.
    pub fn agent(mut self, behaviour: impl Behaviour) -> Self {
        self.agent = Some(behaviour.script());
        self
    }

    /// The agent is this command.
    pub fn command(self, command: &str) -> Self {
        self.args(&["--agent-cmd", command])
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    /// Another command than `ralph run`, with the same arguments.
    pub fn mode(mut self, command: &'static str) -> Self {
        self.command = command;
        self
    }

    /// A git repository with one commit of everything that is there.
    pub fn repository(self) -> Self {
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "--allow-empty", "-m", "Begin"]] {
            git(&self.workspace(), args);
        }
        self
    }

    /// Another agent under a name of its own, as a file in `.ralph/agents`.
    pub fn named_agent(self, name: &str, behaviour: impl Behaviour, more: &str) -> Self {
        let directory = self.directory.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let command = behaviour.script().command(&directory).unwrap();
        let program = self.workspace().join(format!(".bin-{name}"));
        std::fs::write(&program, format!("#!/bin/sh\nexec {command} \"$@\"\n")).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let file = format!("id: {name}\nname: {name}\ncommands: [{}]\n{more}", program.display());
        self.file(&format!(".ralph/agents/{name}.yml"), file)
    }

    /// What a named agent was given.
    pub fn recorded_by(&self, name: &str) -> Vec<Recorded> {
        Script::recorded(&self.directory.path().join(name))
    }

    /// The words of the prompt; the default is `Do the work.`
    pub fn prompt(mut self, words: &str) -> Self {
        self.prompt = Some(words.to_owned());
        self
    }

    pub fn no_prompt(mut self) -> Self {
        self.prompt = None;
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file into the working directory.
    pub fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The command, ready to start.
    pub fn ralph(&self) -> Command {
        let mut command = self.tool();
        command.arg(self.command).args(&self.prompt).args(&self.args);
        if let Some(script) = &self.agent {
            command.args(["--agent-cmd", &script.command(&self.directory.path().join("agent")).unwrap()]);
        }
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// ralph in the working directory, with no arguments yet.
    pub fn tool(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("RALPH") || text.starts_with("LC_") || ["NO_COLOR", "COLUMNS", "LANG"].contains(&&*text)
            {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.workspace()).env("RALPH_STATE_DIR", self.state()).env_remove("XDG_RUNTIME_DIR");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Where its runs are kept.
    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Runs `ralph agents` with these arguments in the working directory.
    pub fn ralph_agents(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command.current_dir(self.workspace()).arg("agents").args(args).stdin(Stdio::null());
        command.env("RALPH_STATE_DIR", self.state());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.output().unwrap()
    }

    /// Starts it and goes on.
    pub fn start(self) -> Running {
        let mut child = self.ralph().spawn().unwrap();
        if let Some(bytes) = &self.stdin {
            // A ralph that stops early does not read it all.
            let _ = child.stdin.take().unwrap().write_all(bytes);
        }
        Running { test: self, child }
    }

    /// Starts it as `nohup` does: it inherits that these Unix signals are ignored.
    pub fn start_ignoring(self, signals: &str) -> Running {
        let ralph = self.ralph();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("trap '' {signals}; exec \"$@\"")).arg("sh");
        shell.arg(ralph.get_program()).args(ralph.get_args()).current_dir(self.workspace());
        for (name, value) in ralph.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let child = shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { test: self, child }
    }

    /// Runs it to its end.
    pub fn run(self) -> Ran {
        self.start().wait()
    }
}

/// A run under way.
pub struct Running {
    pub test: Test,
    child: Child,
}

impl Running {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn workspace(&self) -> PathBuf {
        self.test.workspace()
    }

    /// Sends a Unix signal to ralph alone.
    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Waits until something is so.
    pub fn until(&self, what: &str, mut so: impl FnMut(&Self) -> bool) {
        let start = Instant::now();
        while !so(self) {
            assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs another ralph in the same place, to its end.
    #[track_caller]
    pub fn tells(&self, args: &[&str]) -> String {
        let output = self.test.tool().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The journal as it is now.
    pub fn journal(&self) -> String {
        journal_of(&self.workspace())
    }

    /// What the agent was given so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        Script::recorded(&self.test.directory.path().join("agent"))
    }

    pub fn wait(mut self) -> Ran {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let pid = self.pid();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                if receiver
                    .recv_timeout(PATIENCE)
                    .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    let _ = rustix::process::kill_process(
                        rustix::process::Pid::from_raw(pid).unwrap(),
                        rustix::process::Signal::KILL,
                    );
                }
            });
            drop(self.child.stdin.take());
            let output = self.child.wait_with_output().unwrap();
            drop(sender);
            output
        });
        Ran { test: self.test, output }
    }
}

/// A run that is over.
pub struct Ran {
    pub test: Test,
    pub output: Output,
}

impl Ran {
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.output.status.code(), Some(code), "{}", self.shown());
        self
    }

    #[track_caller]
    pub fn dies_by(self, signal: i32) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(self.output.status.signal(), Some(signal), "{}", self.shown());
        self
    }

    #[track_caller]
    pub fn complete(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    pub fn shows(self, text: &str) -> Self {
        assert!(self.stdout().contains(text), "expected to see {text:?}\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn does_not_show(self, text: &str) -> Self {
        assert!(!self.stdout().contains(text), "expected not to see {text:?}\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn complains(self, text: &str) -> Self {
        assert!(self.stderr().contains(text), "expected {text:?} on stderr\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn after_iterations(self, count: usize) -> Self {
        let ended = self.records().iter().filter(|record| record["meta"]["kind"] == "iteration_end").count();
        assert_eq!(ended, count, "{}", self.shown());
        self
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// What each start of the agent was given.
    pub fn recorded(&self) -> Vec<Recorded> {
        Script::recorded(&self.test.directory.path().join("agent"))
    }

    /// The prompt that the n-th start of the agent read, from 0.
    pub fn heard(&self, start: usize) -> String {
        self.recorded()[start].stdin.clone().unwrap()
    }

    /// All records of the journal.
    pub fn records(&self) -> Vec<Value> {
        journal_of(&self.test.workspace()).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The records of ralph itself of one kind.
    pub fn facts(&self, kind: &str) -> Vec<Value> {
        let records = self.records().into_iter();
        records
            .filter(|record| record["by"] == "ralph" && record["meta"]["kind"] == kind)
            .map(|mut record| record["meta"].take())
            .collect()
    }

    /// The raw bytes of an iteration.
    pub fn raw(&self, name: &str) -> Vec<u8> {
        let path = run_directory(&self.test.workspace()).unwrap().join("raw").join(name);
        let path = if path.exists() { path } else { path.with_file_name(format!("{name}.zst")) };
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut ralph::journal::raw::open(&path).unwrap(), &mut bytes).unwrap();
        bytes
    }

    fn shown(&self) -> String {
        format!("status: {:?}\nstdout:\n{}\nstderr:\n{}", self.output.status, self.stdout(), self.stderr())
    }
}

/// Git, as nobody in particular.
#[track_caller]
pub fn git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]).args(args).current_dir(directory);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The records of a working directory, in the state directory beside it.
pub fn store(workspace: &Path) -> ralph::journal::Store {
    ralph::journal::State::at(workspace.parent().unwrap().join("state")).store(workspace)
}

/// The newest run of a working directory.
pub fn run_directory(workspace: &Path) -> Option<PathBuf> {
    let runs = std::fs::read_dir(store(workspace).path().join("runs")).ok()?;
    runs.map(|entry| entry.unwrap().path()).max()
}

fn journal_of(workspace: &Path) -> String {
    run_directory(workspace).and_then(|run| std::fs::read_to_string(run.join("journal.jsonl")).ok()).unwrap_or_default()
}
