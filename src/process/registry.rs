//! What this operating-system process as a whole owns: the children it has spawned, and the orphans that come to it.
//!
//! Adoption of orphans is an attribute of a whole process, so this is the one place with state shared by all agents.
//! It must never reap a child that somebody else in this process may wait for.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use super::exit;
use super::mark::Mark;
use super::table::Table;

/// Children that were spawned here and are not yet reaped; they are waited for elsewhere.
static SPAWNED: LazyLock<Mutex<HashSet<i32>>> = LazyLock::new(Mutex::default);

/// True when orphans of the trees come to this process.
static REAPER: LazyLock<bool> = LazyLock::new(become_reaper);

/// Makes sure that orphans come here. Where the platform cannot do that, they are found by their mark.
pub(super) fn prepare() {
    let _ = *REAPER;
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

/// True when several agents run, so that it pays to look at the process table together.
pub(super) fn is_crowded() -> bool {
    // Two: one agent and the guardian.
    spawned().len() > 2
}

/// The process that orphans come to: this one, or the first of the system where that cannot be had.
pub(super) fn adopter() -> i32 {
    if *REAPER { own_pid() } else { 1 }
}

/// Reaps orphans that have died: an agent that runs for hours may leave thousands.
pub(super) fn reap_orphans(table: &Table) {
    for entry in table.children(own_pid()).filter(|entry| entry.zombie) {
        if let Some(pid) = Pid::from_raw(entry.pid)
            && Mark::any_is_on(entry.pid)
            && !spawned().contains(&entry.pid)
        {
            exit::reap(pid);
        }
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn spawned() -> MutexGuard<'static, HashSet<i32>> {
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
