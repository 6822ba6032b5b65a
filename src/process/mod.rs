//! Runs a command safely: it never hangs the caller and never outlives it.
//!
//! This room knows no agent. It must be the only one that spawns, signals and reaps.

mod abandon;
mod capture;
mod clocks;
mod descent;
mod exit;
mod exit_thread;
mod faults;
mod group;
mod guardian;
mod invocation;
pub(crate) mod lines;
mod link;
mod mark;
mod own;
mod peer;
mod private_directory;
mod private_file;
mod pty;
mod registry;
mod resolve;
mod runtime;
mod spawn;
mod start_error;
mod stop;
mod strays;
mod stream;
mod supervisor;
pub(crate) mod suspension;
mod table;
mod tree;
pub(crate) mod wall;

#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(ralph_portable)))]
use linux as platform;
// Compiled everywhere, so that a change on Linux cannot break it unseen.
#[cfg_attr(all(target_os = "linux", not(ralph_portable)), allow(dead_code))]
mod portable;
#[cfg(any(not(target_os = "linux"), ralph_portable))]
use portable as platform;

use std::time::Duration;

pub use crate::event::Stream;
pub(crate) use capture::Captured;
pub use capture::capture;
pub use clocks::Clocks;
pub(crate) use descent::{is_alive, is_descendant};
pub(crate) use faults::end_like_sigterm;
pub use guardian::guardian_main;
pub use guardian::protect;
pub use invocation::Environment;
pub use invocation::Invocation;
pub use invocation::Link;
pub use invocation::Size;
pub use invocation::Stdin;
pub use invocation::StopStep;
pub use invocation::UnixSignal;
pub use lines::Line;
pub use lines::Lines;
pub use lines::Part;
pub use own::own_program;
pub use own::{
    die_by, ending_signals, enough_files, ignores, is_foreground, restore_signals, signal_name, suspend_self,
    take_signals,
};
pub use own::{forbid_inspection, keep_freed_memory};
pub use peer::peer;
pub use private_directory::PrivateDirectory;
pub use private_file::PrivateFile;
pub use resolve::ARGUMENT_LIMIT;
pub use runtime::runtime;
pub use start_error::StartError;
pub use start_error::TooLong;
pub use strays::strays;
pub(crate) use stream::register;
pub use supervisor::{Process, start};
pub use wall::{Needs, Place, inside_main};

/// Finds the program of an invocation and sees whether it can be run, without running it.
pub fn check(invocation: &Invocation) -> Result<std::path::PathBuf, StartError> {
    resolve::program(invocation)
}

/// What keeps agents from leaving processes behind on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Containment {
    /// Every agent gets a control group, which is killed at once.
    pub control_group: bool,
    /// Processes that lose their parent come to ralph.
    pub orphans: bool,
    /// The process table can be read.
    pub table: bool,
}

impl Containment {
    /// Looks what this machine has.
    pub fn of_this_machine() -> Self {
        let own = std::process::id().cast_signed();
        Self {
            control_group: group::is_available(),
            orphans: registry::adopter() == own,
            table: table::entry(own).is_some(),
        }
    }
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
    /// What could not be ended: processes that hang in the kernel, belong to another user, or multiply too fast.
    pub survivors: Vec<Stray>,
    /// True when nobody could see whether something is left, because the process table cannot be read.
    pub unseen: bool,
    /// False when someone still held the output open at the end, so that bytes may be missing.
    pub pipes_closed: bool,
    /// From start to end, without the time it was paused.
    pub active: Duration,
    /// The same until it was stopped, without the time that it took to end; `active` when it ended by itself.
    pub stopped_after: Duration,
}

impl Ended {
    /// True unless ralph stopped it before it had said its last word.
    pub(crate) const fn ended_by_itself(&self) -> bool {
        matches!(self.stopped, None | Some(StopReason::AfterEnd))
    }

    /// What could not be ended or seen, for people.
    pub fn leftovers(&self) -> Vec<String> {
        let named = self.survivors.iter().map(|stray| format!("could not end a process of the agent: {stray}"));
        let unseen = self.unseen.then_some("cannot read the process table: processes of the agent may be left");
        let open = (!self.pipes_closed && self.left_behind.is_empty())
            .then_some("another process holds the agent's output open: some of it may be missing");
        named.chain(unseen.into_iter().chain(open).map(str::to_owned)).collect()
    }
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

impl std::fmt::Display for Stray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.command, self.pid)
    }
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
