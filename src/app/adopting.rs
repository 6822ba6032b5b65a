//! A run that began on another machine continues here: with its journal and what its loop remembers, and with the settings of this machine.

use std::time::Duration;

use crate::cli::place::PlaceArgs;
use crate::config::Settings;
use crate::control::Order;
use crate::error::{UserError, io_reason};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::{Journal, RunDirectory, Store, Summary, reader};
use crate::run::{Memory, Plan, memory_of};
use crate::user_file;

/// The largest journal that is taken over.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// The directory of the run: a new one, or one with the id that the run has elsewhere.
pub(crate) fn directory(place: &PlaceArgs, store: &Store) -> std::io::Result<RunDirectory> {
    match &place.task_run {
        Some(id) => store.create_run_with(id),
        None => store.create_run(),
    }
}

/// The journal, what it says and what the loop remembers.
pub(crate) fn journal(
    place: &PlaceArgs,
    directory: &RunDirectory,
    settings: &Settings,
    plan: &mut Plan,
) -> Result<(Journal, Summary, Memory), UserError> {
    let unusable = |error: std::io::Error| super::execute::unusable(&directory.path, &error);
    let Some(path) = &place.task_journal else {
        let journal = Journal::create(&directory.journal()).map_err(unusable)?;
        return Ok((journal, Summary::default(), Memory::default()));
    };
    let wrong = |error: std::io::Error| {
        UserError::usage(format!("cannot continue from `{}`: {}", path.display(), io_reason(&error)))
    };
    let bytes = user_file::read(path, MOST_BYTES).map_err(wrong)?;
    RealDisk.replace(&directory.journal(), &bytes).map_err(unusable)?;
    let last = reader::last(&directory.journal()).map_err(wrong)?;
    let summary = Summary::of(directory).map_err(wrong)?;
    let mut memory = memory_of(&summary, last.at);
    // Sessions of agents are on the other machine.
    memory.sessions = Memory::default().sessions;
    if let Some(again) = &place.task_again {
        memory.orders.max_iterations = Some(memory.state.iterations.saturating_add(settings.max_iterations.value));
        let elapsed = Duration::from_millis(memory.elapsed_ms);
        memory.orders.max_seconds = Some((elapsed + settings.max_time.value).as_secs() + 1);
        if let Some(path) = again {
            let words = user_file::read_text(path, user_file::MOST_BYTES).map_err(wrong)?;
            plan.orders.push(Order::Hint { words });
        }
    }
    // The work of the last iteration is here, but its checks may not have been heard: it gets one more iteration at least.
    let most = memory.orders.max_iterations.unwrap_or(plan.policy.max_iterations);
    memory.orders.max_iterations = Some(most.max(memory.state.iterations.saturating_add(1)));
    plan.notices.push("continued from another worker".to_owned());
    let journal = Journal::reopen(&RealDisk, &directory.journal()).map_err(unusable)?;
    Ok((journal, summary, memory))
}
