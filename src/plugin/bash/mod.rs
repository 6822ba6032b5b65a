//! The bash bridge: one shell that a driver or an agent script lives in, and the hooks that are called in it.
//!
//! The file runs as it is; what crosses are values, never code. Every call has a time limit, keeps what the hook said
//! on standard error, and ends in a message that names hook and file. It must never wait without a bound.

pub(crate) mod assignments;
pub(crate) mod config;
mod frames;
pub(crate) mod jq;
pub(crate) mod jq_service;
pub(crate) mod ralphrc;
mod rewrite;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};

pub(crate) use frames::Answer;

use crate::error::UserError;
use crate::process::{
    self, Clocks, Ended, Environment, Exit, Invocation, Needs, Output, Place, Process, Stdin, StopStep, Stream,
    UnixSignal,
};
use frames::Said;

const SCRIPT: &str = include_str!("bridge.sh");

/// What the shell is called in a process list.
const NAME: &str = "ralph-bridge";

/// How long a hook may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long the shell may take to go when it is not needed any more.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// As much of a hook's complaints as a message needs.
const LONGEST_COMPLAINT: usize = 4000;

/// As much of a hook's log lines as is kept.
const LONGEST_LOG: usize = 64 * 1024;

/// An answer that is larger ends the shell.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// What a call of a hook gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) answer: Answer,
    /// What it said on standard error, and on standard output where that is for people.
    pub(crate) complaints: String,
    /// What it wrote to the log.
    pub(crate) log: Vec<String>,
}

impl Called {
    /// True when the hook returned 0.
    pub(crate) const fn succeeded(&self) -> bool {
        self.answer.status == 0
    }
}

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Which hook, and what became of it.
    pub(crate) what: String,
    /// What it said on standard error.
    pub(crate) complaints: String,
}

/// A shell with a driver or an agent script in it.
#[derive(Debug)]
pub(crate) struct Shell {
    process: Process,
    input: Option<pipe::Sender>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    mark: String,
    file: PathBuf,
    patience: Duration,
    ended: Option<Ended>,
}

