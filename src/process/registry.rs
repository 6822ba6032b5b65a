//! What this operating-system process as a whole owns: its agents, and the orphans that come to it.
//!
//! Adoption of orphans is an attribute of a whole process, so this is the one place with state shared by all agents.
//! It must never claim a child that somebody else in this process may have spawned.

use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::table::{self, Entry};
use super::{exit, guardian};

/// Children that were spawned here and are not yet reaped; everything else that is our child came as an orphan.
static SPAWNED: LazyLock<Mutex<HashMap<i32, Kind>>> = LazyLock::new(Mutex::default);

/// True when orphans of the trees come to this process.
static REAPER: LazyLock<bool> = LazyLock::new(become_reaper);

/// True when every child of this process was spawned by this room or is an orphan of an agent.
static EXCLUSIVE: AtomicBool = AtomicBool::new(false);

/// How often the table is searched for dead orphans, at most.
const REAP: Duration = Duration::from_secs(5);

/// What a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The root of a tree.
    Agent,
    /// The process that outlives us for a moment.
    Guardian,
}

/// Puts this whole process under protection; the binary calls it, once, before the first agent.
///
/// From then on a guardian watches over the agents, and each unknown child of this process that has left its session
/// counts as an agent's orphan. So the caller promises that nothing outside of this room starts such processes: a test
/// process, whose tests spawn as they like, cannot. `program` is a program that calls [`guardian_main`](super::guardian_main)
/// first thing.
pub fn protect(program: impl Into<std::path::PathBuf>) {
    EXCLUSIVE.store(true, Ordering::Relaxed);
    guardian::install(program.into());
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
pub(super) fn spawn(command: &mut Command, kind: Kind) -> io::Result<Child> {
    let mut spawned = spawned();
    let child = command.spawn()?;
    spawned.insert(child.id().cast_signed(), kind);
    Ok(child)
}

/// Forgets a child that is reaped.
pub(super) fn remove(pid: i32) {
    spawned().remove(&pid);
}

/// True for a process whose parents are gone: the adopter has it now.
pub(super) fn may_be_orphan(entry: &Entry) -> bool {
    if *REAPER { entry.parent == own_pid() } else { entry.parent <= 1 }
}

/// True for an orphan that can only come from the agent `root`, because there is no other.
pub(super) fn belongs_by_exclusion(entry: &Entry, root: i32) -> bool {
    let spawned = spawned();
    is_foreign(entry, &spawned) && spawned.iter().all(|(pid, kind)| *pid == root || *kind == Kind::Guardian)
}

/// Reaps orphans that have died, now and then: an agent that runs for hours may leave thousands.
pub(super) fn reap_orphans() {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < REAP) {
            return;
        }
        *last = Some(Instant::now());
    }
    let entries = table::read().unwrap_or_default();
    let spawned = spawned();
    for entry in entries.iter().filter(|entry| entry.zombie && entry.parent == own_pid()) {
        let of_an_agent = [entry.group, entry.session].iter().any(|leader| spawned.contains_key(leader));
        let ours = is_foreign(entry, &spawned) || (of_an_agent && !spawned.contains_key(&entry.pid));
        if let Some(pid) = Pid::from_raw(entry.pid).filter(|_| ours) {
            exit::reap(pid);
        }
    }
}

/// True for a child that nobody here has spawned. One that shares our session may be anybody's; agents are not in it.
fn is_foreign(entry: &Entry, spawned: &HashMap<i32, Kind>) -> bool {
    EXCLUSIVE.load(Ordering::Relaxed)
        && entry.parent == own_pid()
        && !spawned.contains_key(&entry.pid)
        && rustix::process::getsid(None).is_ok_and(|own| own.as_raw_nonzero().get() != entry.session)
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn spawned() -> MutexGuard<'static, HashMap<i32, Kind>> {
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
