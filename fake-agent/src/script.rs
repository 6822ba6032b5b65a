//! What the agent shall do: the form of a script file, and how a test writes one.
//!
//! It is data only; `play` does it, `iteration` builds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Dialect, Iteration, Recorded};

/// A whole script: what to do in each iteration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// How its words are written.
    pub dialect: Dialect,
    /// The session id it reports; unset: one made from the number of the iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it does with its standard input.
    pub stdin: Stdin,
    /// Which iteration is played.
    pub choose: Choose,
    /// Names of environment variables to record beside those that begin with `RALPH_`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub record_env: Vec<String>,
    /// One for each run of the agent; the last one repeats.
    pub iterations: Vec<Iteration>,
}

/// What the agent does with its standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Reads it to the end before the first step; a terminal is left alone.
    #[default]
    Read,
    /// Never reads it.
    Never,
    /// Reads it only when a step says so.
    Late,
}

/// How the agent knows which iteration it plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choose {
    /// By `RALPH_ITERATION`, else by counting.
    #[default]
    Environment,
    /// By a counter file beside the script: one further at each start, also when ralph repeats an iteration.
    Count,
}

/// One thing the agent does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Words, in the dialect.
    Say(Speech),
    /// Reasoning, in the dialect.
    Think(Speech),
    /// A tool call, in the dialect.
    Tool(ToolCall),
    /// Tokens; dialects that report them at the end keep them until then.
    Usage(Tokens),
    /// The terminal event, in the dialect. Without this step it comes after the last one.
    Finish(Finish),
    /// Leaves the terminal event out.
    NoFinish,
    /// These characters, as they are.
    Raw(String),
    /// These bytes, as they are.
    Bytes(Vec<u8>),
    /// One line on standard error.
    Stderr(String),
    /// Milliseconds of doing nothing.
    Sleep(u64),
    /// Milliseconds of work without a word.
    BurnCpu(u64),
    /// Writes a file in the working directory.
    Write {
        /// Where.
        path: PathBuf,
        /// What.
        text: String,
    },
    /// Appends to a file in the working directory.
    Append {
        /// Where.
        path: PathBuf,
        /// What.
        text: String,
    },
    /// Commits everything in the working directory.
    Commit(String),
    /// Reads standard input to the end.
    ReadStdin,
    /// Does not come back for so many milliseconds, then exits with 99.
    Hang(u64),
    /// INT, TERM and HUP no longer end it.
    IgnoreSignals,
    /// Starts children in the same process group.
    Fork {
        /// How many.
        children: u32,
        /// How long each lives.
        milliseconds: u64,
    },
    /// Starts a process that leaves the group, the session and its parent, and lives so many milliseconds.
    Detach(u64),
    /// Starts a child that keeps standard output open for so many milliseconds.
    HoldStdout(u64),
    /// Starts a child that prints a line each 50 milliseconds, for so many milliseconds.
    ChildWrites(u64),
    /// Prints lines of 100 bytes without end, up to so many bytes.
    Flood {
        /// How many in all.
        bytes: u64,
        /// How many a second; unset: as fast as they are taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        per_second: Option<u64>,
    },
    /// One line of so many bytes.
    HugeLine(u64),
    /// Closes standard output and lives on.
    CloseStdout,
    /// Dies by the Unix signal of this number.
    Die(i32),
    /// Becomes another program, which keeps the streams.
    Exec(Vec<String>),
}

/// A text, whole or in pieces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "SpeechForm")]
pub struct Speech {
    /// All of it.
    pub text: String,
    /// Into how many fragments it is cut, in dialects that have them.
    pub pieces: usize,
    /// Milliseconds between them.
    pub every: u64,
}

impl Speech {
    /// A text in one piece.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), pieces: 1, every: 0 }
    }

    /// True when it is to be said in one piece.
    pub fn is_whole(&self) -> bool {
        self.pieces <= 1
    }

    /// The fragments, cut between characters.
    pub fn cut(&self) -> Vec<&str> {
        let characters = self.text.chars().count();
        let pieces = self.pieces.clamp(1, characters.max(1));
        let mut rest = self.text.as_str();
        (0..pieces)
            .map(|piece| {
                let length = characters * (piece + 1) / pieces - characters * piece / pieces;
                let at = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
                let (head, tail) = rest.split_at(at);
                rest = tail;
                head
            })
            .collect()
    }
}

