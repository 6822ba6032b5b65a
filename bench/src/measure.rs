//! What a program costs: wall time, processor time, peak memory, read from `/proc` while it runs and when it has ended.
//!
//! No sampling of anything but the memory's high-water mark, which only rises.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// What it cost.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// From start to end.
    pub wall: Duration,
    /// Of the program itself and of all that it waited for.
    pub cpu: Duration,
    /// The most resident memory of the program itself, in KiB.
    pub peak: u64,
}

impl Cost {
    /// Megabytes a second of wall time.
    pub fn rate(&self, bytes: u64) -> f64 {
        bytes as f64 / 1e6 / self.wall.as_secs_f64()
    }

    /// Megabytes a second of processor time, which others on the machine do not take away.
    pub fn rate_of_one_core(&self, bytes: u64) -> f64 {
        bytes as f64 / 1e6 / self.cpu.as_secs_f64().max(0.01)
    }
}

/// Runs it to its end.
pub fn cost(command: &mut Command) -> io::Result<Cost> {
    let begun = Instant::now();
    let child = command.stdin(Stdio::null()).spawn()?;
    finish(child, begun, Accept::Success)
}

/// Which end is a measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Exit code 0.
    Success,
    /// The limit of iterations ended a run: exit code 5.
    Limit,
    /// Any exit code: real captures have errors that end a run.
    AnyEnd,
}

/// Several times, one after the other: the sum of times, the highest peak.
pub fn repeated(times: u32, mut command: impl FnMut() -> Command) -> io::Result<Cost> {
    let mut sum = Cost::default();
    for _ in 0..times {
        let one = cost(&mut command())?;
        sum = Cost { wall: sum.wall + one.wall, cpu: sum.cpu + one.cpu, peak: sum.peak.max(one.peak) };
    }
    Ok(sum)
}

/// Waits for a child that was started at `begun`.
pub fn finish(mut child: Child, begun: Instant, accept: Accept) -> io::Result<Cost> {
    let pid = child.id();
    let mut peak = 0;
    let mut pause = Duration::from_micros(200);
    let waited = Pid::from_child(&child);
    loop {
        peak = peak.max(high_water(pid).unwrap_or(0));
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // It stays a zombie until its times have been read.
        let ended = waitid(WaitId::Pid(waited), seen)?.is_some();
        if ended {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
    let wall = begun.elapsed();
    let cpu = times(pid).unwrap_or_default();
    let status = child.wait()?;
    let wanted = match accept {
        Accept::Success => Some(0),
        Accept::Limit => Some(5),
        Accept::AnyEnd => status.code(),
    };
    if status.code() != wanted {
        return Err(io::Error::other(format!("a measured program ended with {status}")));
    }
    Ok(Cost { wall, cpu, peak })
}

/// A control group: it counts the processor time of everything in it, also of what nobody waited for. A sandbox ends so.
pub struct Group(PathBuf);

impl Group {
    /// A new group below this process's own; `None` where that may not be made.
    pub fn new() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists())?;
        let path = root.join(own).join(format!("ralph-bench-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// Processor time of a script, in all.
    pub fn cost(&self, shell: impl FnOnce(&str) -> Command, script: &str) -> io::Result<Duration> {
        let before = self.used()?;
        cost(&mut shell(&format!("echo $$ > '{}'; {script}", self.0.join("cgroup.procs").display())))?;
        Ok(self.used()?.saturating_sub(before))
    }

    fn used(&self) -> io::Result<Duration> {
        let text = fs::read_to_string(self.0.join("cpu.stat"))?;
        let used = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        used.map(Duration::from_micros).ok_or_else(|| io::Error::other("no processor time in `cpu.stat`"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The most resident memory so far, in KiB.
pub fn high_water(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// User and system time, with that of children that were waited for; a hundredth of a second is the unit.
fn times(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Processor time of a program that runs, all threads together, by the nanosecond.
pub fn running_times(pid: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let used = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(Duration::from_nanos(threads.filter_map(used).sum()))
}
