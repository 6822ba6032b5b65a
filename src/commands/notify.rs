//! `ralph notify --test`: sends one notification, so that a mistake is found before the night.

use crate::app::{notify::notify, repository, working_directory};
use crate::cli::Notify;
use crate::config;
use crate::error::{UserError, exit_code};
use crate::process::{self, runtime};

/// Sends it by every configured channel; the exit code says whether all of them worked.
pub(crate) fn run(args: &Notify) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    let settings = config::environment().over(file.layer.clone()).settle();
    repository::consent(&settings, &file, &workspace)?;
    process::protect(process::own_program());
    let sent = runtime()?.block_on(notify(&settings).test(&workspace));
    if sent.is_empty() {
        return Err(UserError::usage("no notifications are configured")
            .hint("set `notify.command`, `notify.slack`, `notify.ntfy.topic` or another channel in `ralph.yml`"));
    }
    let mut failed = false;
    for (channel, result) in sent {
        let line = match result {
            Ok(()) => format!("sent: {channel}"),
            Err(reason) => format!("failed: {reason}"),
        };
        failed |= line.starts_with("failed");
        // The reader may be gone.
        let _ = crate::ui::out::print(&format!("{line}\n"));
    }
    Ok(if failed { exit_code::FAILED } else { exit_code::COMPLETE })
}
