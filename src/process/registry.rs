//! What this operating-system process as a whole owns: its agents, and the orphans that come to it.
//!
//! Adoption of orphans is an attribute of a whole process, so this is the one place with state shared by all agents.
//! It must never claim a child that somebody else in this process may have spawned.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::table::{self, Entry};

/// Children that were spawned here and are not yet reaped, apart from orphans.
static SPAWNED: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

/// True when orphans of the trees come to this process.
static REAPER: LazyLock<bool> = LazyLock::new(become_reaper);

/// True when every child of this process was spawned by this room or is an orphan of an agent.
static EXCLUSIVE: AtomicBool = AtomicBool::new(false);

/// Declares that nothing outside of this room spawns processes, so that each unknown child is an agent's orphan.
///
/// The binary says so, once, at its start. A test process cannot: its tests spawn as they like.
pub fn own_all_children() {
    EXCLUSIVE.store(true, Ordering::Relaxed);
}

/// Makes sure that orphans come here. Where the platform cannot do that, they are found by their mark.
pub(super) fn prepare() {
    let _ = *REAPER;
}

/// A name for a tree that no other tree on this machine has.
pub(super) fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        let pid = std::process::id();
        let started = i32::try_from(pid).ok().and_then(table::entry).map_or(0, |entry| entry.started);
        format!("{pid}-{started}")
    });
    format!("{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Spawns a child and notes it, in one step: nobody may see it in between and take it for an orphan.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut spawned = spawned();
    let child = command.spawn()?;
    spawned.get_or_insert_default().insert(child.id().cast_signed());
    Ok(child)
}

/// Forgets a child that is reaped.
pub(super) fn remove(pid: i32) {
    if let Some(set) = spawned().as_mut() {
        set.remove(&pid);
    }
}

/// True for a process whose parents are gone: the adopter has it now.
pub(super) fn may_be_orphan(entry: &Entry) -> bool {
    if *REAPER { entry.parent == own_pid() } else { entry.parent <= 1 }
}

/// True for an orphan that can only come from the agent `root`, because that is the only one.
pub(super) fn belongs_by_exclusion(entry: &Entry, root: i32) -> bool {
    if !EXCLUSIVE.load(Ordering::Relaxed) || entry.parent != own_pid() {
        return false;
    }
    spawned().as_ref().is_some_and(|spawned| !spawned.contains(&entry.pid) && spawned.iter().all(|pid| *pid == root))
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn spawned() -> MutexGuard<'static, Option<HashSet<i32>>> {
    SPAWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(target_os = "linux")]
fn become_reaper() -> bool {
    // Any number switches it on; our own reads best in a trace.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn become_reaper() -> bool {
    false
}
