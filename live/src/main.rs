//! `cargo run -p live`: ralph against the real agent CLIs, at the versions in `package.json`, installed into the target
//! directory, with a scripted model on loopback.
//!
//! The CLIs never see the user's environment, home directory or keys.

mod capture;
mod checks;
mod clis;
mod doctor;
mod install;
mod interactive;
mod matrix;
mod merge;
mod place;
mod processes;
mod scenario;
mod sdk;
mod shapes;
mod soak;
mod stage;
mod trial;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use install::{SMALL, Version};
use matrix::{Cell, Plan};
use stage::Problem;

/// Checks ralph against the real agent CLIs
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Subcommand)]
enum What {
    /// Every CLI with every scenario; the table goes to `docs/compatibility.md` (the default)
    Matrix,
    /// What `ralph doctor` says of each CLI
    Doctor,
    /// Anthropic's own client with `demo-as-claude`, and with `codex-as-claude` and the real codex
    Sdk,
    /// Two CLIs in one run: a worktree, checks, a judge, and a merge. `--only WORKER,JUDGE`; claude and codex in both roles if not given
    Merge,
    /// `ralph run -i` on a terminal, with a script at the keys
    Interactive,
    /// 500 iterations of the demo agent and 50 of a real CLI, in one process each: nothing may grow
    Soak,
    /// Fixtures in the form of `tests/transcripts`, and what changed in the shape of events since the last version there
    Capture {
        /// Where to: `tests/transcripts` makes them fixtures, which then need their facts; a place of its own if not given
        #[arg(long, value_name = "DIRECTORY")]
        into: Option<std::path::PathBuf>,
    },
}

#[derive(Args)]
struct Choice {
    /// Only these CLIs
    #[arg(long, global = true, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these scenarios
    #[arg(long, global = true, value_delimiter = ',')]
    scenario: Vec<String>,
    /// The newest versions that the registry has, instead of the pinned ones
    #[arg(long, global = true)]
    latest: bool,
    /// Two CLIs, a few scenarios; continues where a registry cannot be reached
    #[arg(long, global = true)]
    short: bool,
    /// How many CLIs at once
    #[arg(long, global = true, default_value_t = 2)]
    jobs: usize,
}

impl Choice {
    fn version(&self) -> Version {
        if self.latest { Version::Latest } else { Version::Pinned }
    }

    fn clis(&self) -> Result<Vec<clis::Cli>, Problem> {
        let small = SMALL.map(str::to_owned);
        clis::table(if self.short && self.only.is_empty() { &small } else { &self.only })
    }

    fn scenarios(&self) -> Result<Vec<scenario::Scenario>, Problem> {
        let all = scenario::all()?;
        if let Some(name) = self.scenario.iter().find(|name| !all.iter().any(|known| known.name == **name)) {
            return Err(Problem::Wrong(format!("no scenario `{name}`")));
        }
        let wanted = |one: &scenario::Scenario| match self.scenario.as_slice() {
            [] => one.short || !self.short,
            named => named.iter().any(|name| name == one.name),
        };
        Ok(all.into_iter().filter(wanted).collect())
    }
}

fn main() -> ExitCode {
    let line = Line::parse();
    let done = match line.what.unwrap_or(What::Matrix) {
        What::Matrix => play(&line.choice),
        What::Sdk => consume(&line.choice),
        What::Merge => merge_with(&line.choice),
        What::Soak => {
            let length = if line.choice.short {
                soak::Length { demo: 60, real: 0 }
            } else {
                soak::Length { demo: 500, real: 50 }
            };
            soak::run(&length, &line.choice.only)
        }
        What::Capture { into } => line
            .choice
            .clis()
            .and_then(|clis| capture::run(&clis, &line.choice.scenarios()?, line.choice.version(), into.as_deref())),
        What::Interactive => line.choice.clis().and_then(|clis| interactive::run(&clis, line.choice.version())),
        What::Doctor => line.choice.clis().and_then(|mut clis| {
            clis.retain(|cli| cli.absent.is_none());
            doctor::run(&clis, line.choice.version())
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // What cannot be had cannot be looked at; that is no fault of this tree.
        Err(Problem::Unavailable(why)) if line.choice.short => {
            println!("skipped: {why}");
            ExitCode::SUCCESS
        }
        Err(Problem::Unavailable(why) | Problem::Wrong(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn play(choice: &Choice) -> Result<(), Problem> {
    let plan = Plan {
        clis: choice.clis()?,
        scenarios: choice.scenarios()?,
        version: choice.version(),
        jobs: choice.jobs.max(1),
    };
    let rows = matrix::play(&plan)?;
    let document = matrix::document(&rows, &plan.scenarios);
    // A part of the table is not the table.
    if choice.only.is_empty() && choice.scenario.is_empty() && !choice.short && !choice.latest {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md");
        std::fs::write(&file, &document).map_err(|error| Problem::Wrong(format!("{}: {error}", file.display())))?;
    }
    println!("\n{document}");
    let wrong = rows.iter().flat_map(|row| &row.cells).filter(|cell| matches!(cell, Cell::Bad(_))).count();
    if wrong > 0 { Err(Problem::Wrong(format!("{wrong} cells are not as they should be"))) } else { Ok(()) }
}

fn merge_with(choice: &Choice) -> Result<(), Problem> {
    let given: Vec<&str> = choice.only.iter().map(String::as_str).collect();
    let pairs: Vec<Vec<&str>> = match (given.is_empty(), choice.short) {
        (true, true) => vec![SMALL.to_vec()],
        (true, false) => vec![vec!["claude", "codex"], vec!["codex", "claude"]],
        (false, _) => vec![given],
    };
    for pair in pairs {
        let clis: Result<Vec<_>, Problem> =
            pair.iter().map(|name| Ok(clis::table(&[(*name).to_owned()])?.swap_remove(0))).collect();
        merge::run(&clis?, choice.version())?;
    }
    Ok(())
}

fn consume(choice: &Choice) -> Result<(), Problem> {
    // The short form brings no CLI.
    if choice.short {
        return sdk::run(&[]);
    }
    let codex = ["codex".to_owned()];
    sdk::run(&clis::table(if choice.only.is_empty() { &codex } else { &choice.only })?)
}
