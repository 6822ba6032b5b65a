//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ralph::process::guardian_main().unwrap_or(ExitCode::SUCCESS)
}
