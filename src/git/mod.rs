//! Looks at the user's repositories and keeps snapshots of them as git objects of ralph's own.
//!
//! git never reads the configuration, hooks or attributes drivers of a repository for ralph: it works on a git directory that ralph
//! makes (`store.rs`), and `command.rs` builds every command. The user's index, objects and refs are never written.

mod command;
mod files;
mod index;
mod plain;
mod repository;
mod snapshots;
mod status;
mod store;
mod tracked;
mod watch;

pub(crate) use command::version;
pub(crate) use repository::Repository;
pub(crate) use snapshots::{By, Change, Difference, Effort, Snapshots};
pub(crate) use store::{Store, remove_leftovers};

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
