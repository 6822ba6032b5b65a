//! Which runs are removed, and removing them. Never one that is running, and none that could be resumed unless asked.

use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::app::find::Here;
use crate::app::undoing;
use crate::error::{UserError, io_reason};
use crate::git::remove_leftovers;
use crate::journal::place::PlaceState;
use crate::journal::{Outcome, RunDirectory, Store};
use crate::ui::RunState;
use crate::ui::history::{RunDetails, local};

/// Removes completed runs until this many runs are left.
pub(crate) fn retain(store: &Store, keep: u32) -> Result<(), UserError> {
    let here = Here::of(store.clone());
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let rule = Rule { older_than: None, keep: Some(keep), max_size: None, resumable: false };
    sweep(&here, &rule, Deed::Remove).map(|_| ())
}

pub(crate) struct Rule {
    pub older_than: Option<jiff::SignedDuration>,
    pub keep: Option<usize>,
    pub max_size: Option<u64>,
    /// Also those that could be resumed.
    pub resumable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Tell,
    Remove,
}

#[derive(Default)]
pub(crate) struct Swept {
    pub gone: Vec<Gone>,
    pub kept: usize,
    pub room: u64,
}

impl Swept {
    pub(crate) fn add(&mut self, other: Self) {
        self.gone.extend(other.gone);
        self.kept += other.kept;
        self.room += other.room;
    }
}

pub(crate) struct Gone {
    pub id: String,
    pub started: String,
    pub size: u64,
}

pub(crate) fn sweep(here: &Here, rule: &Rule, deed: Deed) -> Result<Swept, UserError> {
    let failed = |error: &io::Error| UserError::failed(format!("cannot list the runs: {}", io_reason(error)));
    let mut runs = here.store.runs().map_err(|error| failed(&error))?;
    runs.reverse();
    let mut swept = Swept::default();
    for run in &runs {
        if deed == Deed::Remove && !here.is_running(run) {
            remove_leftovers(&run.path);
        }
        let size = size(&run.path);
        // One that cannot be read is not known to be over.
        let known = here.details(run).ok();
        // Work that is not merged must not lose its run.
        let is_open = run.place().is_some_and(|place| place.state == PlaceState::Open);
        let is_over = !is_open
            && known.as_ref().is_some_and(|known| match known.state {
                RunState::Ended(Outcome::Complete) => true,
                RunState::Unfinished | RunState::Ended(_) => rule.resumable,
                _ => false,
            });
        let old = rule.older_than.is_some_and(|age| known.as_ref().is_some_and(|known| is_older(known, age)));
        let many = rule.keep.is_some_and(|most| swept.kept >= most);
        let large = rule.max_size.is_some_and(|most| swept.room + size > most);
        if is_over && (old || many || large) {
            if deed == Deed::Remove {
                undoing::forget(run, here.store.workspace());
                remove(run)?;
            }
            let started = local(known.and_then(|known| known.summary.started));
            swept.gone.push(Gone { id: run.id.clone(), started, size });
        } else {
            swept.kept += 1;
            swept.room += size;
        }
    }
    Ok(swept)
}

fn is_older(run: &RunDetails, age: jiff::SignedDuration) -> bool {
    let newest = run.summary.newest.or(run.summary.started);
    newest.is_some_and(|newest| Timestamp::now().duration_since(newest) > age)
}

/// The journal goes last: as long as it is there, what is left is a run.
fn remove(run: &RunDirectory) -> Result<(), UserError> {
    let failed =
        |error: &io::Error| UserError::failed(format!("cannot remove the run `{}`: {}", run.id, io_reason(error)));
    for part in ["raw", "prompts"] {
        match std::fs::remove_dir_all(run.path.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
            _ => {}
        }
    }
    std::fs::remove_dir_all(&run.path).map_err(|error| failed(&error))
}

fn size(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", count >> 20),
        _ => format!("{}.{} GiB", count >> 30, (count >> 20) % 1024 * 10 / 1024),
    }
}
