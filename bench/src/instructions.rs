//! Instruction counts under callgrind: they do not depend on the load of the machine, so a change of them is a change of the
//! program. Counted are the dialects, a start, the way from bytes and from a journal to the line view, whole runs with each kind of
//! output, and iterations in a repository: ralph itself with all its threads, without what it starts.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{streams, workloads};

/// By how much a count may rise or fall: compilers and standard libraries move a little.
const TOLERANCE: f64 = 0.10;

/// The same for whole runs, in which threads wait for each other more or less often.
const TOLERANCE_OF_RUNS: f64 = 0.20;

/// So many iterations of a run are counted.
const ITERATIONS: u32 = 10;

/// As much of a stream as is read under callgrind.
const BYTES: usize = 400_000;

/// The limit of iterations ended a run.
const AT_LIMIT: i32 = 5;

/// What the counts are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To see whether they have risen.
    Compare,
    /// To be what later ones are compared with.
    Record,
}

/// Compares with what is recorded, or records. Gives what is out of bounds.
pub fn run(ralph: &Path, place: &Path, purpose: Purpose) -> io::Result<Vec<String>> {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !valgrind.is_ok_and(|status| status.success()) {
        println!("skipped: `valgrind` is not installed");
        return Ok(Vec::new());
    }
    let compiler = compiler()?;
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    let recorded = fs::read_to_string(&store).unwrap_or_default();
    if purpose == Purpose::Compare && recorded.lines().next() != Some(&format!("# {compiler}")) {
        println!("skipped: the counts are those of another compiler; `bench/run --instructions --record` renews them");
        return Ok(Vec::new());
    }
    let empty = place.join("empty");
    fs::write(&empty, "")?;
    let mut text = format!("# {compiler}\n");
    let mut wrong = Vec::new();
    let mut compare = |name: &str, each: f64, tolerance: f64| {
        let _ = writeln!(text, "{name} {each:.2}");
        let before = recorded.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
        let change = before.map_or(0.0, |before| each / before - 1.0);
        println!("{name:<24} {each:>8.2} instructions a byte, {:+.1} % against the record", change * 100.0);
        if purpose == Purpose::Compare && change > tolerance {
            wrong.push(format!("{name}: {:.1} % more instructions than recorded", change * 100.0));
        }
    };
    let counted = |words: &[&str]| count(ralph, words, place, 0);
    let path = |path: &Path| path.to_string_lossy().into_owned();
    for dialect in streams::DIALECTS {
        let file = streams::file(place, dialect, BYTES)?;
        let words = ["translate", "--from", dialect];
        let nothing = counted(&[&words[..], &[&path(&empty)]].concat())?;
        let spent = counted(&[&words[..], &[&path(&file)]].concat())?.saturating_sub(nothing);
        compare(dialect, spent as f64 / fs::metadata(&file)?.len() as f64, TOLERANCE);
    }
    let file = streams::file(place, "claude", BYTES)?;
    let bytes = fs::metadata(&file)?.len() as f64;
    let start = counted(&["--version"])?;
    // A start reads nothing; it is set in relation to the same number of bytes.
    compare("start", start as f64 / bytes, TOLERANCE);
    let view = counted(&["translate", "--from", "claude", "--to", "text", &path(&file)])?;
    compare("view", view as f64 / bytes, TOLERANCE);
    let agent = format!("cat {}", path(&file));
    command(ralph.as_os_str(), place)
        .args(["run", "do it", "-n", "1", "--transcript", "claude", "--agent-cmd", &agent])
        .status()?;
    compare("replay", counted(&["replay"])? as f64 / bytes, TOLERANCE);
    let run = |agent: &str, transcript: &str, iterations: u32, place: &Path| {
        let iterations = iterations.to_string();
        let words = ["run", "do it", "--max-stalled", "0", "--transcript", transcript, "--agent-cmd", agent, "-n"];
        count(ralph, &[&words[..], &[&iterations]].concat(), place, AT_LIMIT)
    };
    let nothing = run("echo word", "plain", 1, place)?;
    compare("run-start", nothing as f64 / bytes, TOLERANCE_OF_RUNS);
    for (name, transcript, write) in workloads::counted_outputs() {
        let file = place.join("output");
        let mut out = io::BufWriter::new(fs::File::create(&file)?);
        write(&mut out, BYTES as u64 * 5)?;
        out.flush()?;
        let length = fs::metadata(&file)?.len() as f64;
        let spent = run(&format!("cat {}", path(&file)), transcript, 1, place)?.saturating_sub(nothing);
        compare(&format!("run-{}", name.replace(' ', "-")), spent as f64 / length, TOLERANCE_OF_RUNS);
    }
    for (name, script) in workloads::counted_iterations() {
        let repository = workloads::repository(place, 20)?;
        let agent = format!("sh -c '{script}'");
        let first = run(&agent, "plain", 1, &repository)?;
        let all = run(&agent, "plain", ITERATIONS + 1, &repository)?;
        let each = all.saturating_sub(first) as f64 / f64::from(ITERATIONS);
        // Set in relation to the same number of bytes, as a start.
        compare(&format!("iteration-{}", name.replace(' ', "-")), each / bytes, TOLERANCE_OF_RUNS);
        fs::remove_dir_all(repository)?;
    }
    if purpose == Purpose::Record {
        fs::write(store, text)?;
    }
    Ok(wrong)
}

fn count(ralph: &Path, words: &[&str], place: &Path, code: i32) -> io::Result<u64> {
    let out: PathBuf = place.join("callgrind.out");
    let output = command(OsStr::new("valgrind"), place)
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(ralph)
        .args(words)
        .stderr(Stdio::piped())
        .output()?;
    if output.status.code() != Some(code) {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = fs::read_to_string(&out)?;
    let total = text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    let total = total.and_then(|total| total.trim().parse().ok());
    total.ok_or_else(|| io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// A program in the place, with a state directory of its own.
fn command(program: &OsStr, place: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place).env("RALPH_STATE_DIR", place.join("counted"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn compiler() -> io::Result<String> {
    let said = Command::new("rustc").arg("--version").output()?;
    Ok(format!("{}, {}", String::from_utf8_lossy(&said.stdout).trim(), std::env::consts::ARCH))
}
