//! Programs that a run left behind, known by a mark in their environment.
//!
//! It looks at programs and ends those that bear the mark of a run that is over, no others.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable with the mark.
pub const MARK: &str = "RALPH_LIVE_MARK";

/// A mark that no other run has.
pub fn mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

/// What still bears the mark after a moment; it is ended and named. Empty where `/proc` is not to be had.
pub fn left(mark: &str, patience: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let found = marked(mark);
        if found.is_empty() || begun.elapsed() > patience {
            let named = found.iter().map(|(pid, name)| {
                // It may have gone by itself in between.
                let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
                format!("{name} ({pid})")
            });
            return named.collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn marked(mark: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let bears = |pid: &i32| {
        let environment = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let name = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim().chars().take(80).collect::<String>()
    };
    // A zombie has no command line and only waits for its parent.
    pids.filter(bears).map(|pid| (pid, name(pid))).filter(|(_, name)| !name.is_empty()).collect()
}
