//! What this operating-system process as a whole owns: the children it has spawned, and the orphans that come to it.
//!
//! Adoption of orphans is an attribute of a whole process, so this is the one place with state shared by all agents.
//! It must never reap a child that someone else in this process may wait for.

use std::collections::{HashMap, HashSet};
use std::io;
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use super::mark::Mark;
use super::platform;
use super::tree::Identity;

/// Children that were spawned here and are not yet reaped; they are waited for elsewhere.
static SPAWNED: LazyLock<Mutex<HashSet<i32>>> = LazyLock::new(Mutex::default);

/// The trees of this process by their marks, with their roots; without one where processes of an ended tree were left
/// running on purpose.
static TREES: LazyLock<Mutex<HashMap<Mark, Option<Identity>>>> = LazyLock::new(Mutex::default);

/// True when orphans of the trees come to this process.
static ADOPTS: LazyLock<bool> = LazyLock::new(platform::adopt_orphans);

/// True when every child that was not started here is of an agent: see [`own_all_children`].
static OWNS: OnceLock<bool> = OnceLock::new();

/// Makes sure that orphans come here. Where the platform cannot do that, they are found by their mark.
pub(super) fn prepare() {
    let _ = *ADOPTS;
}

/// Declares that this process starts all its children here, so that any other child is an orphan of an agent, whatever it
/// has done to its mark. Not so where a shell started some and then became this program.
pub(super) fn own_all_children() {
    OWNS.get_or_init(|| *ADOPTS && !platform::has_other_children(&spawned()));
}

/// Spawns a child and notes it, in one step: nobody may see it in between and take it for an orphan.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut spawned = spawned();
    let child = command.spawn()?;
    spawned.insert(child.id().cast_signed());
    Ok(child)
}

/// Forgets a child that is reaped.
pub(super) fn remove(pid: i32) {
    spawned().remove(&pid);
}

/// The children that were spawned here. None is added or removed while this is held.
pub(super) fn spawned() -> MutexGuard<'static, HashSet<i32>> {
    SPAWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process that orphans come to: this one, or the first of the system where that cannot be had.
pub(super) fn adopter() -> i32 {
    if *ADOPTS { std::process::id().cast_signed() } else { 1 }
}

pub(super) fn add_tree(mark: Mark, root: Identity) {
    trees().insert(mark, Some(root));
}

pub(super) fn remove_tree(mark: Mark) {
    trees().remove(&mark);
}

/// Remembers the mark of a tree whose processes may continue.
pub(super) fn leave_tree(mark: Mark) {
    trees().insert(mark, None);
}

pub(super) fn is_tree(mark: Mark) -> bool {
    trees().contains_key(&mark)
}

/// True when every child that was not started here is of an agent.
pub(super) fn owns_children() -> bool {
    OWNS.get() == Some(&true)
}

/// True when an orphan without a mark, started at `started`, can only be of this tree, or of one that is gone.
pub(super) fn must_be_of(mark: Mark, started: u64) -> bool {
    owns_children()
        && trees().iter().all(|(other, root)| *other == mark || root.is_none_or(|root| root.started > started))
}

fn trees() -> MutexGuard<'static, HashMap<Mark, Option<Identity>>> {
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}
