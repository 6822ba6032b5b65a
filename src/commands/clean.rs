//! `ralph clean`: removes old runs and abandoned worktrees. Never one that is running, and none that could be resumed unless `--all` is given.

use std::fmt::Write as _;

use crate::app::clean::{Deed, Gone, Rule, Swept, bytes, sweep};
use crate::app::find::{Here, print};
use crate::app::worktrees;
use crate::cli::history::Clean;
use crate::error::UserError;
use crate::process;

/// Removes what is too old, too many or too large.
pub(crate) fn run(args: &Clean) -> Result<u8, UserError> {
    let deed = if args.dry_run { Deed::Tell } else { Deed::Remove };
    if args.worktrees {
        process::protect(process::own_program());
        print(&worktrees::sweep(deed)?)?;
    }
    if args.older_than.is_none() && args.keep.is_none() && args.max_size.is_none() {
        if args.worktrees {
            return Ok(0);
        }
        return Err(UserError::usage("say what to remove: `--older-than`, `--keep`, `--max-size` or `--worktrees`")
            .hint("`--dry-run` shows them and removes nothing"));
    }
    let here = Here::find()?;
    let rule = Rule { older_than: args.older_than, keep: args.keep, max_size: args.max_size, resumable: args.all };
    let mut swept = Swept::default();
    for here in here.with_worktrees() {
        swept.add(sweep(&here, &rule, deed)?);
    }
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
