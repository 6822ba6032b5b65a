//! One run of `ralph run` with a real CLI in a fresh git repository and a fresh home, watched from outside.
//!
//! It never waits longer than the scenario allows, and whatever it started is ended when it returns.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use fake_model::{Bounds, Exchange, Server, Which};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::clis::Cli;
use crate::install::Installed;
use crate::place::Place;
use crate::processes;
use crate::scenario::{Permission, Scenario, Sent, To};
use crate::stage::Stage;

/// What was seen.
pub struct Observed {
    /// The workspace.
    pub workspace: PathBuf,
    /// The home.
    pub home: PathBuf,
    /// How ralph ended; none when it had to be ended.
    pub exit: Option<ExitStatus>,
    /// How long it took.
    pub took: Duration,
    /// What it printed: its records.
    pub records: Vec<Value>,
    /// What it wrote to standard error.
    pub complaint: String,
    /// Programs that were still there.
    pub left: Vec<String>,
    /// What the model was asked.
    pub exchanges: Vec<Exchange>,
}

/// Plays a scenario with a CLI.
pub fn play(
    stage: &Stage,
    ralph: &Path,
    cli: &Cli,
    installed: &Installed,
    scenario: &Scenario,
) -> std::io::Result<Observed> {
    let place = Place::fresh(stage, &format!("{}/{}", cli.agent, scenario.name))?;
    let patience = Duration::from_secs(scenario.seconds);
    let bounds = Bounds { lifetime: patience + Duration::from_secs(30), requests: 500 };
    let mut model = scenario.model.clone();
    if cli.toolless {
        model.which = Which::All;
    }
    let server = Server::start(model, &place.work, bounds, 0)?;
    let denied = cli.denied.as_ref().filter(|_| scenario.permission == Permission::Denied);
    cli.settle(&place, &server.address(), denied.map(|denied| &denied.files))?;
    place.configure(cli, denied, scenario.is_strict().then(|| server.address()).as_deref())?;
    std::fs::write(place.home.join("prompt.md"), prompt(scenario.prompt_bytes))?;
    let mark = processes::mark();
    let mut command = command(ralph, cli, &installed.programs, &place, &server.address());
    command
        .args(["--max-iterations", "6", "--prompt-file"])
        .arg(place.home.join("prompt.md"))
        .args(&scenario.run)
        .env(processes::MARK, &mark)
        .stderr(std::fs::File::create(place.home.join("stderr"))?);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let watched = watch(&mut child, scenario, &place.work, &server, begun + patience)?;
    let took = begun.elapsed();
    let left = processes::left(&mark, Duration::from_millis(500));
    let complaint = std::fs::read_to_string(place.home.join("stderr")).unwrap_or_default();
    let (exit, records) = watched;
    Ok(Observed {
        workspace: place.work,
        home: place.home,
        exit,
        took,
        records,
        complaint,
        left,
        exchanges: server.exchanges(),
    })
}

/// `ralph run` with a CLI that is led to the model at `base`, and its records on standard output.
pub fn command(ralph: &Path, cli: &Cli, programs: &Path, place: &Place, base: &str) -> Command {
    let mut command = Command::new(ralph);
    alone(&mut command, cli, programs, place, base)
        .args(["run", "--agent", &cli.agent, "--output", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Gives a command the place, and an environment with nothing of the user in it.
pub fn alone<'a>(command: &'a mut Command, cli: &Cli, programs: &Path, place: &Place, base: &str) -> &'a mut Command {
    command
        .current_dir(&place.work)
        .env_clear()
        .env("HOME", &place.home)
        .env("PATH", Stage::path(programs))
        .env("LANG", "C.UTF-8")
        .envs(cli.variables(place, base))
}

/// Words, and where a length is asked for, so many that they cannot be an argument.
fn prompt(bytes: usize) -> String {
    if bytes == 0 {
        return "Do what the script says.\n".to_owned();
    }
    let middle = "Nothing of this may be cut off on the way. ".repeat(bytes / 43);
    format!("the-first-words-of-a-long-prompt\n{middle}\nthe-last-words-of-a-long-prompt\n")
}

type Watched = (Option<ExitStatus>, Vec<Value>);

fn watch(
    child: &mut Child,
    scenario: &Scenario,
    work: &Path,
    server: &Server,
    deadline: Instant,
) -> std::io::Result<Watched> {
    let lines = lines(child);
    let (mut records, mut acted) = (Vec::<Value>::new(), None);
    let mut open = true;
    loop {
        match lines.recv_timeout(Duration::from_millis(20)) {
            Ok(record) => {
                if scenario.lift.is_some() && record["meta"]["kind"] == "decision" {
                    server.lift();
                }
                records.push(record);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => open = false,
        }
        if let Some(act) = scenario.act.as_ref().filter(|act| acted.is_none() && work.join(&act.when).exists()) {
            let target = match act.to {
                To::Ralph => Some(i64::from(child.id())),
                To::Agent => records.iter().rev().find_map(|record| record["meta"]["pid"].as_i64()),
            };
            if let Some(pid) = target.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
                let signal = if act.send == Sent::Int { Signal::INT } else { Signal::KILL };
                kill_process(pid, signal)?;
                acted = Some(Instant::now());
            }
        }
        let after = acted.map(|acted: Instant| acted.elapsed());
        if let Some(status) = child.try_wait()?.filter(|_| !open) {
            return Ok((Some(status), records));
        }
        let late = after.zip(scenario.within).is_some_and(|(after, within)| after > Duration::from_secs(within));
        if late || Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok((None, records));
        }
        if !open {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Lines of standard output, as records.
pub fn lines(child: &mut Child) -> Receiver<Value> {
    let (tell, hear) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let record = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if tell.send(record).is_err() {
                    break;
                }
            }
        });
    }
    hear
}

impl Observed {
    /// How it ended, for people.
    pub fn ending(&self) -> String {
        match self.exit {
            None => "had to be ended".to_owned(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            },
        }
    }

    /// The last record.
    pub fn end(&self) -> Option<&Value> {
        self.records.iter().rev().map(|record| &record["meta"]).find(|meta| meta["kind"] == "run_end")
    }
}
