//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // The same binary guards the agents of another ralph, when that one dies.
    if let Some(code) = ralph::process::guardian_main() {
        return code;
    }
    // By another name it plays Claude Code.
    if let Some(code) = ralph::commands::by_name() {
        return code;
    }
    ralph::commands::dispatch(ralph::cli::Cli::parse())
}
