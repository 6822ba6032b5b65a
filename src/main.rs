//! The binary: parse, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The same binary guards the agents of another ralph, when that one dies.
    if let Some(code) = ralph::process::guardian_main() {
        return code;
    }
    // Or it is the last step before a command in a sandbox.
    if let Some(code) = ralph::process::inside_main() {
        return code;
    }
    ralph::process::forbid_inspection();
    ralph::process::keep_freed_memory();
    // By another name it plays Claude Code.
    if let Some(code) = ralph::commands::by_name() {
        return code;
    }
    ralph::commands::command_line().map_or_else(|code| code, ralph::commands::dispatch)
}
