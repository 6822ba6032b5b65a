//! What runs of the past have left behind, found by the mark in its environment.
//!
//! Looks and tells only: whether a run is dead is the caller's knowledge, and what becomes of its strays a person's.

use super::table::{self, Table};
use super::{MARK, RUN_ID, Stray};

/// A process of a run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayOfRun {
    /// The run it belongs to.
    pub run: String,
    pub stray: Stray,
}

/// All processes of this user that carry the id of a run which is not alive.
pub fn strays(mut is_alive: impl FnMut(&str) -> bool) -> Vec<StrayOfRun> {
    let own = std::process::id().cast_signed();
    let mut found = Vec::new();
    for entry in Table::read().unwrap_or_default().all() {
        if entry.zombie || entry.pid == own {
            continue;
        }
        let Some(environment) = table::environment(entry.pid) else { continue };
        // Only what was started as an agent: a person may have set the id alone, to look at a run.
        let Some(run) = table::variable(&environment, RUN_ID).filter(|_| table::variable(&environment, MARK).is_some())
        else {
            continue;
        };
        let run = String::from_utf8_lossy(run).into_owned();
        if !is_alive(&run) {
            let stray = Stray { pid: entry.pid.unsigned_abs(), command: table::command(entry.pid) };
            found.push(StrayOfRun { run, stray });
        }
    }
    found
}
