//! Whether a process was started by this one, directly or not, and whether it runs.

use super::mark::Mark;
use super::{registry, table};

/// More ancestors than this are a loop in a table that changed while it was read.
const MOST_ANCESTORS: usize = 10_000;

/// False for a process that is gone, or dead and not yet reaped.
pub(crate) fn is_alive(pid: i32) -> bool {
    let there = rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    // A process of another user is alive, too, and may be hidden.
    there && table::entry(pid).is_none_or(|entry| !entry.zombie)
}

/// True when the process comes from an agent, a check or anything else that this process started. As a subreaper this
/// process is the parent of their orphans, so that their line always leads here. What cannot be seen counts as ours.
pub(crate) fn is_descendant(pid: i32) -> bool {
    let own = std::process::id().cast_signed();
    if pid == own {
        return false;
    }
    if Mark::all_on(pid).is_some_and(|marks| marks.into_iter().any(registry::is_tree)) {
        return true;
    }
    let mut at = pid;
    for _ in 0..MOST_ANCESTORS {
        match table::entry(at) {
            Some(entry) if entry.parent == own => return true,
            Some(entry) if entry.parent <= 1 => return false,
            Some(entry) => at = entry.parent,
            // It is gone, or hidden: nobody can say that it is not ours.
            None => return at == pid,
        }
    }
    true
}
