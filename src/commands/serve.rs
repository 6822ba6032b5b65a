//! `ralph serve`: a live page of all runs, for the browser.

use std::time::Duration;

use crate::app::serving::{Page, Wanted, qr};
use crate::app::working_directory;
use crate::cli::Serve;
use crate::error::UserError;
use crate::process::{self, Invocation, runtime};
use crate::ui::out;
use crate::ui::web::Access;

pub(crate) fn run(args: &Serve) -> Result<u8, UserError> {
    let access = if args.read_only { Access::ReadOnly } else { Access::Steer };
    let page = Page::open(Wanted { bind: args.bind, port: args.port, token: args.token.clone(), access })?;
    // The reader may be gone.
    let _ = out::print(&format!("{}\n", page.address));
    if args.qr {
        let _ = out::print(&qr(&page.address).unwrap_or_default());
    }
    if !args.bind.is_loopback() {
        out::warn("anyone in your network who has this address can use the page; the connection is not encrypted");
    }
    if args.open {
        open(&page.address)?;
    }
    page.serve().map(|()| 0)
}

/// Opens the user's browser. A machine without one is no reason to stop.
fn open(address: &str) -> Result<(), UserError> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut invocation = Invocation::new(program, working_directory()?);
    invocation.args = vec![address.into()];
    invocation.leave_running = true;
    process::protect(process::own_program());
    let opened = runtime()?.block_on(process::capture(invocation, Duration::from_secs(10), 1024));
    if !opened.is_ok_and(|opened| opened.success()) {
        out::warn(format_args!("`{program}` could not open a browser: open the address yourself"));
    }
    Ok(())
}
