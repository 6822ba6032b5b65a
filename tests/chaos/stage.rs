//! Plays the whole thing: hosts side by side, some of them killed, and everything checked afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::check::{self, Reader};
use super::plan::{Plan, Random};

/// Agents in one host, and hosts at once.
const COMPANY: u64 = 10;
const AT_ONCE: usize = 3;

/// How long a tree may live on after its ralph was killed.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Tally {
    wrong: Vec<String>,
    outcomes: BTreeMap<String, u64>,
    killed_hosts: u64,
    died_with_ralph: u64,
    slowest_sweep: Duration,
}

pub fn main(agents: u64, seed: Option<u64>) -> ExitCode {
    let seed = seed.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 1_000_000);
    println!("chaos: {agents} agents, seed {seed}");
    let began = Instant::now();
    let directory = tempfile::tempdir().unwrap();
    let hosts = agents.div_ceil(COMPANY);
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let host = next.fetch_add(1, Ordering::Relaxed);
                    if host >= hosts {
                        break;
                    }
                    let count = COMPANY.min(agents - host * COMPANY);
                    play(seed, host, count, directory.path(), &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    for (outcome, count) in &tally.outcomes {
        println!("{count:6}  {outcome}");
    }
    let Tally { wrong, killed_hosts, died_with_ralph, slowest_sweep, .. } = tally;
    println!(
        "chaos: {killed_hosts} of {hosts} hosts killed under {died_with_ralph} agents, all gone after at most {} ms; {} s in all",
        slowest_sweep.as_millis(),
        began.elapsed().as_secs()
    );
    for line in &wrong {
        println!("WRONG: {line}");
    }
    println!("chaos: {}", if wrong.is_empty() { "nothing wrong" } else { "FAILED; run it again with this seed" });
    ExitCode::from(u8::from(!wrong.is_empty()))
}

fn play(seed: u64, host: u64, count: u64, directory: &Path, tally: &Mutex<Tally>) {
    let directory = directory.join(format!("host-{host}"));
    std::fs::create_dir(&directory).unwrap();
    let first = host * COMPANY;
    let plans: Vec<Plan> = (first..first + count).map(|number| Plan::new(seed, number)).collect();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["host", &seed.to_string(), &first.to_string(), &count.to_string()])
        .arg(&directory)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // Of those under a killed ralph some have ended before: a third of the hosts is a fifth of the agents.
    let reader = if host % 3 == 2 { Reader::Died } else { Reader::Lived };
    let mut wrong = Vec::new();
    if reader == Reader::Died {
        let mut random = Random::new(seed ^ host);
        std::thread::sleep(Duration::from_millis(30 + random.below(500)));
        child.kill().unwrap();
    }
    let killed = Instant::now();
    let status = child.wait().unwrap();
    while !left(&directory).is_empty() && killed.elapsed() < LINGER {
        std::thread::sleep(Duration::from_millis(10));
    }
    let lingered = killed.elapsed();
    wrong.extend(left(&directory).into_iter().map(|command| format!("host {host} ({status}): left: {command}")));
    if reader == Reader::Lived && !status.success() {
        wrong.push(format!("host {host} ended with {status}"));
    }
    if let Ok(children) = std::fs::read_to_string(directory.join("children")) {
        wrong.push(format!("host {host} still had children: {children}"));
    }
    let (mut outcomes, mut died_with_ralph) = (Vec::new(), 0);
    for plan in &plans {
        let line = std::fs::read_to_string(directory.join(format!("{}.outcome", plan.number))).ok();
        let checked = match (&line, reader) {
            (Some(line), _) => check::outcome(plan, line).and_then(|()| check::raw(plan, &directory, Reader::Lived)),
            (None, Reader::Died) => check::raw(plan, &directory, Reader::Died),
            (None, Reader::Lived) => Err("no outcome".to_owned()),
        };
        if let Err(what) = checked {
            wrong.push(format!("agent {}: {what}; {plan:?}", plan.number));
        }
        died_with_ralph += u64::from(line.is_none());
        let fields: Vec<&str> = line.as_deref().unwrap_or("with ralph").split_whitespace().take(2).collect();
        outcomes.push(format!("{:?} {}", plan.kind, fields.join(" ")));
    }
    let mut tally = tally.lock().unwrap();
    tally.wrong.extend(wrong);
    tally.died_with_ralph += died_with_ralph;
    for outcome in outcomes {
        *tally.outcomes.entry(outcome).or_default() += 1;
    }
    if reader == Reader::Died {
        tally.killed_hosts += 1;
        tally.slowest_sweep = tally.slowest_sweep.max(lingered);
    }
}

/// The processes that have the directory among their arguments: hosts, agents, and all that they started.
fn left(directory: &Path) -> Vec<String> {
    let wanted = PathBuf::from(directory).into_os_string().into_string().unwrap();
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    numbers
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            words.iter().any(|word| *word == wanted).then(|| format!("{pid} {}", words.join(" ")))
        })
        .collect()
}
