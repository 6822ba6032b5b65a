//! What a view costs while nobody touches it: processor time of the full screen on a terminal, beside `less` and `tail -f`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fake_terminal::{Program, Size};
use rustix::process::{Pid, Signal, kill_process};

use crate::figures::{Bench, Figure, mib};
use crate::measure::{high_water, running_times};

/// What a program needs for its first screen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What it took while nothing happened.
struct Idle {
    /// Of one core, in per cent.
    share: f64,
    /// The most memory, in KiB.
    peak: u64,
}

impl Bench {
    /// The full screen on a run that is over, and on one that is under way.
    pub fn full_screen(&self) -> io::Result<Vec<Figure>> {
        let over = self.place.join("over");
        fs::create_dir_all(&over)?;
        let demo = ["run", "--agent", "demo", "--output", "json"];
        let ended = self.run("over", &demo)?.env("RALPH_DEMO_PAUSE_MS", "0").stdin(Stdio::null()).status()?;
        if !ended.success() {
            return Err(io::Error::other(format!("the demo ended with {ended}")));
        }
        let tui = self.idle(&over, &self.ralph, &["tui"], "complete")?;
        let less = self.idle(&over, Path::new("less"), &[&journal(&over)?], "run_start")?;
        let mut figures = vec![self.figure("over", &tui, "less", &less)];

        let under_way = self.place.join("under-way");
        let words = ["run", "do it", "--agent-cmd", "sleep 600", "-n", "1"];
        let mut child = self.run("under-way", &words)?.stdin(Stdio::null()).spawn()?;
        let measured = appears(&under_way).and_then(|journal| {
            let tui = self.idle(&under_way, &self.ralph, &["tui"], "running")?;
            let tail = self.idle(&under_way, Path::new("tail"), &["-f", &journal], "run_start")?;
            Ok(self.figure("under way", &tui, "tail -f", &tail))
        });
        // It may have ended by itself, and then it is the measurement that says so.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        child.wait()?;
        figures.push(measured?);
        Ok(figures)
    }

    fn figure(&self, what: &str, tui: &Idle, other: &str, baseline: &Idle) -> Figure {
        Figure {
            what: format!("`ralph tui` on a run that is {what}, untouched for {} s", self.size.idle.as_secs()),
            ralph: format!("{:.2} % of a core, {}", tui.share, mib(tui.peak)),
            baseline: format!("`{other}` of its journal: {:.2} % of a core, {}", baseline.share, mib(baseline.peak)),
        }
    }

    /// A program on a terminal, from its first screen on.
    fn idle(&self, directory: &Path, program: &Path, words: &[&str], shows: &str) -> io::Result<Idle> {
        let mut command = fake_terminal::command(program);
        command.args(words).env("RALPH_STATE_DIR", directory.join("state")).current_dir(directory);
        let terminal = Program::start(command, Size::new(120, 40))?;
        if !terminal.until(PATIENCE, |text| text.contains(shows)) {
            return Err(io::Error::other(format!(
                "`{}` does not show {shows:?}:\n{}",
                program.display(),
                terminal.text()
            )));
        }
        // What it still has to do for its first screen is not idling.
        std::thread::sleep(Duration::from_secs(1));
        let used = || running_times(terminal.pid()).ok_or_else(|| io::Error::other("it has ended"));
        let (begun, before) = (Instant::now(), used()?);
        std::thread::sleep(self.size.idle);
        let share = used()?.saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
        Ok(Idle { share, peak: high_water(terminal.pid()).unwrap_or(0) })
    }
}

/// The journal of the only run.
pub fn journal(directory: &Path) -> io::Result<String> {
    let found = |path: PathBuf| path.join("journal.jsonl").exists().then(|| path.join("journal.jsonl"));
    let projects = fs::read_dir(directory.join("state/projects"))?.flatten();
    let runs = projects.filter_map(|project| fs::read_dir(project.path().join("runs")).ok()).flatten().flatten();
    let journal = runs.into_iter().find_map(|entry| found(entry.path()));
    Ok(journal.ok_or_else(|| io::Error::other("no journal"))?.to_string_lossy().into_owned())
}

/// The same, as soon as it is there.
fn appears(directory: &Path) -> io::Result<String> {
    let begun = Instant::now();
    loop {
        match journal(directory) {
            Ok(journal) => return Ok(journal),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
