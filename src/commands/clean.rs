//! `ralph clean`: removes old runs. Never one that is under way, and none that could be resumed unless told so.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::find::{Here, print};
use crate::cli::history::Clean;
use crate::error::{UserError, io_reason};
use crate::journal::RunDirectory;
use crate::ui::history::{Standing, Told, local};

/// Removes what is too old, too many or too large.
pub fn run(args: &Clean) -> Result<u8, UserError> {
    if args.older_than.is_none() && args.keep.is_none() && args.max_size.is_none() {
        return Err(UserError::usage("say which runs to remove: `--older-than`, `--keep` or `--max-size`")
            .hint("with `--dry-run` they are only shown"));
    }
    let here = Here::find()?;
    let failed = |error: &io::Error| UserError::failed(format!("cannot list the runs: {}", io_reason(error)));
    let mut runs = here.store.runs().map_err(|error| failed(&error))?;
    runs.reverse();
    let mut text = String::new();
    let (mut kept, mut room, mut freed, mut removed) = (0, 0, 0, 0);
    for run in &runs {
        let size = size(&run.path);
        // One that cannot be read is not known to be over.
        let told = here.tell(run).ok();
        let is_over = told.as_ref().is_some_and(|told| match told.standing {
            Standing::Running => false,
            Standing::Unfinished => args.unfinished,
            Standing::Ended(_) => true,
        });
        let old = args.older_than.is_some_and(|age| told.as_ref().is_some_and(|told| is_older(told, age)));
        let many = args.keep.is_some_and(|most| kept >= most);
        let large = args.max_size.is_some_and(|most| room + size > most);
        if is_over && (old || many || large) {
            if !args.dry_run {
                remove(run)?;
            }
            let verb = if args.dry_run { "would remove" } else { "removed" };
            let started = local(told.as_ref().and_then(|told| told.summary.started));
            let _ = writeln!(text, "{verb} {}  {started}  {}", run.id, bytes(size));
            freed += size;
            removed += 1;
        } else {
            kept += 1;
            room += size;
        }
    }
    let what = if args.dry_run { "would be removed" } else { "removed" };
    let _ = writeln!(text, "{removed} {what} ({}), {kept} kept ({})", bytes(freed), bytes(room));
    print(&text)
}

fn is_older(told: &Told, age: jiff::SignedDuration) -> bool {
    let newest = told.summary.newest.or(told.summary.started);
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

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..0x10_0000 => format!("{} KiB", count >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", count >> 20),
        _ => format!("{}.{} GiB", count >> 30, (count >> 20) % 1024 * 10 / 1024),
    }
}
