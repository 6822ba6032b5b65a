//! Many tasks at once: where tasks come from, which of them may start, and how their work reaches the base branch one after the other.
//! Each task is a run of its own in its own worktree. What works on it is behind one trait (`runner.rs`), so that the same coordinator
//! drives children on this machine and workers on others.

#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod order;
pub(crate) mod runner;
pub(crate) mod schedule;
pub(crate) mod sources;
pub(crate) mod state;
pub(crate) mod task;
