//! `ralph clean`: removes old runs. Never one that is under way, and none that could be resumed unless told so.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::find::{Here, print};
use crate::cli::history::Clean;
use crate::error::{UserError, io_reason};
use crate::journal::{RunDirectory, Store};
use crate::ui::history::{Standing, Told, local};

/// Removes what is too old, too many or too large.
pub fn run(args: &Clean) -> Result<u8, UserError> {
    if args.older_than.is_none() && args.keep.is_none() && args.max_size.is_none() {
        return Err(UserError::usage("say which runs to remove: `--older-than`, `--keep` or `--max-size`")
            .hint("with `--dry-run` they are only shown"));
    }
    let here = Here::find()?;
    let rule =
        Rule { older_than: args.older_than, keep: args.keep, max_size: args.max_size, unfinished: args.unfinished };
    let deed = if args.dry_run { Deed::Tell } else { Deed::Remove };
    let swept = sweep(&here, &rule, deed)?;
    let (verb, what) = match deed {
        Deed::Tell => ("would remove", "would be removed"),
        Deed::Remove => ("removed", "removed"),
    };
    let mut text = String::new();
    for Gone { id, started, size } in &swept.gone {
        let _ = writeln!(text, "{verb} {id}  {started}  {}", bytes(*size));
    }
    let freed = swept.gone.iter().map(|gone| gone.size).sum();
    let _ =
        writeln!(text, "{} {what} ({}), {} kept ({})", swept.gone.len(), bytes(freed), swept.kept, bytes(swept.room));
    print(&text)
}

/// Removes runs that are over until so many are left. `running` is the one that asks.
pub fn retain(store: &Store, running: &str, keep: u32) -> Result<(), UserError> {
    let here = Here { store: store.clone(), running: Some(running.to_owned()) };
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let rule = Rule { older_than: None, keep: Some(keep), max_size: None, unfinished: false };
    sweep(&here, &rule, Deed::Remove).map(|_| ())
}

/// Which runs go.
struct Rule {
    older_than: Option<jiff::SignedDuration>,
    keep: Option<usize>,
    max_size: Option<u64>,
    unfinished: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Tell,
    Remove,
}

/// What came of it.
#[derive(Default)]
struct Swept {
    gone: Vec<Gone>,
    kept: usize,
    room: u64,
}

struct Gone {
    id: String,
    started: String,
    size: u64,
}

fn sweep(here: &Here, rule: &Rule, deed: Deed) -> Result<Swept, UserError> {
    let failed = |error: &io::Error| UserError::failed(format!("cannot list the runs: {}", io_reason(error)));
    let mut runs = here.store.runs().map_err(|error| failed(&error))?;
    runs.reverse();
    let mut swept = Swept::default();
    for run in &runs {
        let size = size(&run.path);
        // One that cannot be read is not known to be over.
        let told = here.tell(run).ok();
        let is_over = told.as_ref().is_some_and(|told| match told.standing {
            Standing::Running => false,
            Standing::Unfinished => rule.unfinished,
            Standing::Ended(_) => true,
        });
        let old = rule.older_than.is_some_and(|age| told.as_ref().is_some_and(|told| is_older(told, age)));
        let many = rule.keep.is_some_and(|most| swept.kept >= most);
        let large = rule.max_size.is_some_and(|most| swept.room + size > most);
        if is_over && (old || many || large) {
            if deed == Deed::Remove {
                remove(run)?;
            }
            let started = local(told.and_then(|told| told.summary.started));
            swept.gone.push(Gone { id: run.id.clone(), started, size });
        } else {
            swept.kept += 1;
            swept.room += size;
        }
    }
    Ok(swept)
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
