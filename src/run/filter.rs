//! An external adapter: a command that reads an agent's raw output and prints RTF1.
//!
//! It works beside the agent and must never hold it up for long: when it stops reading, it is given up, and
//! the raw file still has every byte.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::explain::start_error;
use crate::error::{Kind, UserError};
use crate::event::{Event, FailureClass, Known, Stream};
use crate::process::{self, Clocks, Ended, Invocation, Output, Process, StartError, Stdin, StopReason};

/// How much may wait to be read by the command before the agent has to wait too.
const MOST_WAITING: usize = 8 * 1024 * 1024;

/// How long the command may take without reading or writing anything while bytes wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to finish after the agent has.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A running adapter command.
pub struct Filter {
    name: String,
    process: Process,
    input: Option<pipe::Sender>,
    waiting: VecDeque<u8>,
    ended: Option<Ended>,
}

/// What the command did.
#[derive(Debug)]
pub enum Did {
    /// It printed RTF1.
    Printed(Vec<u8>),
    /// It says something to a person, or something is wrong with it.
    Event(Event),
}

impl Filter {
    /// Sees whether the command can be started, without starting it.
    pub fn check(argv: &[String], workspace: &Path) -> Result<(), UserError> {
        let invocation = invocation(argv, workspace)?;
        process::check(&invocation).map(|_| ()).map_err(|error| of_the_command(&error))
    }

    /// Starts the command in the workspace.
    pub fn start(argv: &[String], workspace: &Path) -> Result<Self, UserError> {
        let broken =
            |error: std::io::Error| UserError::failed(format!("cannot connect the transcript command: {error}"));
        let (reader, writer) = std::io::pipe().map_err(broken)?;
        let writer = OwnedFd::from(writer);
        rustix::io::ioctl_fionbio(&writer, true).map_err(|error| broken(error.into()))?;
        let input = pipe::Sender::from_owned_fd(writer).map_err(broken)?;
        let invocation =
            Invocation { stdin: Stdin::From(Arc::new(OwnedFd::from(reader))), ..invocation(argv, workspace)? };
        let name = invocation.program.to_string_lossy().into_owned();
        let clocks = Clocks { startup: None, idle: None, total: None, ..Clocks::default() };
        let process = process::start(invocation, clocks).map_err(|error| of_the_command(&error))?;
        Ok(Self { name, process, input: Some(input), waiting: VecDeque::new(), ended: None })
    }

    /// Gives it bytes. They wait in memory until it reads them.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.waiting.extend(bytes);
        }
    }

    /// False while the agent has to wait for the command.
    pub fn has_room(filter: Option<&Self>) -> bool {
        filter.is_none_or(|filter| filter.waiting.len() < MOST_WAITING)
    }

    /// The next thing it does; never, when there is no command or it has ended. Cancel-safe.
    pub async fn next(filter: &mut Option<Self>) -> Did {
        match filter {
            Some(filter) if filter.ended.is_none() => filter.work().await,
            _ => std::future::pending().await,
        }
    }

    /// Ends its input and collects the rest, for as long as patience lasts.
    pub async fn finish(mut self) -> Vec<Did> {
        let mut all = Vec::new();
        let rest = async {
            while self.ended.is_none() {
                all.push(self.work_until_end().await);
            }
        };
        if timeout(LAST_WORDS, rest).await.is_err() {
            all.push(self.trouble("did not end within 10 s of the agent, and was stopped"));
        }
        all
    }

    async fn work_until_end(&mut self) -> Did {
        if self.waiting.is_empty() {
            self.input = None;
        }
        self.work().await
    }

    /// Writes what waits and reads what comes, until there is something to tell.
    async fn work(&mut self) -> Did {
        loop {
            let closing = self.waiting.is_empty();
            let Self { process, input, waiting, .. } = self;
            let step = tokio::select! {
                output = process.next() => match output {
                    Output::Bytes { from: Stream::Stdout, bytes } => return Did::Printed(bytes.to_vec()),
                    Output::Bytes { bytes, .. } => {
                        let text = crate::transcript::strip_ansi(&String::from_utf8_lossy(bytes)).trim_end().to_owned();
                        return Did::Event(Known::Warning { message: format!("transcript command: {text}") }.into());
                    }
                    Output::Ended(ended) => Step::Ended(ended),
                },
                written = timeout(PATIENCE, write(input.as_ref(), waiting)), if input.is_some() && !closing => match written {
                    Ok(Ok(())) => Step::Written,
                    Ok(Err(_)) => Step::Closed,
                    Err(_) => Step::Stuck,
                },
            };
            match step {
                Step::Written => return Did::Printed(Vec::new()),
                // It closed its input: it wants no more, and its exit will say whether that was right.
                Step::Closed => self.give_up(),
                Step::Stuck => {
                    self.give_up();
                    self.process.stop(StopReason::Idle);
                    return self.trouble("did not read for 60 s, and was stopped");
                }
                Step::Ended(ended) => {
                    self.give_up();
                    let trouble = (!ended.exit.success() && ended.stopped.is_none()).then(|| match ended.exit {
                        process::Exit::Code(code) => format!("ended with exit code {code}"),
                        process::Exit::Signal(number) => format!("was killed by Unix signal {number}"),
                    });
                    self.ended = Some(ended);
                    return trouble.map_or(Did::Printed(Vec::new()), |what| self.trouble(&what));
                }
            }
        }
    }

    fn give_up(&mut self) {
        self.input = None;
        self.waiting = VecDeque::new();
    }

    fn trouble(&self, what: &str) -> Did {
        let message = format!("the transcript command `{}` {what}; the raw file has the agent's output", self.name);
        Did::Event(
            Known::Error {
                class: FailureClass::Config,
                message,
                status: None,
                resets_at: None,
                retry_after_ms: None,
                resets: None,
            }
            .into(),
        )
    }
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

enum Step {
    Written,
    Closed,
    Stuck,
    Ended(Ended),
}

/// Writes some of what waits.
async fn write(input: Option<&pipe::Sender>, waiting: &mut VecDeque<u8>) -> std::io::Result<()> {
    let Some(input) = input else { return Ok(()) };
    loop {
        input.writable().await?;
        match input.try_write(waiting.as_slices().0) {
            Ok(count) => {
                waiting.drain(..count);
                return Ok(());
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
