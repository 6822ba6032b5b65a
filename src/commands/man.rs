//! `ralph man`: the manual pages, from the same definitions as the help.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::{Cli, Man};
use crate::error::{UserError, io_reason};
use crate::ui::out;

/// Prints the page of `ralph`, or writes the pages of all subcommands.
pub(crate) fn run(args: &Man) -> Result<u8, UserError> {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| UserError::failed(format!("cannot write the page: {}", io_reason(&error))))?;
        // The reader may be gone.
        let _ = out::stdout().write_all(&page);
        return Ok(0);
    };
    let place = directory.display();
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| UserError::usage(format!("cannot write the pages to `{place}`: {}", io_reason(&error))))?;
    let _ = out::print(&format!("the manual pages are in `{place}`; read one with `man {place}/ralph.1`\n"));
    Ok(0)
}
