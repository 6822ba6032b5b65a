//! Many iterations in one process of ralph: memory, descriptors and the time of an iteration have to stay what they were.

use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use fake_model::{Bounds, Scenario, Server};

use crate::clis::{self, Cli};
use crate::install::{Version, install};
use crate::place::Place;
use crate::stage::{Problem, Stage};
use crate::trial::{command, lines};

/// What a real CLI does in each iteration.
const SCRIPT: &str = "
afterwards: again
turns:
  - text: One more line.
    calls: [{shell: {command: \"echo line >> lines.txt\"}}]
  - text: \"That was all.\\n<promise>COMPLETE</promise>\"
";

/// The process after an iteration.
#[derive(Clone, Copy)]
struct Sample {
    /// Resident memory.
    kib: u64,
    /// Open descriptors.
    descriptors: usize,
    /// Since the iteration before.
    took: Duration,
}

/// How long each part is.
pub struct Length {
    /// Iterations of the demo agent.
    pub demo: u64,
    /// Iterations of a real CLI.
    pub real: u64,
}

/// The demo agent, then a real CLI.
pub fn run(length: &Length, only: &[String]) -> Result<(), Problem> {
    if !Path::new("/proc/self/status").exists() {
        return Err(Problem::Unavailable("memory and descriptors are read from /proc".to_owned()));
    }
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    let demo = Cli { agent: "demo".to_owned(), ..Cli::default() };
    let mut wrong = soak(&stage, &ralph, &demo, Path::new("/usr/bin"), length.demo)?;
    if length.real > 0 {
        let codex = ["codex".to_owned()];
        for cli in clis::table(if only.is_empty() { &codex } else { only })? {
            let installed = install(&stage, &cli, Version::Pinned)?;
            wrong.extend(soak(&stage, &ralph, &cli, &installed.programs, length.real)?);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Problem::Wrong(wrong.join("\n       "))) }
}

fn soak(stage: &Stage, ralph: &Path, cli: &Cli, programs: &Path, count: u64) -> Result<Vec<String>, Problem> {
    let place = Place::fresh(stage, &format!("soak-{}", cli.agent))?;
    let patience = Duration::from_secs(60 + count * 6);
    let script = Scenario::parse(SCRIPT).map_err(Problem::Wrong)?;
    let bounds = Bounds { lifetime: patience, requests: count * 10 };
    let server = Server::start(script, &place.work, bounds, 0)?;
    cli.settle(&place, &server.address(), None)?;
    let number = count.to_string();
    let mut child = command(ralph, cli, programs, &place, &server.address())
        .args([
            "--max-iterations",
            &number,
            "--min-iterations",
            &number,
            "--no-progress",
            "0",
            "Do what the script says.",
        ])
        .env("RALPH_DEMO_PAUSE_MS", "0")
        .stderr(Stdio::null())
        .spawn()?;
    let process = Path::new("/proc").join(child.id().to_string());
    let records = lines(&mut child);
    let (begun, mut last, mut samples) = (Instant::now(), Instant::now(), Vec::new());
    loop {
        match records.recv_timeout(Duration::from_secs(60)) {
            Ok(record) if record["meta"]["kind"] == "iteration_end" => {
                samples.extend(sample(&process, last.elapsed()));
                last = Instant::now();
            }
            Ok(_) if begun.elapsed() < patience => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                break;
            }
        }
    }
    let status = child.wait()?;
    let mut wrong = judge(&cli.agent, &samples);
    if !status.success() || samples.len() as u64 != count {
        wrong.push(format!("{}: {status} after {} of {count} iterations", cli.agent, samples.len()));
    }
    Ok(wrong)
}

fn sample(process: &Path, took: Duration) -> Option<Sample> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().trim_end_matches(" kB").parse().ok()?;
    let descriptors = std::fs::read_dir(process.join("fd")).ok()?.count();
    Some(Sample { kib, descriptors, took })
}

/// The second fifth against the last: what comes first is warming up.
fn judge(agent: &str, samples: &[Sample]) -> Vec<String> {
    let fifth = samples.len() / 5;
    if fifth == 0 {
        return vec![format!("{agent}: too few iterations to compare")];
    }
    let (early, late) = (&samples[fifth..2 * fifth], &samples[samples.len() - fifth..]);
    let memory = |part: &[Sample]| median(part.iter().map(|sample| sample.kib).collect());
    let descriptors = |part: &[Sample]| median(part.iter().map(|sample| sample.descriptors as u64).collect());
    let micros = |sample: &Sample| u64::try_from(sample.took.as_micros()).unwrap_or(u64::MAX);
    let time = |part: &[Sample]| median(part.iter().map(micros).collect());
    println!(
        "{agent}: {} iterations; memory {} -> {} KiB, descriptors {} -> {}, an iteration {} -> {} ms (medians of the second and the last fifth)",
        samples.len(),
        memory(early),
        memory(late),
        descriptors(early),
        descriptors(late),
        time(early) / 1000,
        time(late) / 1000,
    );
    let mut wrong = Vec::new();
    if memory(late) > memory(early) + memory(early) / 10 + 1024 {
        wrong.push(format!("{agent}: memory grows"));
    }
    if descriptors(late) > descriptors(early) {
        wrong.push(format!("{agent}: descriptors grow"));
    }
    // Others use the machine too.
    if time(late) > time(early) * 2 + 20_000 {
        wrong.push(format!("{agent}: an iteration takes longer and longer"));
    }
    wrong
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(grow: impl Fn(u64) -> Sample) -> Vec<Sample> {
        (0..100).map(grow).collect()
    }

    #[test]
    fn what_grows_is_told_and_what_warms_up_is_not() {
        let flat = |at: u64| Sample {
            kib: 20_000 + at.min(10) * 100,
            descriptors: 14,
            took: Duration::from_millis(100 + at % 3),
        };
        assert!(judge("flat", &samples(flat)).is_empty());
        let leaking = samples(|at| Sample { kib: 20_000 + at * 100, ..flat(at) });
        assert_eq!(judge("a", &leaking), ["a: memory grows"]);
        let holding = samples(|at| Sample { descriptors: 14 + usize::try_from(at).unwrap_or(0) / 10, ..flat(at) });
        assert_eq!(judge("a", &holding), ["a: descriptors grow"]);
        let slowing = samples(|at| Sample { took: Duration::from_millis(50 + at * 10), ..flat(at) });
        assert_eq!(judge("a", &slowing), ["a: an iteration takes longer and longer"]);
    }
}
