//! `cargo run -p live -- doctor [--short]`: installs the agent CLIs that npm has, at the versions in `package.json`, into the
//! target directory, and looks at them with `ralph doctor` and `ralph agents`.
//!
//! The CLIs never see the user's environment, home directory or keys.

mod doctor;
mod install;
mod stage;

use std::process::ExitCode;

use install::Extent;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let extent = match words.as_slice() {
        ["doctor"] => Extent::All,
        ["doctor", "--short"] => Extent::Short,
        _ => {
            eprintln!("usage: cargo run -p live -- doctor [--short]");
            return ExitCode::from(2);
        }
    };
    match doctor::run(extent) {
        Ok(()) => ExitCode::SUCCESS,
        // What cannot be had cannot be looked at; that is no fault of this tree.
        Err(stage::Problem::Unavailable(why)) if extent == Extent::Short => {
            println!("skipped: {why}");
            ExitCode::SUCCESS
        }
        Err(stage::Problem::Unavailable(why) | stage::Problem::Wrong(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
