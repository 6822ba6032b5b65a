//! `bench/run`: measures the `ralph` binary from outside and writes `docs/performance.md` with its chart.
//!
//! A figure never stands alone: the machine, its load, and a baseline of the same run are beside it.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod batch;
mod chart;
mod figures;
mod goals;
mod idle;
mod instructions;
mod measure;
mod sandbox;
mod streams;
mod workloads;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use figures::{Bench, Size};
use instructions::Purpose;

const FULL: Size = Size {
    starts: 200,
    iterations: 100,
    stream: 100_000_000,
    large: 1_000_000_000,
    loops: 200,
    idle: Duration::from_secs(10),
    lines: 10_000,
    files: 20_000,
};
const SHORT: Size = Size {
    starts: 20,
    iterations: 20,
    stream: 5_000_000,
    large: 50_000_000,
    loops: 20,
    idle: Duration::from_secs(2),
    lines: 1000,
    files: 2000,
};

/// What becomes of the figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    /// Only printed.
    Printed,
    /// Also written to `docs`.
    Written,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let done = match (has("--instructions"), has("--record"), has("--short")) {
        (true, true, _) => count(Purpose::Record),
        (true, false, _) => count(Purpose::Compare),
        (false, _, true) => measure(SHORT, Report::Printed),
        (false, _, false) => measure(FULL, Report::Written),
    };
    match done {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            eprintln!("error: {}", wrong.join("\n       "));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The binary beside this one, and a place for files.
fn bench(size: Size) -> io::Result<Bench> {
    let ralph = std::env::current_exe()?.with_file_name("ralph");
    if !ralph.exists() {
        return Err(io::Error::other(format!("{} is missing: use `bench/run`", ralph.display())));
    }
    // Not below this repository: runs would look at all of it.
    let place = std::env::temp_dir().join(format!("ralph-bench-{}", std::process::id()));
    fs::create_dir(&place)?;
    Ok(Bench { ralph, place, size })
}

fn count(purpose: Purpose) -> io::Result<Vec<String>> {
    let bench = bench(SHORT)?;
    let wrong = instructions::run(&bench.ralph, &bench.place, purpose);
    fs::remove_dir_all(&bench.place)?;
    wrong
}

fn measure(size: Size, report: Report) -> io::Result<Vec<String>> {
    let bench = bench(size)?;
    let before = load();
    let mut rows = bench.whole_runs()?;
    rows.extend(bench.goals()?);
    let figures = bench.all()?;
    let groups = bench.dialects()?;
    fs::remove_dir_all(&bench.place)?;
    let mut text = String::from(
        "# Performance\n\nMade by `bench/run`. Machines are shared and differ, so each figure stands beside a baseline that was measured in the\nsame minute; compare the columns, not the numbers of two machines.\n\n",
    );
    let _ = writeln!(text, "{}\n", machine(&before));
    text.push_str("| what | ralph | baseline |\n|---|---|---|\n");
    for figure in &figures {
        let _ = writeln!(text, "| {} | {} | {} |", figure.what, figure.ralph, figure.baseline);
    }
    text.push_str("\n## Whole runs\n\nProcessor time of ralph and everything it starts, agent included, median of three; standard output is thrown away.\n\n| what | goal | ralph | baseline |\n|---|---|---|---|\n");
    for row in &rows {
        let _ = writeln!(text, "| {} | {} | {} | {} |", row.what, row.goal, row.ralph, row.baseline);
    }
    text.push_str("\n## Reading what agents print\n\n`ralph translate --from DIALECT`, real captures repeated, against `jq -c .`, which only reads and writes JSON; megabytes a\nsecond of processor time, output thrown away.\n\n![Throughput for each dialect](images/dialects.svg)\n\n| dialect | `jq -c` | ralph |\n|---|---|---|\n");
    for group in &groups {
        let _ = writeln!(text, "| {} | {:.0} MB/s | {:.0} MB/s |", group.name, group.bars[0], group.bars[1]);
    }
    text.push_str("\nInside the process: `cargo bench` (`pipeline`, `supervisor`, `dialects`, `journal`, `bridge`). `bench/run --instructions` counts\ninstructions for each byte under callgrind, independent of load: of every dialect, of a start, of the line view, of a\nreplay, and of whole runs and iterations. It fails where they rise by more than a tenth; `.ci/run` does so.\n");
    // Measured by `tests/fleet_chaos.rs`, which needs a NATS server.
    text.push_str(include_str!("../fleet.md"));
    println!("\n{text}");
    if report == Report::Written {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        fs::create_dir_all(docs.join("images"))?;
        let picture = chart::svg("Throughput for each dialect", &["jq -c", "ralph translate"], &groups, "MB/s");
        fs::write(docs.join("images/dialects.svg"), picture)?;
        fs::write(docs.join("performance.md"), text)?;
    }
    Ok(Vec::new())
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn machine(before: &str) -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{}, {}: {cores} cores of {}. Load before the run {before}, after it {}.",
        jiff::Zoned::now().date(),
        std::env::consts::OS,
        model.map_or("an unknown processor", |(_, name)| name.trim()),
        load(),
    )
}
