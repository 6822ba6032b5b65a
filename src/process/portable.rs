//! What every Unix has. `linux.rs` has the same items with more behind them.
//!
//! The process table comes from `ps`. Its start times have a resolution of one second, and the environment of a process
//! is what `ps -E` shows to its owner. It is compiled on Linux too, so that it cannot rot.

#![allow(clippy::unnecessary_wraps, reason = "the same signatures as in `linux.rs`")]

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;

use super::guardian::Halted;
use super::spawn;
use super::table::Entry;
use super::tree::Identity;

pub(super) const NO_CODE: u8 = 0xff;

pub(super) fn read() -> io::Result<Vec<Entry>> {
    let output = spawn::output("ps", &["-axo", "pid=,ppid=,pgid=,stat=,time=,lstart="])?;
    let entries: Vec<_> = String::from_utf8_lossy(&output).lines().filter_map(parse).collect();
    let own = std::process::id().cast_signed();
    if entries.iter().any(|entry| entry.pid == own) {
        Ok(entries)
    } else {
        Err(io::Error::other("`ps` does not show this process"))
    }
}

pub(super) fn near(_root: i32, _group: &[i32], _spawned: &HashSet<i32>) -> io::Result<Vec<Entry>> {
    read()
}

fn parse(line: &str) -> Option<Entry> {
    let mut fields = line.split_ascii_whitespace();
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (pid, parent, group) = (number()?, number()?, number()?);
    let state = fields.next()?;
    let used = time(fields.next()?)?;
    Some(Entry {
        pid,
        parent,
        group,
        // What `ps` calls a session there is an address, not the number of a process.
        session: group,
        zombie: state.starts_with('Z'),
        threads: 1,
        started: started(&fields.collect::<Vec<_>>().join(" "))?,
        used,
    })
}

/// Seconds, so that start times can be compared: `Mon Nov 16 03:12:09 2026`.
fn started(text: &str) -> Option<u64> {
    let at: DateTime = strtime::parse("%a %b %d %H:%M:%S %Y", text).ok()?.to_datetime().ok()?;
    let seconds = at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs();
    u64::try_from(seconds).ok()
}

fn time(text: &str) -> Option<Duration> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let of_days = days.parse::<f64>().ok()? * 86_400.0;
    rest.split(':')
        .try_fold(0.0, |seconds, part| Some(seconds * 60.0 + part.parse::<f64>().ok()?))
        .map(|seconds| Duration::from_secs_f64(of_days + seconds))
}

pub(super) fn entry(pid: i32) -> io::Result<Option<Entry>> {
    let output = spawn::output("ps", &["-o", "pid=,ppid=,pgid=,stat=,time=,lstart=", "-p", &pid.to_string()])?;
    Ok(String::from_utf8_lossy(&output).lines().find_map(parse))
}

pub(super) fn command(pid: i32) -> String {
    let output = spawn::output("ps", &["-o", "command=", "-p", &pid.to_string()]).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().chars().take(200).collect()
}

pub(super) fn environment(pid: i32) -> Option<Vec<u8>> {
    let output = spawn::output("ps", &["-wwE", "-o", "command=", "-p", &pid.to_string()]).ok()?;
    Some(output.split(|byte| *byte == b' ').flat_map(|word| word.iter().copied().chain([0])).collect())
}

pub(super) fn limit(_pid: i32) -> Option<u64> {
    Some(u64::MAX)
}

pub(super) fn set_limit(_mark: u64) {}

/// Without descriptors for processes there is a moment between the check and the signal.
pub(super) fn signal(process: Identity, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    if entry(process.pid).ok().flatten().is_some_and(|entry| entry.started == process.started) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

pub(super) type ExitWatch = super::exit_thread::ExitThread;

pub(super) fn adopt_orphans() -> bool {
    false
}

pub(super) fn has_other_children(_spawned: &HashSet<i32>) -> bool {
    true
}

pub(super) fn when_parent_dies(_parent: Pid, _signal: Signal) -> io::Result<()> {
    Ok(())
}

#[expect(unsafe_code, reason = "there is no safe way to name a descriptor that one does not own")]
pub(super) fn close_on_exec() {
    for descriptor in 3..256 {
        // SAFETY: it only sets a flag, and fails on numbers that are not open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

pub(super) fn forbid_inspection() {}

pub(super) fn halted(_pid: i32) -> Halted {
    Halted::No
}

pub(super) const ASK_HALTED: Option<Duration> = None;

pub(super) fn deepen(_descriptor: &OwnedFd) {}

/// Our end cannot be opened closed-on-exec; the child closes what it inherits (see `spawn.rs`).
pub(super) fn pty_flags() -> OpenptFlags {
    OpenptFlags::RDWR | OpenptFlags::NOCTTY
}

pub(super) fn pty_peer(ours: impl AsFd) -> io::Result<OwnedFd> {
    let name = rustix::pty::ptsname(ours, Vec::new())?;
    Ok(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}

pub(super) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_is_a_larger_number() {
        let line = |at: &str| parse(&format!("  42 1 42 Ss 1:02.50 {at}")).unwrap();
        let (before, after) = (line("Mon Nov 30 23:59:59 2026"), line("Tue Dec  1 00:00:00 2026"));
        assert_eq!(after.started - before.started, 1);
        assert_eq!((before.pid, before.parent, before.group, before.used.as_millis()), (42, 1, 42, 62_500));
    }

    #[test]
    fn a_line_without_a_start_is_no_process() {
        assert_eq!(parse("42 1 42 Ss 0:00.01"), None);
        assert_eq!(parse("42 1 42 Ss 0:00.01 yesterday"), None);
    }
}