impl Shell {
    /// Starts a shell for this file; nothing of the file has run yet. `helper` is the program that answers for `jq`.
    pub(crate) fn start(
        file: &Path,
        workspace: &Path,
        environment: Environment,
        helper: &Path,
    ) -> Result<Self, UserError> {
        let broken = |error: std::io::Error| UserError::failed(format!("cannot connect a shell: {error}"));
        let (reader, writer) = std::io::pipe().map_err(broken)?;
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).map_err(|error| broken(error.into()))?;
        let input = pipe::Sender::from_owned_fd(writer).map_err(broken)?;
        let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let mark = format!("ralph-mark-{chance:016x}");
        let invocation = Invocation {
            stdin: Stdin::From(Arc::new(OwnedFd::from(reader))),
            ..work("serve", &[OsString::from(&mark)], workspace, environment, helper)
        };
        let clocks = Clocks { startup: None, idle: None, total: None, ..Clocks::default() };
        let process = process::start(invocation, clocks).map_err(|error| {
            UserError::agent(format!("`{}` needs a shell: {error}", file.display()))
                .hint("install bash, and see that its directory is on PATH")
        })?;
        Ok(Self {
            process,
            input: Some(input),
            stdout: Vec::new(),
            stderr: Vec::new(),
            mark,
            file: file.to_owned(),
            patience: PATIENCE,
            ended: None,
        })
    }

    /// The same, with another time limit for hooks.
    #[must_use]
    pub(crate) const fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The file that lives here.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Sets a variable that is not handed on to commands.
    pub(crate) async fn set(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        self.own("set", &[name.as_bytes(), value.as_bytes()]).await.map(|_| ())
    }

    /// Sets a variable that commands see too.
    pub(crate) async fn export(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        self.own("export", &[name.as_bytes(), value.as_bytes()]).await.map(|_| ())
    }

    /// Sources the file: the functions that there are then.
    pub(crate) async fn load(&mut self) -> Result<Vec<String>, UserError> {
        let file = self.file.clone();
        // Without a slash, `source` would search PATH.
        let path = if file.is_absolute() { file.clone() } else { Path::new(".").join(&file) };
        let path = path.as_os_str().as_encoded_bytes();
        let called = self.request("load", &[path]).await.map_err(|failed| failed.error(&file))?;
        if !called.succeeded() {
            let what = format!("sourcing it gave exit status {}", called.answer.status);
            return Err(Failed { what, complaints: called.complaints }.error(&file));
        }
        let ours = |name: &&str| !name.starts_with("__ralph") && !["jq", "log"].contains(name);
        Ok(called.answer.text().lines().filter(ours).map(str::to_owned).collect())
    }

    /// Calls a hook in the shell itself: what it sets stays. What it prints is for people.
    pub(crate) async fn call(&mut self, hook: &str, args: &[&[u8]]) -> Result<Called, Failed> {
        self.hook("call", hook, args).await
    }

    /// Asks a hook: what it prints is the answer, what it sets is lost.
    pub(crate) async fn ask(&mut self, hook: &str, args: &[&[u8]]) -> Result<Called, Failed> {
        self.hook("ask", hook, args).await
    }

    async fn hook(&mut self, verb: &str, hook: &str, args: &[&[u8]]) -> Result<Called, Failed> {
        let args: Vec<&[u8]> = std::iter::once(hook.as_bytes()).chain(args.iter().copied()).collect();
        self.request(verb, &args)
            .await
            .map_err(|failed| Failed { what: format!("`{hook}` {}", failed.what), complaints: failed.complaints })
    }

    /// The elements of an array.
    pub(crate) async fn array(&mut self, name: &str) -> Result<Vec<Vec<u8>>, UserError> {
        Ok(self.own("array", &[name.as_bytes()]).await?.fields)
    }

    /// Makes an array a copy of another.
    pub(crate) async fn copy_array(&mut self, from: &str, to: &str) -> Result<(), UserError> {
        self.own("copy", &[from.as_bytes(), to.as_bytes()]).await.map(|_| ())
    }

    /// A variable, if it is set.
    pub(crate) async fn value(&mut self, name: &str) -> Result<Option<String>, UserError> {
        let answer = self.own("value", &[name.as_bytes()]).await?;
        Ok((answer.status == 0).then(|| answer.text()))
    }

    /// What commands would see in their environment.
    pub(crate) async fn environment(&mut self) -> Result<Vec<(OsString, OsString)>, UserError> {
        use std::os::unix::ffi::OsStringExt as _;
        let fields = self.own("environment", &[]).await?.fields;
        let mut fields = fields.into_iter().map(OsString::from_vec);
        let pairs = std::iter::from_fn(|| Some((fields.next()?, fields.next()?)));
        Ok(pairs.collect())
    }

    /// Lets `jq` be answered without a process for each line.
    pub(crate) async fn serve_jq(&mut self) -> Result<(), UserError> {
        let functions = self.own("functions", &[]).await?.text();
        let rewritten = rewrite::cheaper(&functions);
        self.own("define", &[rewritten.as_bytes()]).await.map(|_| ())
    }

    /// Variables, options and functions, for a shell that begins where this one is.
    pub(crate) async fn state(&mut self) -> Result<Vec<u8>, UserError> {
        let mut answer = self.own("state", &[]).await?;
        Ok(if answer.fields.is_empty() { Vec::new() } else { answer.fields.swap_remove(0) })
    }

    /// Something that can only fail together with the shell.
    async fn own(&mut self, verb: &str, args: &[&[u8]]) -> Result<Answer, UserError> {
        match self.request(verb, args).await {
            Ok(called) => Ok(called.answer),
            Err(failed) => Err(failed.error(&self.file)),
        }
    }

    /// Asks the shell and waits for its answer.
    async fn request(&mut self, verb: &str, args: &[&[u8]]) -> Result<Called, Failed> {
        let frame = frames::request(verb, args);
        let deadline = Instant::now() + self.patience;
        let mut written = 0;
        let (mut log, mut logged) = (Vec::new(), 0);
        let mut answer = None;
        loop {
            while let Some(said) = frames::take(&mut self.stdout) {
                match said {
                    Said::Log(line) => {
                        logged += line.len();
                        if logged <= LONGEST_LOG {
                            log.push(line);
                        }
                    }
                    Said::Answer(said) => answer = Some(said),
                }
            }
            if answer.is_some()
                && let Some(complaints) = frames::take_complaints(&mut self.stderr, &self.mark)
            {
                let answer = answer.unwrap_or_default();
                return Ok(Called { answer, complaints: String::from_utf8_lossy(&complaints).into_owned(), log });
            }
            if let Some(ended) = &self.ended {
                let how = match ended.exit {
                    Exit::Code(code) => format!("ended its shell with exit status {code}"),
                    Exit::Signal(number) => format!("ended its shell by Unix signal {number}"),
                };
                return Err(self.failed(how));
            }
            if self.stdout.len() > LARGEST_ANSWER {
                self.end().await;
                return Err(self.failed(format!("gave more than {} MiB and was stopped", LARGEST_ANSWER / 1024 / 1024)));
            }
            let Self { process, input, stdout, stderr, mark, .. } = self;
            tokio::select! {
                output = process.next() => match output {
                    Output::Bytes { from: Stream::Stdout, bytes } => stdout.extend_from_slice(bytes),
                    Output::Bytes { bytes, .. } => frames::add_complaints(stderr, bytes, mark),
                    Output::Ended(ended) => self.ended = Some(ended),
                },
                count = write(input.as_ref(), &frame[written..]), if written < frame.len() => match count {
                    Ok(count) => written += count,
                    // It is going; its end says how.
                    Err(_) => written = frame.len(),
                },
                () = sleep_until(deadline) => {
                    self.end().await;
                    let seconds = self.patience.as_secs();
                    return Err(self.failed(format!("took longer than {seconds} s and was stopped")));
                }
            }
        }
    }

    /// Ends the shell at once.
    async fn end(&mut self) {
        self.process.kill();
        while !matches!(self.process.next().await, Output::Ended(_)) {}
    }

    fn failed(&mut self, what: String) -> Failed {
        let complaints = std::mem::take(&mut self.stderr);
        Failed { what, complaints: String::from_utf8_lossy(&complaints).into_owned() }
    }

    /// Lets the shell go by itself, so that a trap of the file can clean up.
    pub(crate) async fn close(mut self) {
        self.input = None;
        let deadline = Instant::now() + LAST_WORDS;
        while self.ended.is_none() {
            tokio::select! {
                output = self.process.next() => if let Output::Ended(ended) = output {
                    self.ended = Some(ended);
                },
                () = sleep_until(deadline) => return,
            }
        }
    }
}

