//! Whether a process was started by this one, directly or not.

use super::mark::Mark;
use super::{registry, table};

/// More ancestors than this are a loop in a table that changed while it was read.
const MOST_ANCESTORS: usize = 10_000;

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
