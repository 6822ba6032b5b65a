//! `ralph run -i` with a real CLI on a terminal, and a script at the keys: the prompt arrives, the answer is drawn, Ctrl-C
//! is the CLI's, its end is seen, its words are in the journal, and the terminal is given back.
//!
//! Every step has a bound, and whatever it started is ended when it returns.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fake_model::{Bounds, Scenario, Server};
use fake_terminal::{Program, Size};
use serde_json::Value;

use crate::clis::{Cli, Interactive};
use crate::install::{Installed, Version, install};
use crate::place::Place;
use crate::place::only_run;
use crate::stage::{Problem, Stage};
use crate::{processes, trial};

const PROMPT: &str = "Say what the script says.";
const ANSWER: &str = "The answer is drawn.";
const SCRIPT: &str = "
turns:
  - text: The answer is drawn.
  - fault: {kind: hang, times: 1}
";

/// CLIs draw late on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What ends a run soon ends it within this.
const SOON: Duration = Duration::from_secs(20);
/// Two presses of Ctrl-C within a second would be for ralph.
const APART: Duration = Duration::from_millis(1200);

/// Plays it with each CLI that says how.
pub fn run(clis: &[Cli], version: Version) -> Result<(), Problem> {
    let played: Vec<_> = clis.iter().filter_map(|cli| Some((cli, cli.interactive.as_ref()?))).collect();
    if played.is_empty() {
        return Err(Problem::Unavailable("`clis.yml` says of none of them how a person works with it".to_owned()));
    }
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    let mut wrong = 0;
    for (cli, interactive) in played {
        let installed = install(&stage, cli, version)?;
        let begun = Instant::now();
        let mut faults = play(&stage, &ralph, cli, interactive, &installed)?;
        if !faults.is_empty() {
            // Programs for people are not made for scripts at their keys: what is really wrong is wrong twice.
            println!("{:<9} {:<20} once more: {}", cli.agent, installed.version, faults.join("; "));
            faults = play(&stage, &ralph, cli, interactive, &installed)?;
        }
        let said = if faults.is_empty() { "ok".to_owned() } else { format!("WRONG: {}", faults.join("; ")) };
        println!("{:<9} {:<20} {:>5.1} s  {said}", cli.agent, installed.version, begun.elapsed().as_secs_f64());
        wrong += usize::from(!faults.is_empty());
    }
    if wrong == 0 { Ok(()) } else { Err(Problem::Wrong(format!("{wrong} CLIs are not as they should be"))) }
}

/// What is not as it should be.
fn play(
    stage: &Stage,
    ralph: &Path,
    cli: &Cli,
    interactive: &Interactive,
    installed: &Installed,
) -> Result<Vec<String>, Problem> {
    let place = Place::fresh(stage, &format!("interactive-{}", cli.agent))?;
    let script = Scenario::parse(SCRIPT).map_err(Problem::Wrong)?;
    let server = Server::start(script, &place.work, Bounds::default(), 0)?;
    cli.settle(&place, &server.address(), Some(&interactive.files))?;
    place.configure(cli, None, None)?;
    let mark = processes::mark();
    let mut command = fake_terminal::command(ralph);
    trial::alone(&mut command, cli, &installed.programs, &place, &server.address())
        .args(["run", "-i", "--agent", &cli.agent, "-n", "1", PROMPT])
        .env(processes::MARK, &mark);
    let mut terminal = Program::start(command, Size::new(110, 40))?;
    let mut wrong = Vec::new();
    if let Err(why) = sit_at(&mut terminal, interactive, &server)? {
        wrong.push(format!("{why}; the screen:\n{}", terminal.text()));
    }
    drop(terminal);
    if !server.exchanges().iter().any(|exchange| exchange.body.contains(PROMPT)) {
        wrong.push("the model was not given the prompt".to_owned());
    }
    let left = processes::left(&mark, Duration::from_millis(500));
    if !left.is_empty() {
        wrong.push(format!("left behind: {}", left.join(", ")));
    }
    wrong.extend(unrecorded(&place.home));
    Ok(wrong)
}

/// What a person does, and sees.
fn sit_at(terminal: &mut Program, interactive: &Interactive, server: &Server) -> Result<Result<(), String>, Problem> {
    let shows = |terminal: &Program, what: &str| terminal.until(PATIENCE, |text| text.contains(what));
    if !shows(terminal, ANSWER) {
        return Ok(Err("the answer is not drawn".to_owned()));
    }
    // An answer that is drawn is not yet a program that reads.
    sleep(APART);
    terminal.types("go on")?;
    if !shows(terminal, "go on") {
        return Ok(Err("what is typed does not arrive".to_owned()));
    }
    // Words with Enter right behind them are pasted, for some.
    sleep(APART);
    terminal.types("\r")?;
    // A CLI draws whole lines, and this answer has none: only the server knows that it has begun.
    let asked = |_: &str| server.exchanges().iter().any(|exchange| exchange.turn == Some(1));
    if !terminal.until(PATIENCE, asked) {
        return Ok(Err("the model is not asked a second time".to_owned()));
    }
    sleep(APART);
    terminal.types("\u{3}")?;
    if !shows(terminal, &interactive.interrupted) {
        return Ok(Err("Ctrl-C does not reach the agent".to_owned()));
    }
    sleep(APART);
    if terminal.ended(Duration::ZERO)?.is_some() {
        return Ok(Err("one Ctrl-C ended the run".to_owned()));
    }
    for words in &interactive.leave {
        terminal.types(words)?;
        sleep(APART);
        terminal.types("\r")?;
        sleep(APART);
    }
    let Some(status) = terminal.ended(SOON)? else { return Ok(Err("its end is not seen".to_owned())) };
    // The only iteration is over, and nobody said that the work is done.
    if status.code() != Some(5) {
        return Ok(Err(format!("{status} instead of exit code 5")));
    }
    let given_back = terminal.is_as_before() && terminal.is_clean();
    Ok(if given_back { Ok(()) } else { Err("the terminal is not as it was".to_owned()) })
}

/// The journal of the only run: the answer in the agent's words, an iteration that ended well, and the end.
fn unrecorded(home: &Path) -> Vec<String> {
    let Some(run) = only_run(home) else { return vec!["no journal".to_owned()] };
    let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let records: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let fact = |kind: &str| records.iter().map(|record| &record["meta"]).find(|meta| meta["kind"] == kind);
    let said = records
        .iter()
        .filter(|record| record["by"] == "agent")
        .any(|record| record["text"].as_str().is_some_and(|text| text.contains(ANSWER)));
    let mut wrong = Vec::new();
    if !said {
        wrong.push("the answer is not in the journal".to_owned());
    }
    if fact("iteration_end").is_none_or(|end| end["outcome"] != "ok") {
        wrong.push(format!("the iteration did not end well: {:?}", fact("iteration_end")));
    }
    if fact("run_end").is_none() {
        wrong.push("the journal does not end with `run_end`".to_owned());
    }
    wrong
}
