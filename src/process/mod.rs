//! Runs a command safely: it never hangs the caller and never outlives it.
//!
//! This room knows no agent. It must be the only one that spawns, signals and reaps.

pub mod lines;

pub use lines::{Line, Lines, Part};

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
