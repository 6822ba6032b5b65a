//! What the journal costs: taking secrets out, writing, looking at a long run, replaying it. Compares within one run, because
//! machines are shared. `cargo bench --bench journal [-- --short]`

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs)]

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph::event::{Event, Stream, Tag};
use ralph::journal::disk::RealDisk;
use ralph::journal::{Body, Fact, Journal, Receipt};

use ralph::redact::{Redactor, Streaming};
use ralph::stream::OutputStream;
use ralph::transcript::{Context, Selected, dialect};

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

fn main() {
    println!("load: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let short = std::env::args().any(|argument| argument == "--short");
    redaction(if short { 50 } else { 500 });
    appending(if short { 20_000 } else { 200_000 });
    stream(if short { 50_000_000 } else { 300_000_000 });
    long_run(if short { 100_000_000 } else { 1_000_000_000 });
    cost(if short { 20_000_000 } else { 100_000_000 });
    latency(if short { 5 } else { 20 });
}

/// Text as agents write it: prose, code, hashes, JSON.
fn text() -> Vec<u8> {
    let mut text = String::new();
    for number in 0..4000 {
        let _ = writeln!(
            text,
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"msg_{number:024x}\",\"content\":[{{\"type\":\"text\",\"text\":\
             \"I have looked at src/module_{number}.rs and the tests; fn parse_line(&self) -> Result<(), Error> is where \
             the key of the token is compared.\\nNext I shall run cargo test.\"}}]}},\"session_id\":\
             \"0199c1f2-7b3a-7c21-9f10-c0ffee000000\",\"sha\":\"9fceb02d0ae598e95dc970b74767f19372d6{number:04x}\"}}"
        );
    }
    text.into_bytes()
}

fn redaction(megabytes: usize) {
    let text = text();
    let variables: Vec<(String, String)> = (0..10)
        .map(|number| (format!("SERVICE_{number}_TOKEN"), format!("Zx{number}q-9Kd8s7Gh3Lp2Vm5Bt{number}")))
        .collect();
    println!("\ntaking secrets out of a stream, 64 KiB at a time, ten secret variables");
    for (name, redactor) in [("off", Redactor::off()), ("on", Redactor::new(variables))] {
        let mut stream = Streaming::new(&redactor);
        let start = cpu();
        let mut bytes = 0;
        while bytes < megabytes * 1_000_000 {
            for chunk in text.chunks(64 * 1024) {
                bytes += stream.push(chunk).len();
            }
        }
        println!(
            "  {name:4} {:8.0} MB/s CPU",
            bytes as f64 / 1e6 / cpu().saturating_sub(start).as_secs_f64().max(1e-9)
        );
    }
}

fn appending(records: u32) {
    let directory = tempfile::tempdir().unwrap();
    let event =
        || Event::text(Tag::Ai, "Words of the agent about the code, of about one hundred and twenty bytes in all.");
    let body = || Body::Agent { iteration: 1, from: Stream::Stdout, event: event() };
    let mut journal = Journal::create(&directory.path().join("journal.jsonl")).unwrap();
    let mut times = Vec::with_capacity(records as usize);
    for _ in 0..records {
        let start = Instant::now();
        journal.append(body()).unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let start = Instant::now();
    let (sender, receiver) = std::sync::mpsc::channel::<Body>();
    let path = directory.path().join("thread.jsonl");
    let writer = std::thread::spawn(move || {
        let mut journal = Journal::create(&path).unwrap();
        for body in receiver {
            journal.append(body).unwrap();
        }
    });
    (0..records).for_each(|_| sender.send(body()).unwrap());
    drop(sender);
    writer.join().unwrap();
    let thread = start.elapsed();
    let at = |share: usize| times[times.len() * share / 1000].as_secs_f64() * 1e6;
    println!("\nappending a record, one write each, {records} of them");
    println!("  in place          median {:.1} us, 99.9 % {:.1} us", at(500), at(999));
    println!(
        "  by a thread       {:.1} us each, and nobody knows when it is on disk",
        thread.as_secs_f64() * 1e6 / f64::from(records)
    );
}

/// A whole run whose agent prints a file, beside `cat`.
fn stream(bytes: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw.txt");
    let text = text();
    let mut file = std::fs::File::create(&path).unwrap();
    (0..bytes / text.len()).for_each(|_| file.write_all(&text).unwrap());
    let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
    let cat = measure(Command::new("cat").arg(&path));
    let mut run = Command::new(RALPH);
    run.args(["run", "do it", "-n", "1", "--transcript", "claude", "--agent-cmd"]);
    run.arg(format!("cat {}", path.display()))
        .current_dir(directory.path())
        .env("RALPH_STATE_DIR", directory.path().join("state"));
    let run = measure(&mut run);
    println!("\na run whose agent prints {size:.0} MB of stream-json, to journal, raw file and view");
    println!("  cat               {:.2} s wall", cat.as_secs_f64());
    println!("  ralph run         {:.2} s wall, {:.0} MB/s", run.as_secs_f64(), size / run.as_secs_f64());
}

fn long_run(bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let run = make(directory.path(), bytes);
    let size = std::fs::metadata(run.join("journal.jsonl")).unwrap().len() as f64 / 1e6;
    println!("\na journal of {size:.0} MB");
    let ralph = |args: &[&str]| {
        measure(
            Command::new(RALPH)
                .args(args)
                .current_dir(directory.path())
                .env("RALPH_STATE_DIR", directory.path().join("state")),
        )
    };
    println!("  runs, no summary  {:.0} ms", ralph(&["runs"]).as_secs_f64() * 1e3);
    let mut summary =
        ralph::journal::Summary::of(&ralph::journal::RunDirectory { id: "r".into(), path: run.clone() }).unwrap();
    summary.covers = std::fs::metadata(run.join("journal.jsonl")).unwrap().len();
    std::fs::write(run.join("summary.json"), summary.to_json()).unwrap();
    println!("  runs              {:.0} ms (target: 200)", ralph(&["runs"]).as_secs_f64() * 1e3);
    println!("  show              {:.0} ms (target: 200)", ralph(&["show"]).as_secs_f64() * 1e3);
    for output in ["lines", "json"] {
        let replay = ralph(&["replay", "--output", output]);
        let rate = size / replay.as_secs_f64();
        println!("  replay, {output:9} {:.2} s, {rate:.0} MB/s (target: 200)", replay.as_secs_f64());
    }
    let mut replay = Command::new(RALPH);
    replay.args(["replay"]).current_dir(directory.path()).env("RALPH_STATE_DIR", directory.path().join("state"));
    println!("  replay, memory    {:.1} MB at its peak", peak_memory(&mut replay) as f64 / 1024.0);
}

fn make(workspace: &Path, bytes: u64) -> PathBuf {
    let store = ralph::journal::State::at(workspace.join("state")).store(workspace);
    store.create().unwrap();
    let run = store.path().join("runs/20261115-201500-long");
    std::fs::create_dir_all(run.join("raw")).unwrap();
    let mut journal = Journal::create(&run.join("journal.jsonl")).unwrap();
    let output = "A line that a tool has printed, with a path/to/a/file.rs:120 in it.\n".repeat(30);
    let mut iteration = 0;
    while journal.length() < bytes {
        iteration += 1;
        let start = Fact::IterationStart {
            iteration,
            of: 100,
            pid: None,
            prompt_bytes: 0,
            agent: None,
            hat: None,
            resumes: None,
            terminal: None,
            interactive: false,
            display: false,
        };
        journal.append(Body::Loop(start)).unwrap();
        for call in 0..5000 {
            let id = format!("call-{call}");
            for event in [
                Event::text(Tag::Ai, "Words of the agent about the code, of about one hundred bytes, for people."),
                Event::tool_start(&id, "Bash", None),
                Event::tool_output(&id, &output),
                Event::tool_end(&id, ralph::event::Status::Ok, Some(12)),
            ] {
                journal.append(Body::Agent { iteration, from: Stream::Stdout, event }).unwrap();
            }
        }
        journal
            .append(Body::Loop(Fact::IterationEnd { receipt: Box::new(Receipt { iteration, ..Receipt::default() }) }))
            .unwrap();
    }
    run
}

/// A stream of stream-json that is only read, and the same with its journal and its raw file.
fn cost(bytes: usize) {
    let text = text();
    let read = |keep: bool| {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&directory.path().join("journal.jsonl")).unwrap();
        let redactor = Redactor::new(Vec::new());
        let mut raw = ralph::journal::Raw::create(&RealDisk, directory.path(), 1).unwrap();
        let claude = Selected::Dialect(dialect("claude").unwrap());
        let mut stream = OutputStream::new(&claude, &Context::default(), &redactor);
        let (mut events, mut seen) = (Vec::new(), 0);
        let start = cpu();
        while seen < bytes {
            for chunk in text.chunks(64 * 1024) {
                seen += chunk.len();
                let clean = stream.push(Stream::Stdout, chunk, &mut events);
                if keep {
                    raw.write(Stream::Stdout, &clean).unwrap();
                }
                for event in events.drain(..).filter(|_| keep) {
                    let event = event.into_inner();
                    journal.append(Body::Agent { iteration: 1, from: Stream::Stdout, event }).unwrap();
                }
            }
        }
        cpu().saturating_sub(start).as_secs_f64()
    };
    let (without, with) = (read(false), read(true));
    println!("\nwhat the journal costs, {} MB of stream-json with 380 bytes a line, CPU", bytes / 1_000_000);
    println!("  only read         {without:.2} s");
    println!("  kept as well      {with:.2} s, {:.1} times as much", with / without);
}

/// How long a line takes from the agent's `printf` to the disk and then to the screen, while many loops run.
fn latency(loops: usize) {
    // `read` waits without starting a process.
    let agent = "exec 3<> <(:); for i in $(seq 100); do printf '%s\\n' \"now $EPOCHREALTIME\"; read -r -t 0.03 -u 3; done; echo LOOP_COMPLETE";
    let running: Vec<_> = (0..loops)
        .map(|_| {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("agent.sh"), agent).unwrap();
            let mut command = Command::new(RALPH);
            command
                .args(["run", "x", "-n", "1", "--agent-cmd", "bash agent.sh"])
                .current_dir(directory.path())
                .env("RALPH_STATE_DIR", directory.path().join("state"));
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let shown = std::io::BufReader::new(child.stdout.take().unwrap());
            std::thread::spawn(move || {
                let mut times = Vec::new();
                for line in shown.lines().map_while(Result::ok) {
                    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
                    let told = line.rsplit_once("now ").and_then(|(_, time)| time.trim().parse::<f64>().ok());
                    times.extend(told.map(|told| now - told));
                }
                child.wait().unwrap();
                drop(directory);
                times
            })
        })
        .collect();
    let mut times: Vec<f64> = running.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[times.len() * share / 1000] * 1e3;
    println!("\nfrom an agent's line to disk and screen, {loops} loops at once, {} lines", times.len());
    println!("  median {:.2} ms (target: 1), 90 % {:.2} ms, 99 % {:.2} ms", at(500), at(900), at(990));
}

fn measure(command: &mut Command) -> Duration {
    let start = Instant::now();
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    start.elapsed()
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Kilobytes at the peak of a command. Asked for while it runs: what a parent is told of its children counts the parent's
/// own memory, too, which they had before they became another program.
fn peak_memory(command: &mut Command) -> u64 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}
