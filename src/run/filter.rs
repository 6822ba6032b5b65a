//! A command that reads an agent's raw output: an external adapter that prints RTF1, or the display of a driver or an
//! agent script.
//!
//! It works beside the agent and never holds it up: it is fed from the raw file on disk, at its own pace, so that
//! memory stays flat. When it stops reading, it is given up, and the raw file still has every byte.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};

use super::explain::start_error;
use crate::error::{Kind, UserError};
use crate::event::{Event, FailureClass, Known, Stream};
use crate::process::{self, Clocks, Ended, Exit, Invocation, Output, Process, StartError, Stdin, StopReason};

/// How long the command may take to read more while there is more.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same once the agent has ended; and how long it may take to finish after it has been given everything.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How long it may take even when the time of the run is over.
const AT_LEAST: Duration = Duration::from_secs(2);

/// How much is given at once.
const CHUNK: usize = 64 * 1024;

pub(crate) struct Filter {
    name: String,
    role: Role,
    process: Process,
    input: Option<pipe::Sender>,
    /// The agent's raw output.
    raw: File,
    /// How much of it there is, and how much was given.
    available: u64,
    given: u64,
    /// The agent has ended: there will be no more.
    complete: bool,
    chunk: Vec<u8>,
    /// How much of the chunk is not the agent's output.
    added: usize,
    /// The agent's last line has no end, and the command needs one.
    unended: bool,
    deadline: Instant,
    /// When the time of the run ends.
    until: Option<Instant>,
    done: bool,
    partial: Partial,
}

/// Text that comes in pieces: a character that is cut in two waits for its rest.
#[derive(Default)]
struct Partial(Vec<u8>);

impl Partial {
    fn take(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.0) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.0.len(),
        };
        let rest = self.0.split_off(whole);
        String::from_utf8_lossy(&std::mem::replace(&mut self.0, rest)).into_owned()
    }
}

/// What the command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// What it prints is what the agent said: without it it is unknown.
    Adapter,
    /// What it prints is for people.
    Display,
}

/// A display: what to run, and what it reads before the agent's output.
#[derive(Debug)]
pub(crate) struct Display {
    pub invocation: Invocation,
    pub state: Vec<u8>,
}

/// What the command did.
#[derive(Debug)]
pub(crate) enum Did {
    Printed(Vec<u8>),
    /// A display has text for people.
    Shown(String),
    /// It says something to a person, or something is wrong with it.
    Event(Event),
    Took,
}

impl Filter {
    /// Sees whether the command can be started, without starting it.
    pub(crate) fn check(argv: &[String], workspace: &Path) -> Result<(), UserError> {
        let invocation = invocation(argv, workspace)?;
        process::check(&invocation).map(|_| ()).map_err(|error| of_the_command(&error))
    }

    /// Starts the command in the workspace; it will be given what is written to `raw`.
    pub(crate) fn start(argv: &[String], workspace: &Path, raw: &Path) -> Result<Self, UserError> {
        Self::connect(Role::Adapter, Display { invocation: invocation(argv, workspace)?, state: Vec::new() }, raw)
    }

    /// Starts a display; it will be given what is written to `raw`.
    pub(crate) fn display(display: Display, raw: &Path) -> Result<Self, UserError> {
        Self::connect(Role::Display, display, raw)
    }

