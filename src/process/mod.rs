//! Runs a command safely: it never hangs the caller and never outlives it.
//!
//! This room knows no agent. It must be the only one that spawns, signals and reaps.

mod abandon;
mod capture;
mod clocks;
mod console;
mod exit;
mod guardian;
mod invocation;
mod keyboard;
pub mod lines;
mod link;
mod mark;
mod own;
mod private_file;
mod pty;
mod registry;
mod resolve;
mod spawn;
mod start_error;
mod stop;
mod strays;
mod stream;
mod supervisor;
mod table;
mod tree;

use std::time::Duration;

pub use crate::event::Stream;
pub use capture::{Captured, capture};
pub use clocks::Clocks;
pub use console::Console;
pub use guardian::{guardian_main, protect};
pub use invocation::{Environment, Invocation, Link, Size, Stdin, StopStep, UnixSignal};
pub use keyboard::Keyboard;
pub use lines::{Line, Lines, Part};
pub use own::{
    die_by, has_terminal, ignores, is_in_background, own_program, restore_signals, suspend_self, take_signals,
    terminal_size, typed_line,
};
pub use private_file::PrivateFile;
pub use resolve::ARGUMENT_LIMIT;
pub use start_error::{StartError, TooLong};
pub use strays::{StrayOfRun, strays};
pub use supervisor::{Process, start};

/// Finds the program of an invocation and sees whether it can be run, without running it.
pub fn check(invocation: &Invocation) -> Result<std::path::PathBuf, StartError> {
    resolve::program(invocation)
}

/// The variable that marks everything an agent starts, whatever it does to its group, session and parents.
pub const MARK: &str = "RALPH_PROCESS";

/// The variable that names the run; the run sets it, and [`strays`] looks for it.
pub const RUN_ID: &str = "RALPH_RUN_ID";

/// What [`Process::next`] hands out.
#[derive(Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Bytes, as they came.
    Bytes {
        /// Where from.
        from: Stream,
        /// Never empty; valid until the next call.
        bytes: &'a [u8],
    },
    /// Nothing more will come, and nothing is left.
    Ended(Ended),
}

/// How a process and all that it started came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Of the process itself.
    pub exit: Exit,
    /// Why it was stopped, if it was; it may have ended by itself after it was asked.
    pub stopped: Option<StopReason>,
    /// What was still there when the process itself had ended. Stopped, unless it was to be left running.
    pub left_behind: Vec<Stray>,
    /// What could not be ended: processes that hang in the kernel.
    pub survivors: Vec<Stray>,
    /// False when somebody still held the output open at the end, so that bytes may be missing.
    pub pipes_closed: bool,
    /// From start to end, without the time it was paused.
    pub active: Duration,
    /// Until the first byte of output.
    pub first_byte: Option<Duration>,
}

/// Why a process was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// No output within the start-up time.
    Startup,
    /// No output and no work for too long.
    Idle,
    /// Too long in all.
    Total,
    /// It had said that it was done, and did not end. What it said counts.
    AfterEnd,
    /// A person or the run asked for it.
    Asked,
    /// It did the same thing over and over.
    Stuck,
}

/// A process that outlived the one that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a Unix signal.
    Signal(i32),
}

impl Exit {
    /// True for exit code 0.
    pub const fn success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}
