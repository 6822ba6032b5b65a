//! What supervision costs, measured against `cat` in the same run: throughput, memory, stopping, starting.
//!
//!     cargo bench --bench supervisor [-- MEGABYTES]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_precision_loss, missing_docs)]
// Leaving children behind is what the agent is for.
#![allow(clippy::zombie_processes)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ralph::process::{Clocks, Invocation, Lines, Output, own_program, protect, start};

fn main() {
    if ralph::process::guardian_main().is_some() {
        return;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--bench").collect();
    match words.as_slice() {
        ["generate", shape, megabytes] => generate(shape, megabytes.parse().unwrap()),
        ["supervise", shape, megabytes, file] => supervise(shape, megabytes.parse().unwrap(), Path::new(file)),
        ["family"] => family(),
        ["starts"] => println!("{}", supervised_starts().as_micros()),
        words => measure(words.first().and_then(|word| word.parse().ok()).unwrap_or(1000)),
    }
}

/// The agent: ordinary lines, or one line that never ends.
fn generate(shape: &str, megabytes: usize) {
    let mut chunk = Vec::new();
    while chunk.len() < 64 * 1024 {
        let length = 40 + chunk.len() * 7 % 160;
        chunk.resize(chunk.len() + length, b'x');
        if shape == "lines" {
            chunk.push(b'\n');
        }
    }
    chunk.truncate(64 * 1024);
    let mut stdout = File::from(rustix::io::dup(std::io::stdout()).unwrap());
    for _ in 0..megabytes * 16 {
        stdout.write_all(&chunk).unwrap();
    }
}

/// What ralph does with bytes: pipe, raw file, splitter. Prints seconds and the peak of its memory.
fn supervise(shape: &str, megabytes: usize, file: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut invocation = Invocation::new(std::env::current_exe().unwrap(), "/");
    invocation.args = vec!["generate".into(), shape.into(), megabytes.to_string().into()];
    let mut raw = File::create(file).unwrap();
    let (mut lines, mut count, mut bytes_seen) = (Lines::default(), 0_u64, 0);
    let began = Instant::now();
    runtime.block_on(async {
        let mut process =
            start(invocation, Clocks { idle: Some(Duration::from_secs(600)), ..Clocks::default() }).unwrap();
        while let Output::Bytes { bytes, .. } = process.next().await {
            raw.write_all(bytes).unwrap();
            bytes_seen += bytes.len();
            lines.push(bytes, |_| count += 1);
        }
        lines.finish(|_| count += 1);
    });
    let took = began.elapsed().as_secs_f64();
    assert_eq!(bytes_seen, megabytes * 1024 * 1024);
    println!("{took} {} {count}", status("VmHWM"));
}

/// A hundred processes, a third of them in sessions of their own.
fn family() {
    for number in 0..99 {
        let mut command = if number % 3 == 0 { Command::new("setsid") } else { Command::new("sleep") };
        if number % 3 == 0 {
            command.arg("sleep");
        }
        command.arg("60").stdout(Stdio::null()).spawn().unwrap();
    }
    println!("up");
    std::thread::sleep(Duration::from_secs(60));
}

fn measure(megabytes: usize) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("raw");
    println!("| what | figure | limit |\n|---|---|---|");
    for round in 1..=3 {
        let cat = cat(megabytes, &file);
        let (ours, memory, lines) = supervised("lines", megabytes, &file);
        println!(
            "| {megabytes} MB to a file, round {round}: `cat` {:.0} MB/s, ralph {:.0} MB/s ({lines} lines) | {:.0} % of `cat` | 50 % |",
            megabytes as f64 / cat,
            megabytes as f64 / ours,
            100.0 * cat / ours
        );
        println!("| peak memory, ordinary lines | {:.1} MB | 24 MB |", memory as f64 / 1024.0);
    }
    let (ours, memory, parts) = supervised("line", megabytes, &file);
    println!(
        "| one line of {megabytes} MB: {:.0} MB/s in {parts} parts, peak memory | {:.1} MB | 40 MB |",
        megabytes as f64 / ours,
        memory as f64 / 1024.0
    );
    let alone = starts_of_another();
    let idle = Idle::start(1000);
    let crowded = starts_of_another();
    drop(idle);
    println!(
        "| processor time of a start and end of `true` with 1,000 idle processes more: {:.2} ms, without {:.2} ms | {:.0} % | 150 % |",
        crowded.as_secs_f64() * 1000.0,
        alone.as_secs_f64() * 1000.0,
        100.0 * crowded.as_secs_f64() / alone.as_secs_f64()
    );
    protect(own_program());
    for _ in 0..3 {
        println!(
            "| kill of a tree of 100 processes, until all are reaped | {} ms | 300 ms |",
            stop_family().as_millis()
        );
    }
    let (plain, supervised) = (plain_starts(), supervised_starts());
    println!("| processor time of a plain start and end of `true` | {:.2} ms | |", plain.as_secs_f64() * 1000.0);
    println!("| the same, supervised and guarded | {:.2} ms | |", supervised.as_secs_f64() * 1000.0);
    println!(
        "| processor time of starting the guardian, once a run | {:.2} ms | 1 ms |",
        guardian().as_secs_f64() * 1000.0
    );
}