    fn connect(role: Role, display: Display, raw: &Path) -> Result<Self, UserError> {
        let broken =
            |error: std::io::Error| UserError::failed(format!("cannot connect the transcript command: {error}"));
        let Display { invocation, state } = display;
        let raw = File::open(raw).map_err(broken)?;
        // An iteration that is tried again appends to the same file.
        let start = raw.metadata().map_err(broken)?.len();
        let (reader, writer) = std::io::pipe().map_err(broken)?;
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).map_err(|error| broken(error.into()))?;
        let input = pipe::Sender::from_owned_fd(writer).map_err(broken)?;
        let stdin = Stdin::From(Arc::new(OwnedFd::from(reader)));
        let invocation = Invocation { stdin, ..invocation };
        let name = invocation.program.to_string_lossy().into_owned();
        let clocks = Clocks { startup: None, idle: None, total: None, ..Clocks::default() };
        let process = process::start(invocation, clocks).map_err(|error| of_the_command(&error))?;
        Ok(Self {
            name,
            role,
            process,
            input: Some(input),
            raw,
            available: start,
            given: start,
            complete: false,
            added: state.len(),
            unended: false,
            chunk: state,
            deadline: Instant::now() + PATIENCE,
            until: None,
            done: false,
            partial: Partial::default(),
        })
    }

    /// There are more bytes in the raw file.
    pub(crate) fn more(&mut self, bytes: usize) {
        if self.given == self.available && !self.complete {
            self.deadline = Instant::now() + PATIENCE;
        }
        self.available += bytes as u64;
    }

    /// There are these last bytes in the raw file, and there will be no more. The time of the run ends at `until`, but what
    /// the agent said must be read.
    pub(crate) fn complete(&mut self, bytes: usize, until: Option<Instant>) {
        self.more(bytes);
        self.until = until.map(|until| until.max(Instant::now() + AT_LEAST));
        self.complete = true;
        self.deadline = Instant::now() + LAST_WORDS;
        let mut last = [b'\n'];
        // A shell does not read a last line without its end.
        if self.role == Role::Display
            && self.raw.read_at(&mut last, self.available.saturating_sub(1)).is_ok()
            && last != *b"\n"
        {
            self.unended = true;
        }
        self.close_when_given();
    }

    /// True when it has ended, or was given up.
    pub(crate) fn is_done(filter: Option<&Self>) -> bool {
        filter.is_none_or(|filter| filter.done)
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// The next thing it does; never, when there is no command or it is done. Cancel-safe.
    pub(crate) async fn next(filter: &mut Option<Self>) -> Did {
        match filter {
            Some(filter) if !filter.done => filter.work().await,
            _ => std::future::pending().await,
        }
    }

    async fn work(&mut self) -> Did {
        if self.chunk.is_empty() && self.given < self.available && self.input.is_some() {
            self.chunk.resize(CHUNK, 0);
            let count = self.raw.read_at(&mut self.chunk, self.given).unwrap_or(0);
            self.chunk.truncate(count);
            if count == 0 {
                // The end of its input is all that it can be given now.
                (self.input, self.complete) = (None, true);
                self.deadline = Instant::now() + LAST_WORDS;
                return self.trouble("cannot be given the rest of the output, which cannot be read");
            }
        } else if self.chunk.is_empty() && std::mem::take(&mut self.unended) {
            self.chunk.push(b'\n');
            self.added = 1;
        }
        let waiting = self.input.is_some() && !self.chunk.is_empty();
        // Without anything to read, only the end has a time.
        let bounded = waiting || (self.complete && self.input.is_none());
        let Self { process, input, chunk, deadline, until, .. } = self;
        let step = tokio::select! {
            output = process.next() => match output {
                Output::Bytes { from: Stream::Stdout, bytes } if self.role == Role::Display => {
                    return Did::Shown(self.partial.take(bytes));
                }
                Output::Bytes { from: Stream::Stdout, bytes } => return Did::Printed(bytes.to_vec()),
                Output::Bytes { bytes, .. } => {
                    let text = crate::transcript::strip_ansi(&String::from_utf8_lossy(bytes)).trim_end().to_owned();
                    let who = self.role.name();
                    return Did::Event(Known::Warning { message: format!("{who}: {text}") }.into());
                }
                Output::Ended(ended) => Step::Ended(ended),
            },
            written = write(input.as_ref(), chunk), if waiting => Step::Written(written),
            () = sleep_until(until.map_or(*deadline, |until| until.min(*deadline))), if bounded => Step::Late,
        };
        self.after(step)
    }

    fn after(&mut self, step: Step) -> Did {
        match step {
            Step::Written(Ok(count)) => {
                let added = count.min(self.added);
                self.added -= added;
                self.given += (count - added) as u64;
                self.chunk.drain(..count);
                // What is for people must not keep the run waiting.
                if !self.complete || self.role == Role::Adapter {
                    self.deadline = Instant::now() + if self.complete { LAST_WORDS } else { PATIENCE };
                }
                self.close_when_given();
                Did::Took
            }
            // It closed its input; its exit says whether that was right.
            Step::Written(Err(_)) => {
                self.input = None;
                self.deadline = Instant::now() + LAST_WORDS;
                Did::Took
            }
            Step::Late => {
                let what = if self.input.is_some() { "did not read on" } else { "did not end" };
                self.done = true;
                self.input = None;
                self.process.stop(StopReason::Idle);
                self.process.kill();
                self.trouble(&format!("{what}, and was stopped"))
            }
            Step::Ended(ended) => {
                self.done = true;
                let early = !self.complete || self.given < self.available;
                match ended.exit {
                    Exit::Code(0) if early => self.trouble("ended before the agent's output did"),
                    Exit::Code(0) => Did::Took,
                    Exit::Code(code) => self.trouble(&format!("ended with exit code {code}")),
                    Exit::Signal(number) => self.trouble(&format!("was killed by Unix signal {number}")),
                }
            }
        }
    }

    /// Closing its input is the end of file that it waits for.
    fn close_when_given(&mut self) {
        let all = self.given >= self.available && self.chunk.is_empty() && !self.unended;
        if self.complete && all && self.input.take().is_some() && self.role == Role::Adapter {
            self.deadline = Instant::now() + LAST_WORDS;
        }
    }

    fn trouble(&self, what: &str) -> Did {
        let message = format!("the {} `{}` {what}; the raw file has the agent's output", self.role.name(), self.name);
        if self.role == Role::Display {
            return Did::Event(Known::Warning { message }.into());
        }
        let class = FailureClass::Config;
        Did::Event(
            Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None }.into(),
        )
    }
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "transcript command",
            Self::Display => "display",
        }
    }
}

