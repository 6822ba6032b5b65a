//! Chaos: hundreds of misbehaving agents, random stops, and ralph itself killed under a fifth of them. Afterwards no
//! process is left, no zombie, every raw file is complete up to the kill, and every outcome is classed right.
//!
//!     cargo test --release --test chaos -- --agents 500 [--seed N]
//!
//! Without arguments it plays a short form. The seed is printed and decides who does what; when it happens is up to
//! the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation, missing_docs)]
// Leaving children behind is what these agents are for.
#![allow(clippy::zombie_processes)]

#[path = "chaos/agent.rs"]
mod agent;
#[path = "chaos/check.rs"]
mod check;
#[path = "chaos/host.rs"]
mod host;
#[path = "chaos/plan.rs"]
mod plan;
#[path = "chaos/stage.rs"]
mod stage;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The stand-in for ralph is this program, and so is its guardian.
    if let Some(code) = ralph::process::guardian_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agent", rest @ ..] => agent::main(rest),
        ["host", rest @ ..] => host::main(rest),
        // Test runners ask for a list of tests first.
        words if words.contains(&"--list") => {
            if !words.contains(&"--ignored") {
                println!("chaos: test");
            }
            ExitCode::SUCCESS
        }
        words => stage::main(option(words, "--agents").unwrap_or(50), option(words, "--seed")),
    }
}

fn option(words: &[&str], name: &str) -> Option<u64> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1)?.parse().ok()
}
