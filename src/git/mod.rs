//! Looks at the user's repositories, keeps snapshots of them as git objects of ralph's own, and writes to them where a run was asked
//! to: branches, work trees, merges, undo.
//!
//! git never reads the configuration, hooks or attributes drivers of a repository for ralph: it works on a git directory that ralph
//! makes (`store.rs`), and `command.rs` builds every command. Only `writer.rs` and what builds on it writes to a repository.

mod checkout;
mod command;
mod commits;
mod committing;
mod direct;
mod files;
mod files_at;
mod guarded;
mod history;
mod index;
mod known_files;
mod merging;
mod moment;
mod objects;
mod own_index;
mod patch;
mod plain;
#[cfg(feature = "fleet")]
mod remote;
mod repository;
mod snapshots;
mod status;
mod store;
mod tracked;
mod user_index;
mod watch;
mod worktree;
mod writer;

pub(crate) use command::{GitError, version};
pub(crate) use files_at::{Refused, Try};
pub(crate) use guarded::Guarded;
pub(crate) use history::{History, Point};
pub(crate) use merging::{Rebased, Shape};
pub(crate) use moment::Moment;
#[cfg(feature = "fleet")]
pub(crate) use remote::{PushError, is_address, new_cache};
pub(crate) use repository::Repository;
pub(crate) use snapshots::{By, Change, Difference, Effort, Snapshots, Undo};
pub(crate) use store::{Store, remove_leftovers};
pub(crate) use worktree::CheckedOut;
pub(crate) use writer::Writer;

#[cfg(test)]
mod direct_tests;
#[cfg(test)]
#[path = "tests.rs"]
mod tests;
