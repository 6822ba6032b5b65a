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
        words if !is_wanted(words) => ExitCode::SUCCESS,
        words if words.contains(&"--list") => {
            println!("chaos: test");
            ExitCode::SUCCESS
        }
        words => stage::main(option(words, "--agents").unwrap_or(50), option(words, "--seed")),
    }
}

/// Test runners name the tests they want, by a part of the name, and the ignored ones apart.
fn is_wanted(words: &[&str]) -> bool {
    let value_follows = |word: &&str| matches!(*word, "--agents" | "--seed" | "--skip" | "--format" | "--test-threads");
    let mut filters = words.iter().enumerate().filter(|(index, word)| {
        !word.starts_with('-') && !index.checked_sub(1).is_some_and(|before| value_follows(&words[before]))
    });
    let is_named = filters.clone().count() == 0 || filters.any(|(_, word)| "chaos".contains(word));
    is_named && !words.contains(&"--ignored") && !words.windows(2).any(|pair| pair == ["--skip", "chaos"])
}

fn option(words: &[&str], name: &str) -> Option<u64> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1)?.parse().ok()
}