enum Step {
    Written(std::io::Result<usize>),
    Late,
    Ended(Ended),
}

fn invocation(argv: &[String], workspace: &Path) -> Result<Invocation, UserError> {
    let (program, args) = argv.split_first().ok_or_else(|| UserError::usage("the transcript command is empty"))?;
    Ok(Invocation { args: args.iter().map(Into::into).collect(), ..Invocation::new(program, workspace) })
}

/// The same message as for an agent, but a mistake of the configuration.
fn of_the_command(error: &StartError) -> UserError {
    let error = start_error(error);
    let message = error.message.replace("the agent's command", "the transcript command");
    UserError { kind: Kind::Usage, message, ..error }
}

/// Writes some of the chunk.
async fn write(input: Option<&pipe::Sender>, chunk: &[u8]) -> std::io::Result<usize> {
    let Some(input) = input else { return Ok(0) };
    loop {
        input.writable().await?;
        match input.try_write(chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            written => return written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_command_that_does_not_end_after_a_read_error_is_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let raw = directory.path().join("1.stdout");
        std::fs::write(&raw, "").unwrap();
        let argv = ["sleep", "600"].map(str::to_owned);
        let mut filter = Some(Filter::start(&argv, directory.path(), &raw).unwrap());
        // As after another process has cut the raw file.
        filter.as_mut().unwrap().more(100);
        let mut troubles = Vec::new();
        let start = std::time::Instant::now();
        while !Filter::is_done(filter.as_ref()) {
            if let Did::Event(Event::Meta { meta }) = Filter::next(&mut filter).await
                && let Some(Known::Error { message, .. }) = meta.known()
            {
                troubles.push(message);
            }
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert!(troubles[0].contains("cannot be given the rest"), "{troubles:?}");
        assert!(troubles[1].contains("did not end, and was stopped"), "{troubles:?}");
    }
}
