//! The matrix: every CLI with every scenario, the table on the screen and in `docs/compatibility.md`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clis::Cli;
use crate::install::{Installed, Version, install};
use crate::scenario::{Permission, Scenario};
use crate::stage::{Problem, Stage};
use crate::{checks, trial};

/// What became of one cell.
#[derive(Clone)]
pub enum Cell {
    /// All as it should be.
    Good(Duration),
    /// What is not.
    Bad(Vec<String>),
    /// Cannot be played, and why.
    Not(String),
}

/// One CLI with its cells.
pub struct Row {
    /// The agent.
    pub agent: String,
    /// The version, or why there is none.
    pub version: Result<String, String>,
    /// In the order of the scenarios.
    pub cells: Vec<Cell>,
}

/// What to play.
pub struct Plan {
    /// These CLIs.
    pub clis: Vec<Cli>,
    /// These scenarios.
    pub scenarios: Vec<Scenario>,
    /// At this version.
    pub version: Version,
    /// So many CLIs at once.
    pub jobs: usize,
}

/// Plays all of it. The rows are in the order of the CLIs.
pub fn play(plan: &Plan) -> Result<Vec<Row>, Problem> {
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    let mut waiting = VecDeque::new();
    let mut rows = Vec::new();
    for (at, cli) in plan.clis.iter().enumerate() {
        let mut row = Row { agent: cli.agent.clone(), version: Err(String::new()), cells: Vec::new() };
        match install(&stage, cli, plan.version) {
            Ok(installed) => {
                row.version = Ok(installed.version.clone());
                waiting.push_back((at, cli, installed));
            }
            Err(Problem::Unavailable(why)) => row.version = Err(why),
            Err(problem) => return Err(problem),
        }
        rows.push(row);
    }
    if waiting.is_empty() {
        return Err(Problem::Unavailable("none of the CLIs could be installed".to_owned()));
    }
    let (waiting, finished) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((at, cli, installed)) = next else { break };
                    let cells = row(&stage, &ralph, cli, &installed, &plan.scenarios);
                    finished.lock().unwrap_or_else(PoisonError::into_inner).push((at, cells));
                }
            });
        }
    });
    for (at, cells) in finished.into_inner().unwrap_or_else(PoisonError::into_inner) {
        rows[at].cells = cells;
    }
    Ok(rows)
}

fn row(stage: &Stage, ralph: &Path, cli: &Cli, installed: &Installed, scenarios: &[Scenario]) -> Vec<Cell> {
    scenarios
        .iter()
        .map(|scenario| {
            let begun = Instant::now();
            let cell = cell(stage, ralph, cli, installed, scenario);
            let said = match &cell {
                Cell::Good(_) => "ok".to_owned(),
                Cell::Bad(wrong) => format!("WRONG: {}", wrong.join("; ")),
                Cell::Not(why) => format!("not played: {why}"),
            };
            println!("{:<9} {:<13} {:>5.1} s  {said}", cli.agent, scenario.name, begun.elapsed().as_secs_f64());
            cell
        })
        .collect()
}

fn cell(stage: &Stage, ralph: &Path, cli: &Cli, installed: &Installed, scenario: &Scenario) -> Cell {
    if let Some(why) = cli.login.as_ref().or(cli.cannot.get(scenario.name)) {
        return Cell::Not(why.clone());
    }
    if scenario.permission == Permission::Denied && cli.denied.is_none() {
        return Cell::Not("it has no rule that forbids a tool it offers".to_owned());
    }
    match trial::play(stage, ralph, cli, installed, scenario) {
        Err(error) => Cell::Bad(vec![error.to_string()]),
        Ok(seen) => {
            let wrong = checks::faults(scenario, &seen);
            if wrong.is_empty() { Cell::Good(seen.took) } else { Cell::Bad(wrong) }
        }
    }
}

/// The document.
pub fn document(rows: &[Row], scenarios: &[Scenario]) -> String {
    let mut text = String::from(
        "# Compatibility\n\nMade by `cargo run -p live`: each cell is one `ralph run` with the real CLI in a fresh git repository and a fresh\nhome, against a scripted model on loopback (`fake-model/`). Seconds are those of the whole run on a machine with two cores. Checked in\neach: exit code, iterations, final files, events, no process left, no hang, a complete journal.\n\n",
    );
    let today = jiff::Zoned::now().date();
    let _ =
        writeln!(text, "Played on {today} with ralph {}, on {}.\n", env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
    let _ = writeln!(text, "| agent | version | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(names.len()));
    let mut notes = Vec::new();
    for row in rows {
        let version = row.version.clone().unwrap_or_else(|why| {
            notes.push(format!("{}: {why}", row.agent));
            format!("not installed [{}]", notes.len())
        });
        let cells: Vec<String> = row
            .cells
            .iter()
            .zip(&names)
            .map(|(cell, name)| {
                let mut note = |sign: &str, why: String| {
                    let whole = format!("{}: {why}", row.agent);
                    let at = notes.iter().position(|note| *note == whole).unwrap_or_else(|| {
                        notes.push(whole);
                        notes.len() - 1
                    });
                    format!("{sign} [{}]", at + 1)
                };
                match cell {
                    Cell::Good(took) => format!("✓ {:.0} s", took.as_secs_f64().max(1.0)),
                    Cell::Bad(wrong) => note("✗", format!("`{name}`: {}", wrong.join("; "))),
                    Cell::Not(why) => note("–", why.clone()),
                }
            })
            .collect();
        let _ = writeln!(text, "| {} | {version} | {} |", row.agent, cells.join(" | "));
    }
    if !notes.is_empty() {
        text.push('\n');
        for (at, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "{}. {note}", at + 1);
        }
    }
    text.push_str("\n| scenario | what happens |\n|---|---|\n");
    for scenario in scenarios {
        let _ = writeln!(text, "| {} | {} |", scenario.name, scenario.about);
    }
    text
}
