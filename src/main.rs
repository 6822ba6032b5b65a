//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    ralph::commands::dispatch(ralph::cli::Cli::parse())
}
