//! Words from another terminal to the loop under way: a file in the run's directory that only grows.
//!
//! A file, not a socket: it survives a crash of either side, has no length limit on its path, and what nobody has read
//! yet is read by the resumed run.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::journal::{RunDirectory, Topic};
use crate::plural::plural;

/// How often the loop looks.
const LOOK: Duration = Duration::from_millis(250);

/// What a person, or the agent, tells the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Words for the next iteration.
    Hint {
        /// The words.
        words: String,
    },
    /// The answer to a question, for the next iteration.
    Answer {
        /// The words.
        words: String,
    },
    /// Waits after this iteration.
    Pause,
    /// Goes on.
    Continue,
    /// Ends after this iteration, or now.
    Stop {
        /// The agent is stopped too.
        #[serde(default)]
        now: bool,
    },
    /// Does not wait any longer.
    Retry,
    /// An event, from inside the agent.
    Emit {
        /// The event.
        #[serde(flatten)]
        event: Topic,
    },
    /// Another limit than before.
    Limit {
        /// The most iterations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_iterations: Option<u32>,
        /// The most money.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_cost_usd: Option<f64>,
        /// The most time, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_seconds: Option<u64>,
    },
}

impl Command {
    /// Its name, for the journal.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hint { .. } => "hint",
            Self::Answer { .. } => "answer",
            Self::Pause => "pause",
            Self::Continue => "continue",
            Self::Stop { now: false } => "stop after this iteration",
            Self::Stop { now: true } => "stop now",
            Self::Retry => "retry",
            Self::Emit { .. } => "emit",
            Self::Limit { .. } => "limit",
        }
    }

    /// Its words, for the journal.
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Hint { words } | Self::Answer { words } => Some(words.clone()),
            Self::Limit { max_iterations, max_cost_usd, max_seconds } => {
                let parts = [
                    max_iterations.map(|most| plural(most, "iteration")),
                    max_cost_usd.map(|most| format!("${most:.2}")),
                    max_seconds.map(|most| format!("{most} s")),
                ];
                Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
            _ => None,
        }
    }
}

/// What was told and not yet done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orders {
    /// Words for the next prompt.
    pub words: Vec<String>,
    /// Wait before the next iteration.
    pub pause: bool,
    /// End before the next iteration.
    pub stop: bool,
    /// Events from inside the agent.
    pub emitted: Vec<Topic>,
    /// The most iterations, raised under way.
    pub max_iterations: Option<u32>,
    /// The most money, raised under way.
    pub max_cost_usd: Option<f64>,
    /// The most time in seconds, raised under way.
    pub max_seconds: Option<u64>,
}

impl Orders {
    /// Takes one more.
    pub fn take(&mut self, command: Command) {
        match command {
            Command::Hint { words } => self.words.push(format!("a person says: {words}")),
            Command::Answer { words } => self.words.push(format!("a person answers your question: {words}")),
            Command::Pause => self.pause = true,
            Command::Continue => self.pause = false,
            Command::Stop { .. } => self.stop = true,
            Command::Retry => {}
            Command::Emit { event } => self.emitted.push(event),
            Command::Limit { max_iterations, max_cost_usd, max_seconds } => {
                self.max_iterations = max_iterations.or(self.max_iterations);
                self.max_cost_usd = max_cost_usd.or(self.max_cost_usd);
                self.max_seconds = max_seconds.or(self.max_seconds);
            }
        }
    }
}

fn path(directory: &RunDirectory) -> PathBuf {
    directory.path.join("control.jsonl")
}

/// Tells a run something. It is on disk when this returns.
pub fn send(directory: &RunDirectory, command: &Command) -> io::Result<()> {
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    // One write: lines of several senders do not mix.
    OpenOptions::new().append(true).create(true).mode(0o600).open(path(directory))?.write_all(&line)
}

/// What the loop has not read yet.
#[derive(Debug)]
pub struct Inbox {
    path: PathBuf,
    offset: u64,
    waiting: std::collections::VecDeque<Command>,
}

impl Inbox {
    /// Reads from an offset, which a resumed run remembers.
    pub fn open(directory: &RunDirectory, offset: u64) -> Self {
        Self { path: path(directory), offset, waiting: std::collections::VecDeque::new() }
    }

    /// How much was read.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next command, as soon as there is one. Cancel-safe.
    pub async fn next(&mut self) -> Command {
        loop {
            if let Some(command) = self.poll() {
                return command;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The next command, if there is one now.
    pub fn poll(&mut self) -> Option<Command> {
        if self.waiting.is_empty() {
            // What cannot be read now is looked at again.
            let _ = self.read();
        }
        self.waiting.pop_front()
    }

    fn read(&mut self) -> io::Result<()> {
        let length = match std::fs::metadata(&self.path) {
            Ok(metadata) => metadata.len(),
            Err(_) => return Ok(()),
        };
        if length <= self.offset {
            return Ok(());
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(length - self.offset).read_to_end(&mut bytes)?;
        let Some(end) = memchr::memrchr(b'\n', &bytes) else { return Ok(()) };
        self.offset += end as u64 + 1;
        let lines = bytes[..end].split(|&byte| byte == b'\n');
        self.waiting.extend(lines.filter_map(|line| serde_json::from_slice(line).ok()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_once_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let run = RunDirectory { id: "r".into(), path: directory.path().to_owned() };
        let mut inbox = Inbox::open(&run, 0);
        assert_eq!(inbox.poll(), None);
        let hint = Command::Hint { words: "look\nhere".into() };
        send(&run, &hint).unwrap();
        send(&run, &Command::Stop { now: true }).unwrap();
        std::fs::OpenOptions::new().append(true).open(path(&run)).unwrap().write_all(b"rubbish\n{\"command\"").unwrap();
        assert_eq!((inbox.poll(), inbox.poll(), inbox.poll()), (Some(hint), Some(Command::Stop { now: true }), None));
        let mut resumed = Inbox::open(&run, inbox.offset());
        send(&run, &Command::Pause).unwrap();
        assert_eq!(resumed.poll(), None, "a torn line spoils itself, and nothing else");
        send(&run, &Command::Pause).unwrap();
        assert_eq!(resumed.poll(), Some(Command::Pause));
        let event = Topic { topic: "a".into(), payload: "p".into() };
        let line = serde_json::to_string(&Command::Emit { event: event.clone() }).unwrap();
        assert_eq!(line, r#"{"command":"emit","topic":"a","payload":"p"}"#);
    }
}
