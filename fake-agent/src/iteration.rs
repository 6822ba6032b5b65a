//! One run of the agent, built so that a test reads like a sentence: `says("Hello.").then_hangs()`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::{Finish, Speech, Status, Step, Tokens, ToolCall};

/// How long anything lives that is left behind on purpose.
const LIFE: u64 = 30_000;

/// What the agent does when it is started once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Iteration {
    /// One after the other.
    pub steps: Vec<Step>,
    /// The exit code at the end.
    pub exit: u8,
}

/// Says a message and ends well.
pub fn says(text: impl Into<String>) -> Iteration {
    silent().says(text)
}

/// Thinks, and ends well.
pub fn thinks(text: impl Into<String>) -> Iteration {
    silent().thinks(text)
}

/// Does nothing yet, and ends well.
pub fn silent() -> Iteration {
    Iteration::default()
}

impl Iteration {
    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Everything of the other one follows; its exit code counts.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.steps.extend(next.steps);
        self.exit = next.exit;
        self
    }

    /// Says a message.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        self.step(Step::Say(Speech::whole(text)))
    }

    /// Thinks.
    #[must_use]
    pub fn thinks(self, text: impl Into<String>) -> Self {
        self.step(Step::Think(Speech::whole(text)))
    }

    /// Cuts the text of the step before into so many fragments.
    #[must_use]
    pub fn in_pieces(mut self, number: usize) -> Self {
        if let Some(Step::Say(speech) | Step::Think(speech)) = self.steps.last_mut() {
            speech.pieces = number;
        }
        self
    }

    /// Waits so many milliseconds after each fragment of the step before.
    #[must_use]
    pub fn slowly(mut self, every: u64) -> Self {
        if let Some(Step::Say(speech) | Step::Think(speech)) = self.steps.last_mut() {
            speech.every = every;
        }
        self
    }

    /// Calls a tool; `input` is a JSON object.
    #[must_use]
    pub fn runs_tool(self, name: impl Into<String>, input: Value) -> Self {
        let input = if let Value::Object(input) = input { input } else { serde_json::Map::default() };
        let (output, status, takes) = (String::new(), Status::Ok, 0);
        self.step(Step::Tool(ToolCall { name: name.into(), input, output, status, takes }))
    }

    fn tool(mut self, change: impl FnOnce(&mut ToolCall)) -> Self {
        if let Some(Step::Tool(call)) = self.steps.last_mut() {
            change(call);
        }
        self
    }

    /// The tool of the step before prints this.
    #[must_use]
    pub fn printing(self, output: impl Into<String>) -> Self {
        self.tool(|call| call.output = output.into())
    }

    /// The tool of the step before fails.
    #[must_use]
    pub fn fails(self) -> Self {
        self.tool(|call| call.status = Status::Fail)
    }

    /// The tool of the step before never ends.
    #[must_use]
    pub fn never_ends(self) -> Self {
        self.tool(|call| call.status = Status::Open)
    }

    /// The tool of the step before takes so many milliseconds.
    #[must_use]
    pub fn taking(self, milliseconds: u64) -> Self {
        self.tool(|call| call.takes = milliseconds)
    }

    /// Reports tokens.
    #[must_use]
    pub fn uses(self, input: u64, output: u64) -> Self {
        self.step(Step::Usage(Tokens { input, output, ..Tokens::default() }))
    }

    /// Reports tokens and money in full.
    #[must_use]
    pub fn reports(self, tokens: Tokens) -> Self {
        self.step(Step::Usage(tokens))
    }

    /// Sends the terminal event now; what follows comes after it.
    #[must_use]
    pub fn finishes(self) -> Self {
        self.step(Step::Finish(Finish::Success))
    }

    /// Sends a terminal event that tells an error, and exits with 1.
    #[must_use]
    pub fn breaks(self, message: impl Into<String>) -> Self {
        self.step(Step::Finish(Finish::Failure { message: message.into(), status: None })).exits(1)
    }

    /// Sends a terminal event that tells an HTTP error, and exits with 1.
    #[must_use]
    pub fn breaks_with_status(self, status: u16, message: impl Into<String>) -> Self {
        self.step(Step::Finish(Finish::Failure { message: message.into(), status: Some(status) })).exits(1)
    }

    /// Never sends a terminal event.
    #[must_use]
    pub fn without_terminal_event(self) -> Self {
        self.step(Step::NoFinish)
    }

    /// Prints these characters as they are: no dialect, no newline.
    #[must_use]
    pub fn prints_raw(self, text: impl Into<String>) -> Self {
        self.step(Step::Raw(text.into()))
    }

    /// Prints these bytes as they are.
    #[must_use]
    pub fn prints_bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    /// Prints a line on standard error.
    #[must_use]
    pub fn complains(self, line: impl Into<String>) -> Self {
        self.step(Step::Stderr(line.into()))
    }

    /// Writes a file in its working directory.
    #[must_use]
    pub fn writes_file(self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.step(Step::Write { path: path.into(), text: text.into() })
    }

    /// Appends to a file in its working directory.
    #[must_use]
    pub fn appends_to(self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.step(Step::Append { path: path.into(), text: text.into() })
    }

    /// Commits everything in its working directory.
    #[must_use]
    pub fn commits(self, message: impl Into<String>) -> Self {
        self.step(Step::Commit(message.into()))
    }

    /// Reads its standard input now (with [`crate::Stdin::Late`]).
    #[must_use]
    pub fn reads_stdin(self) -> Self {
        self.step(Step::ReadStdin)
    }

    /// Does nothing for so many milliseconds.
    #[must_use]
    pub fn sleeps(self, milliseconds: u64) -> Self {
        self.step(Step::Sleep(milliseconds))
    }

    /// Works without a word for so many milliseconds.
    #[must_use]
    pub fn burns_cpu(self, milliseconds: u64) -> Self {
        self.step(Step::BurnCpu(milliseconds))
    }

    /// Does not come back.
    #[must_use]
    pub fn hangs(self) -> Self {
        self.step(Step::Hang(LIFE))
    }

    /// INT, TERM and HUP no longer end it.
    #[must_use]
    pub fn ignores_signals(self) -> Self {
        self.step(Step::IgnoreSignals)
    }

    /// Starts children in its process group that live on.
    #[must_use]
    pub fn forks(self, children: u32) -> Self {
        self.step(Step::Fork { children, milliseconds: LIFE })
    }

    /// Starts a process that leaves group, session and parent, and lives on.
    #[must_use]
    pub fn detaches_a_process(self) -> Self {
        self.step(Step::Detach(LIFE))
    }

    /// Starts a child that holds standard output open for so many milliseconds.
    #[must_use]
    pub fn leaves_stdout_held(self, milliseconds: u64) -> Self {
        self.step(Step::HoldStdout(milliseconds))
    }

    /// Starts a child that keeps printing for so many milliseconds.
    #[must_use]
    pub fn leaves_a_child_printing(self, milliseconds: u64) -> Self {
        self.step(Step::ChildWrites(milliseconds))
    }

    /// Prints so many bytes in lines of 100, as fast as they are taken.
    #[must_use]
    pub fn floods(self, bytes: u64) -> Self {
        self.step(Step::Flood { bytes, per_second: None })
    }

    /// Prints so many bytes in lines of 100, so many a second.
    #[must_use]
    pub fn floods_at(self, bytes: u64, per_second: u64) -> Self {
        self.step(Step::Flood { bytes, per_second: Some(per_second) })
    }

    /// Prints one line of so many bytes.
    #[must_use]
    pub fn prints_a_huge_line(self, bytes: u64) -> Self {
        self.step(Step::HugeLine(bytes))
    }

    /// Closes standard output and lives on.
    #[must_use]
    pub fn closes_stdout(self) -> Self {
        self.step(Step::CloseStdout)
    }

    /// Dies by the Unix signal of this number.
    #[must_use]
    pub fn dies_by(self, signal: i32) -> Self {
        self.step(Step::Die(signal))
    }

    /// Becomes another program.
    #[must_use]
    pub fn becomes<const N: usize>(self, command: [&str; N]) -> Self {
        self.step(Step::Exec(command.map(str::to_owned).to_vec()))
    }

    /// Ends with this exit code.
    #[must_use]
    pub fn exits(mut self, code: u8) -> Self {
        self.exit = code;
        self
    }
}
