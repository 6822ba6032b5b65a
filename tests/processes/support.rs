//! Agents as shell scripts, and what was seen of them.

use std::path::Path;
use std::time::{Duration, Instant};

use ralph::process::{Clocks, Ended, Invocation, Output, Process, Stdin, StopStep, Stream, UnixSignal, start};

/// What a run of an agent showed.
pub struct Seen {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub ended: Ended,
    pub took: Duration,
}

impl Seen {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// An agent that is a shell script; it is asked to stop by TERM.
pub fn shell(script: &str) -> Invocation {
    let mut invocation = Invocation::new("sh", std::env::temp_dir());
    invocation.args = vec!["-c".into(), script.into()];
    invocation
}

/// The same with a prompt on standard input.
pub fn prompted(script: &str, prompt: impl AsRef<[u8]>) -> Invocation {
    Invocation { stdin: Stdin::Bytes(prompt.as_ref().into()), ..shell(script) }
}

/// A ladder with the same grace for each step.
pub fn ladder(signals: &[UnixSignal], grace: Duration) -> Vec<StopStep> {
    signals.iter().map(|signal| StopStep { signal: *signal, grace }).collect()
}

/// No limits, but one that ends a test which would hang.
pub fn patient() -> Clocks {
    Clocks { total: Some(Duration::from_secs(60)), ..Clocks::default() }
}

/// Runs an agent to its end, on the real clock.
pub fn run(invocation: Invocation, clocks: Clocks) -> Seen {
    real_time(async { watch(start(invocation, clocks).unwrap()).await })
}

/// Runs an agent to its end, on a clock that jumps whenever nothing happens.
pub fn run_paused(invocation: Invocation, clocks: Clocks) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async { watch(start(invocation, clocks).unwrap()).await })
}

pub fn real_time<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Reads everything until the end.
pub async fn watch(mut process: Process) -> Seen {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match process.next().await {
            Output::Bytes { from: Stream::Stdout, bytes } => stdout.extend_from_slice(bytes),
            Output::Bytes { from: Stream::Stderr, bytes } => stderr.extend_from_slice(bytes),
            Output::Ended(ended) => return Seen { stdout, stderr, ended, took: began.elapsed() },
        }
    }
}

/// Reads until `text` was printed; what else comes is dropped.
pub async fn wait_for(process: &mut Process, text: &str) {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        match process.next().await {
            Output::Bytes { bytes, .. } => seen.extend_from_slice(bytes),
            Output::Ended(ended) => panic!("ended before it said {text:?}: {ended:?}"),
        }
    }
}

/// True while a process exists, even dead but not reaped.
pub fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// True while a process runs.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Waits until `condition` holds; false when it does not within the time.
pub fn eventually(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > within {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// The numbers in a file that an agent wrote, one in a line.
pub fn pids(file: &Path) -> Vec<u32> {
    std::fs::read_to_string(file).unwrap_or_default().lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// All processes that have this word among their arguments.
pub fn processes_with(word: &str) -> Vec<String> {
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let lines = numbers.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|argument| argument == word)).collect()
}
