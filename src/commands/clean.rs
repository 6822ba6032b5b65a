//! `ralph clean`: removes old runs. Never one that is running, and none that could be resumed unless `--all` is given.

use std::fmt::Write as _;

use crate::app::clean::{Deed, Gone, Rule, bytes, sweep};
use crate::app::find::{Here, print};
use crate::cli::history::Clean;
use crate::error::UserError;

/// Removes what is too old, too many or too large.
pub(crate) fn run(args: &Clean) -> Result<u8, UserError> {
    if args.older_than.is_none() && args.keep.is_none() && args.max_size.is_none() {
        return Err(UserError::usage("say which runs to remove: `--older-than`, `--keep` or `--max-size`")
            .hint("`--dry-run` shows them and removes nothing"));
    }
    let here = Here::find()?;
    let rule = Rule { older_than: args.older_than, keep: args.keep, max_size: args.max_size, resumable: args.all };
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