/// Extra processes on the machine, for as long as the value lives.
struct Idle(Vec<Child>);

impl Idle {
    fn start(count: usize) -> Self {
        let sleep = |_| Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().unwrap();
        Self((0..count).map(sleep).collect())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn cat(megabytes: usize, file: &Path) -> f64 {
    let began = Instant::now();
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["generate", "lines", &megabytes.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = Command::new("cat").stdin(agent.stdout.take().unwrap()).stdout(File::create(file).unwrap()).status();
    agent.wait().unwrap();
    assert!(status.unwrap().success());
    began.elapsed().as_secs_f64()
}

fn supervised(shape: &str, megabytes: usize, file: &Path) -> (f64, u64, u64) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["supervise", shape, &megabytes.to_string()])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (word().parse().unwrap(), word().parse().unwrap(), word().parse().unwrap())
}

fn stop_family() -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut invocation = Invocation::new(std::env::current_exe().unwrap(), "/");
    invocation.args = vec!["family".into()];
    runtime.block_on(async {
        let mut process = start(invocation, Clocks::default()).unwrap();
        assert!(matches!(process.next().await, Output::Bytes { .. }));
        tokio::time::sleep(Duration::from_millis(300)).await;
        let began = Instant::now();
        process.kill();
        while !matches!(process.next().await, Output::Ended(_)) {}
        began.elapsed()
    })
}

const STARTS: u32 = 200;

fn plain_starts() -> Duration {
    let before = used();
    for _ in 0..STARTS {
        Command::new("true").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    }
    used().saturating_sub(before) / STARTS
}

fn supervised_starts() -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = used();
    for _ in 0..STARTS {
        runtime.block_on(async {
            let mut process = start(Invocation::new("true", "/"), Clocks::default()).unwrap();
            while !matches!(process.next().await, Output::Ended(_)) {}
        });
    }
    used().saturating_sub(before) / STARTS
}

/// The same in a process of its own: this one has children that are nobody's agents.
fn starts_of_another() -> Duration {
    let output = Command::new(std::env::current_exe().unwrap()).arg("starts").output().unwrap();
    Duration::from_micros(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

fn guardian() -> Duration {
    let before = used();
    for _ in 0..STARTS {
        // With the end of its input before it has learned anything.
        Command::new(std::env::current_exe().unwrap())
            .args(["guard-agents-of", "0"])
            .stdin(Stdio::null())
            .status()
            .unwrap();
    }
    used().saturating_sub(before) / STARTS
}

/// Processor time of this process and its reaped children, in the kernel's ticks.
fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: u64 = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}
