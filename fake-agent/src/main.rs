//! `fake-agent SCRIPT [anything]`: plays one iteration of a script. Further arguments are only recorded.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if fake_agent::is_child(first) => fake_agent::child(rest),
        Some((script, rest)) => fake_agent::play(Path::new(script), rest),
        None => Err("usage: `fake-agent SCRIPT [ARGUMENT]...`".into()),
    };
    outcome.map_or_else(
        |error| {
            eprintln!("fake-agent: {error}");
            ExitCode::from(2)
        },
        ExitCode::from,
    )
}
