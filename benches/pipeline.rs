//! What the pipeline costs: start-up, an iteration, a stream. Prints a table; compares within one run, because
//! machines are shared. `cargo bench --bench pipeline [-- --short]`

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::cast_possible_truncation, missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// How much is measured.
struct Size {
    starts: u32,
    iterations: u32,
    stream_bytes: usize,
}

const FULL: Size = Size { starts: 200, iterations: 100, stream_bytes: 200_000_000 };
const SHORT: Size = Size { starts: 20, iterations: 20, stream_bytes: 20_000_000 };

/// Wall time and processor time of something that was run, and how it ended.
#[derive(Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    code: Option<i32>,
}

fn main() {
    println!("load: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let size = if std::env::args().any(|argument| argument == "--short") { SHORT } else { FULL };
    starts(size.starts);
    iterations(size.iterations);
    translate(size.stream_bytes);
}

/// `ralph --version` beside `true`, taking turns.
fn starts(count: u32) {
    let (mut ralph, mut nothing) = (Cost::default(), Cost::default());
    for _ in 0..count {
        nothing.add(measure(&mut Command::new("true")));
        ralph.add(measure(Command::new(RALPH).arg("--version").stdout(Stdio::null())));
    }
    let each = |cost: Cost| format!("{:.2} ms wall, {:.2} ms CPU", per(cost.wall, count), per(cost.cpu, count));
    println!("\nstart-up, mean of {count}");
    println!("  true              {}", each(nothing));
    println!("  ralph --version   {}", each(ralph));
    println!("  target: under 2 x true + 3 ms = {:.2} ms wall", 2.0 * per(nothing.wall, count) + 3.0);
}

/// Iterations with an agent that says a word and exits, beside the bare start of that agent.
fn iterations(count: u32) {
    let run = |count: u32| {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(RALPH);
        command.args(["run", "do it", "--agent-cmd", "echo word", "--no-progress", "0", "-n", &count.to_string()]);
        let cost = measure(
            command
                .current_dir(directory.path())
                .env("RALPH_STATE_DIR", directory.path().join("state"))
                .stdout(Stdio::null()),
        );
        // A run that ended for another reason than its limit has not played so many.
        assert_eq!(cost.code, Some(5), "all {count} iterations are played");
        cost
    };
    let (one, many) = (run(1), run(count + 1));
    let mut bare = Cost::default();
    for _ in 0..count {
        bare.add(measure(Command::new("echo").arg("word").stdout(Stdio::null())));
    }
    let cpu = per(many.cpu.saturating_sub(one.cpu), count);
    println!("\niteration with an agent that exits at once, mean of {count}");
    println!("  spawn alone       {:.2} ms CPU", per(bare.cpu, count));
    println!("  ralph             {:.2} ms CPU, {:.2} ms wall", cpu, per(many.wall.saturating_sub(one.wall), count));
    println!("  beyond the spawn  {:.2} ms CPU (target: under 3)", cpu - per(bare.cpu, count));
}

/// RTF1 through `ralph translate`, beside `cat`.
fn translate(bytes: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.txt");
    rtf1(&path, bytes);
    let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    let cat = measure(Command::new("cat").arg(&path).stdout(Stdio::null()));
    let mut best = Cost { cpu: Duration::MAX, ..Cost::default() };
    for _ in 0..3 {
        let input = std::fs::File::open(&path).unwrap();
        let cost =
            measure(Command::new(RALPH).args(["translate", "--from", "rtf1"]).stdin(input).stdout(Stdio::null()));
        if cost.cpu < best.cpu {
            best = cost;
        }
    }
    println!("\ntranslate --from rtf1, {size:.0} MB");
    println!("  cat               {:.2} s CPU", cat.cpu.as_secs_f64());
    println!(
        "  ralph             {:.2} s CPU, {:.0} MB/s CPU (target: 300)",
        best.cpu.as_secs_f64(),
        size / best.cpu.as_secs_f64()
    );
    println!("  peak memory of any child so far: {:.1} MB", peak_memory() as f64 / 1024.0);
}

/// A transcript as an agent writes it: words, tools with output, plain lines.
fn rtf1(path: &Path, bytes: usize) {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let output = "x".repeat(500);
    let mut size = 0;
    let mut number = 0;
    while size < bytes {
        let block = format!(
            "@@RALPH@@ {{\"type\":\"text\",\"tag\":\"AI\",\"text\":\"Words of the agent about the code, number {number}, of about one hundred and twenty bytes.\"}}\n\
             A plain line of text that the agent prints while it works, line {number} of many.\n\
             @@RALPH@@ {{\"type\":\"tool_start\",\"tool\":{{\"id\":\"t{number}\",\"name\":\"shell\",\"input\":{{\"cmd\":\"rg -n authz -S .\"}}}}}}\n\
             @@RALPH@@ {{\"type\":\"tool_output\",\"tool\":{{\"id\":\"t{number}\"}},\"text\":\"{output}\"}}\n\
             @@RALPH@@ {{\"type\":\"tool_end\",\"tool\":{{\"id\":\"t{number}\",\"status\":\"ok\",\"duration_ms\":218}}}}\n"
        );
        out.write_all(block.as_bytes()).unwrap();
        size += block.len();
        number += 1;
    }
    out.flush().unwrap();
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

fn per(duration: Duration, count: u32) -> f64 {
    duration.as_secs_f64() * 1000.0 / f64::from(count)
}

fn measure(command: &mut Command) -> Cost {
    let (cpu, start) = (children_cpu(), Instant::now());
    let status = command.stderr(Stdio::null()).status().unwrap();
    Cost { wall: start.elapsed(), cpu: children_cpu().saturating_sub(cpu), code: status.code() }
}

/// Processor time of all children so far.
fn children_cpu() -> Duration {
    let usage = usage();
    let time =
        |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

fn peak_memory() -> i64 {
    usage().ru_maxrss
}

#[expect(unsafe_code, reason = "the standard library does not tell what children have used")]
fn usage() -> libc::rusage {
    // SAFETY: a plain C structure of numbers, filled by the call.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    }
}
