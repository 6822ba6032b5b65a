//! Why a process could not be started, told apart so that the caller can say what to do.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A process could not be started. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No such program on `PATH`, or no such file.
    #[error("`{}` was not found", program.display())]
    NotFound {
        /// As it was asked for.
        program: OsString,
        /// Programs on `PATH` with a similar name, the nearest first.
        nearest: Vec<String>,
    },
    /// The file is there, but may not be executed.
    #[error("`{}` is not executable", path.display())]
    NotExecutable {
        /// Which directory.
        path: PathBuf,
    },
    /// The file is no program for this machine.
    #[error("`{}` is not a program for this machine", path.display())]
    WrongFormat {
        /// Which file.
        path: PathBuf,
    },
    /// The program needs another one to run it, which is not there.
    #[error("`{}` needs `{interpreter}`, which was not found", path.display())]
    MissingInterpreter {
        /// Which file.
        path: PathBuf,
        /// What its first line or its header asks for.
        interpreter: String,
    },
    /// The working directory does not exist, or is no directory.
    #[error("the working directory `{}` is gone", path.display())]
    CwdGone {
        /// Which file.
        path: PathBuf,
    },
    /// The system allows no more processes.
    #[error("the system allows no more processes for this user")]
    TooManyProcesses,
    /// The system allows no more open files.
    #[error("the system allows no more open files")]
    TooManyFiles,
    /// An argument, a variable, or all of them together, are longer than the system takes.
    #[error("{what} is longer than the {limit} bytes that the system takes")]
    TooLong {
        /// What is too long.
        what: TooLong,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The wall around it could not be built, so it was not started.
    #[error("`{}` was not started, because its sandbox could not be set up: {reason}", program.display())]
    NoWall {
        /// As it was asked for.
        program: OsString,
        /// Why.
        reason: String,
    },
    /// Anything else the system said.
    #[error("could not start `{}`: {source}", program.display())]
    Other {
        /// As it was asked for.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
}

/// What is too long to be handed to a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooLong {
    /// The argument with this number; 1 is the first after the program's name.
    Argument(usize),
    /// The variable with this name.
    Variable(String),
    /// All arguments and variables together.
    Everything,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument(number) => write!(f, "argument {number}"),
            Self::Variable(name) => write!(f, "the variable `{name}`"),
            Self::Everything => f.write_str("the command line with its environment"),
        }
    }
}
