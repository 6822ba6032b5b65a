//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    ralph::process::guardian_main().unwrap_or_else(|| ralph::commands::dispatch(ralph::cli::Cli::parse()))
}