/// In a file, a speech may be only its text.
#[derive(Deserialize)]
#[serde(untagged)]
enum SpeechForm {
    Text(String),
    Full {
        text: String,
        #[serde(default = "one")]
        pieces: usize,
        #[serde(default)]
        every: u64,
    },
}

fn one() -> usize {
    1
}

impl From<SpeechForm> for Speech {
    fn from(form: SpeechForm) -> Self {
        match form {
            SpeechForm::Text(text) => Self::whole(text),
            SpeechForm::Full { text, pieces, every } => Self { text, pieces, every },
        }
    }
}

/// A tool call from start to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// As the agent calls it.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// What it prints.
    #[serde(default)]
    pub output: String,
    /// How it goes.
    #[serde(default)]
    pub status: Status,
    /// How many milliseconds pass between its start and its end.
    #[serde(default)]
    pub takes: u64,
}

/// How a tool call goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It works.
    #[default]
    Ok,
    /// It does not.
    Fail,
    /// It never ends.
    Open,
}

/// Tokens of the iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokens {
    /// Sent to the model, cached ones included.
    pub input: u64,
    /// Written by the model, reasoning included.
    pub output: u64,
    /// Read from a cache.
    pub cached: u64,
    /// Spent on reasoning.
    pub reasoning: u64,
    /// Money, in dialects that report it.
    pub cost_usd: Option<f64>,
}

/// How the turn ends, in the dialect's terminal event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Well.
    Success,
    /// With an error.
    Failure {
        /// In the agent's words.
        message: String,
        /// HTTP status behind it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
}

impl Script {
    /// An empty script in the plain dialect.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what it does the next time.
    #[must_use]
    pub fn iteration(mut self, iteration: Iteration) -> Self {
        self.iterations.push(iteration);
        self
    }

    /// Writes its words in this dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Reports this session id.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Reports this model.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Treats its standard input like this.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Goes one iteration further at each start, whatever `RALPH_ITERATION` says.
    #[must_use]
    pub fn counting(mut self) -> Self {
        self.choose = Choose::Count;
        self
    }

    /// Records this environment variable too.
    #[must_use]
    pub fn records_env(mut self, name: impl Into<String>) -> Self {
        self.record_env.push(name.into());
        self
    }

    /// Writes the script into a directory and returns the path of the file. Counter, records and process ids go
    /// beside it.
    pub fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        let path = directory.join("fake-agent.json");
        fs::write(&path, serde_json::to_vec_pretty(self)?)?;
        Ok(path)
    }

    /// Writes the script and returns the command line that plays it, quoted for a shell.
    pub fn command(&self, directory: &Path) -> io::Result<String> {
        let script = self.write(directory)?;
        let words = [crate::binary().display().to_string(), script.display().to_string()];
        shlex::try_join(words.iter().map(String::as_str)).map_err(io::Error::other)
    }

    /// What each start of the agent was given, from the directory of [`Script::write`].
    pub fn recorded(directory: &Path) -> Vec<Recorded> {
        Recorded::read(&directory.join("fake-agent.json"))
    }

    /// The ids of all processes that were started, the agent itself and what it left behind.
    pub fn process_ids(directory: &Path) -> Vec<i32> {
        crate::record::process_ids(&directory.join("fake-agent.json"))
    }

    /// Reads a script file, YAML or JSON.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        // YAML forbids characters that JSON allows, so a JSON file is never read as YAML.
        let read = if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            serde_saphyr::from_str(&text).map_err(|error| error.to_string())
        };
        read.map_err(|error| format!("`{}` is no script: {error}", path.display()))
    }
}

impl From<Iteration> for Script {
    fn from(iteration: Iteration) -> Self {
        Self::new().iteration(iteration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_speech_are_the_speech() {
        for (text, pieces) in [("größer ✅ x", 3), ("ab", 9), ("", 2), ("abc", 0)] {
            let speech = Speech { pieces, ..Speech::whole(text) };
            assert_eq!(speech.cut().concat(), text);
            assert_eq!(speech.cut().len(), pieces.clamp(1, text.chars().count().max(1)));
        }
    }
}