impl Failed {
    /// The message, with the file and what the hook said.
    pub(crate) fn error(&self, file: &Path) -> UserError {
        let said = self.complaints.replace('\0', "");
        let said = said.trim();
        let said = &said[..said.floor_char_boundary(LONGEST_COMPLAINT)];
        let said = if said.is_empty() { "no output on stderr" } else { said };
        UserError::agent(format!("`{}`: {}: {said}", file.display(), self.what))
    }
}

/// A shell that does one piece of work: `invoke`, `display` or `extract`. It reads a state before anything else.
/// `helper` is the program that answers for `jq`: this one. It is never guessed, because another binary of this library
/// that were started so would do something else.
pub(crate) fn work(mode: &str, args: &[OsString], workspace: &Path, env: Environment, helper: &Path) -> Invocation {
    let fixed = ["--noprofile", "--norc", "-c", SCRIPT, NAME, mode].map(OsString::from);
    Invocation {
        args: fixed.into_iter().chain([helper.into()]).chain(args.iter().cloned()).collect(),
        env,
        stop: vec![StopStep { signal: UnixSignal::Term, grace: Duration::from_millis(500) }],
        place: Place::Inside(Needs { of_agent: true, ..Needs::default() }),
        ..Invocation::new("bash", workspace)
    }
}

/// A state as the shells of [`work`] read it.
pub(crate) fn framed_state(state: &[u8]) -> Vec<u8> {
    [state, b"\0"].concat()
}

/// Writes some of the bytes.
async fn write(input: Option<&pipe::Sender>, bytes: &[u8]) -> std::io::Result<usize> {
    let Some(input) = input else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
    loop {
        input.writable().await?;
        match input.try_write(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            written => return written,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
