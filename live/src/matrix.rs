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
    /// In the order of the scenarios; none where it could not be installed.
    pub cells: Vec<Cell>,
    /// What its output does not tell.
    pub lacks: Vec<String>,
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
        let lacks = cli.lacks.values().cloned().collect();
        let mut row = Row { agent: cli.agent.clone(), version: Err(String::new()), cells: Vec::new(), lacks };
        if let Some(why) = &cli.absent {
            row.version = Err(why.clone());
            rows.push(row);
            continue;
        }
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
    let login = cli.login.as_ref().filter(|_| !scenario.without_login);
    if let Some(why) = login.or(cli.cannot.get(scenario.name)) {
        return Cell::Not(why.clone());
    }
    if scenario.permission == Permission::Denied && cli.denied.is_none() {
        return Cell::Not("no rule that forbids its shell is set up in `live/clis.yml`".to_owned());
    }
    match trial::play(stage, ralph, cli, installed, scenario) {
        Err(error) => Cell::Bad(vec![error.to_string()]),
        Ok(seen) => {
            let wrong = checks::faults(cli, scenario, &seen);
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
    let mut notes = Notes::default();
    for row in rows {
        let version = match &row.version {
            Ok(version) => {
                format!("{version}{}", row.lacks.iter().map(|why| notes.sign(&row.agent, why)).collect::<String>())
            }
            Err(why) => format!("not to be had{}", notes.sign(&row.agent, why)),
        };
        let mut cells: Vec<String> = Vec::new();
        for (cell, name) in row.cells.iter().zip(&names) {
            cells.push(match cell {
                Cell::Good(took) => format!("✓ {:.0} s", took.as_secs_f64().max(1.0)),
                Cell::Bad(wrong) => format!("✗{}", notes.sign(&row.agent, &format!("`{name}`: {}", wrong.join("; ")))),
                Cell::Not(why) => format!("–{}", notes.sign(&row.agent, why)),
            });
        }
        cells.resize(names.len(), "–".to_owned());
        let _ = writeln!(text, "| {} | {version} | {} |", row.agent, cells.join(" | "));
    }
    let notes = notes.0;
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

/// Notes below the table, each once.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// The number of a note.
    fn sign(&mut self, agent: &str, why: &str) -> String {
        let note = format!("{agent}: {why}");
        let at = self.0.iter().position(|known| *known == note).unwrap_or_else(|| {
            self.0.push(note);
            self.0.len() - 1
        });
        format!(" [{}]", at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_is_wrong_what_cannot_be_played_and_what_is_not_to_be_had() {
        let row = |agent: &str, version: Result<String, String>, cells: Vec<Cell>| Row {
            agent: agent.to_owned(),
            version,
            cells,
            lacks: Vec::new(),
        };
        let rows = [
            row(
                "one",
                Ok("1.0".to_owned()),
                vec![Cell::Good(Duration::from_secs(7)), Cell::Bad(vec!["internal error".to_owned()])],
            ),
            row("two", Ok("2.0".to_owned()), vec![Cell::Not("no rules".to_owned()), Cell::Not("no rules".to_owned())]),
            row("three", Err("no registry has it".to_owned()), Vec::new()),
        ];
        let scenarios: Vec<Scenario> = crate::scenario::all().ok().into_iter().flatten().take(2).collect();
        let text = document(&rows, &scenarios);
        assert!(text.contains("| one | 1.0 | ✓ 7 s | ✗ [1] |"), "{text}");
        assert!(text.contains("| two | 2.0 | – [2] | – [2] |"), "{text}");
        assert!(text.contains("| three | not to be had [3] | – | – |"), "{text}");
        assert!(
            text.contains("1. one: `resume`: internal error\n2. two: no rules\n3. three: no registry has it\n"),
            "{text}"
        );
    }
}
