//! What only Linux has: `/proc`, pidfds, the adoption of orphans, the parent-death signal, a mark that nobody drops.
//!
//! `portable.rs` has the same items for other systems; the rest of the room names neither.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::pty::OpenptFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::exit_thread::ExitThread;
use super::guardian::Halted;
use super::stream::register;
use super::table::Entry;
use super::tree::Identity;

/// A special code of a terminal that no byte has.
pub(super) const NO_CODE: u8 = 0;

/// What a pipe holds where the system lets it: as much as an unprivileged process may ask for.
const PIPE_SIZE: usize = 1024 * 1024;

/// True where `/proc/PID/task/TID/children` exists, so that a tree is found without reading every process.
static LISTS_CHILDREN: LazyLock<bool> = LazyLock::new(|| {
    let own = std::process::id();
    Path::new(&format!("/proc/self/task/{own}/children")).exists()
});

pub(super) fn read() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(128);
    for directory in std::fs::read_dir("/proc")? {
        let name = directory?.file_name();
        if let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) {
            // It may have ended since it was listed.
            entries.extend(entry(pid)?);
        }
    }
    let own = own_pid();
    if entries.iter().any(|entry| entry.pid == own) { Ok(entries) } else { Err(unseen()) }
}

/// The processes that can belong to the tree of `root`: its descendants, the orphans that came to this process, the
/// processes of `group`, and the descendants of both. Children that are `spawned` here are other trees.
pub(super) fn near(root: i32, group: &[i32], spawned: &HashSet<i32>) -> io::Result<Vec<Entry>> {
    if !*LISTS_CHILDREN {
        return read();
    }
    let own = own_pid();
    if entry(own)?.is_none() {
        return Err(unseen());
    }
    let (mut entries, mut seen) = (Vec::new(), HashSet::new());
    walk(root, own, &mut entries, &mut seen)?;
    // After the descendants: whoever loses its parent meanwhile comes here.
    for orphan in children(own, Threads::Several)?.into_iter().filter(|pid| !spawned.contains(pid)) {
        walk(orphan, own, &mut entries, &mut seen)?;
    }
    for member in group {
        if let Some(entry) = entry(*member)? {
            walk(*member, entry.parent, &mut entries, &mut seen)?;
        }
    }
    Ok(entries)
}

/// Adds a process and all its descendants. Its parent proves that the number still means the same process.
fn walk(first: i32, parent: i32, entries: &mut Vec<Entry>, seen: &mut HashSet<i32>) -> io::Result<()> {
    let own = own_pid();
    let mut queue = vec![(first, parent)];
    while let Some((pid, parent)) = queue.pop() {
        if seen.contains(&pid) {
            continue;
        }
        let Some(mut entry) = entry(pid)? else { continue };
        if entry.parent == HIDDEN {
            entry.parent = parent;
        }
        if entry.parent != parent && entry.parent != own {
            continue;
        }
        seen.insert(pid);
        let threads = if entry.threads == 1 { Threads::One } else { Threads::Several };
        queue.extend(children(pid, threads)?.into_iter().map(|child| (child, pid)));
        entries.push(entry);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    Several,
}

/// Each thread has its own list of children.
fn children(pid: i32, threads: Threads) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    let mut read = |path: PathBuf| -> io::Result<()> {
        let mut text = String::new();
        if let Some(mut file) = visible(File::open(path))? {
            visible(file.read_to_string(&mut text))?;
        }
        found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        Ok(())
    };
    if threads == Threads::One {
        read(format!("/proc/{pid}/task/{pid}/children").into())?;
    } else if let Some(tasks) = visible(std::fs::read_dir(format!("/proc/{pid}/task")))? {
        for task in tasks {
            match visible(task)? {
                Some(task) => read(task.path().join("children"))?,
                None => break,
            }
        }
    }
    Ok(found)
}

/// Nothing for a process that is gone, or that this user may not look at.
fn visible<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH | libc::EACCES | libc::EPERM)) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The parent of a process that exists but may not be looked at, as under `hidepid`.
const HIDDEN: i32 = -1;

/// One process, if it exists.
pub(super) fn entry(pid: i32) -> io::Result<Option<Entry>> {
    // A line of `stat` has 52 numbers and a name of at most 64 bytes.
    let mut line = [0; 2048];
    match File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line)) {
        Ok(length) => Ok(parse(pid, &line[..length])),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Ok(None),
            Some(libc::EACCES | libc::EPERM) => Ok(Some(Entry {
                pid,
                parent: HIDDEN,
                group: HIDDEN,
                session: HIDDEN,
                zombie: false,
                threads: 1,
                started: u64::MAX,
                used: Duration::ZERO,
            })),
            _ => Err(error),
        },
    }
}

/// The name in the second field may hold anything, blanks and parentheses too, so the rest starts at the last `)`.
fn parse(pid: i32, line: &[u8]) -> Option<Entry> {
    let end = memchr::memrchr(b')', line)?;
    let rest = std::str::from_utf8(line.get(end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    // Fields 14 to 17 of proc(5): own time and that of reaped children, user and system.
    let ticks: i64 = (11..=14).filter_map(number).sum();
    Some(Entry {
        pid,
        parent: i32::try_from(number(1)?).ok()?,
        group: i32::try_from(number(2)?).ok()?,
        session: i32::try_from(number(3)?).ok()?,
        zombie: matches!(fields.first(), Some(&("Z" | "X"))),
        threads: u32::try_from(number(17)?).ok()?,
        started: fields.get(19)?.parse().ok()?,
        used: Duration::from_millis(
            u64::try_from(ticks).unwrap_or_default() * 1000 / rustix::param::clock_ticks_per_second(),
        ),
    })
}

/// The command line, for people.
pub(super) fn command(pid: i32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let words = words.join(" ");
    if words.trim().is_empty() {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        return format!("[{}]", name.trim());
    }
    words.trim().chars().take(200).collect()
}

/// The environment that a process was started with, as `NAME=value` pieces that end in NUL.
pub(super) fn environment(pid: i32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

/// The number on a process that carries a mark, even on one that is dead but not yet reaped; the highest number for no
/// limit.
pub(super) fn limit(pid: i32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    Some(line.split_ascii_whitespace().next()?.parse().unwrap_or(u64::MAX))
}

/// Puts a mark on the calling process. Used between fork and exec.
pub(super) fn set_limit(mark: u64) {
    let maximum = getrlimit(Resource::Locks).maximum;
    // Where a sandbox refuses, the environment has to do.
    let _ = setrlimit(Resource::Locks, Rlimit { current: Some(mark), maximum });
}

/// Sends a signal to exactly this process: the descriptor pins it, and the start time, read after that, proves that it
/// is the right one.
pub(super) fn signal(process: Identity, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let descriptor = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    let is_it = || entry(process.pid).ok().flatten().is_some_and(|entry| entry.started == process.started);
    let _ = match descriptor {
        Ok(descriptor) if is_it() => rustix::process::pidfd_send_signal(descriptor, signal),
        // Kernels before 5.3 have no pidfds.
        Err(Errno::NOSYS) if is_it() => rustix::process::kill_process(pid, signal),
        _ => Ok(()),
    };
}

/// Tells of the end of a process.
#[derive(Debug)]
pub(super) enum ExitWatch {
    /// A pidfd becomes readable when its process ends.
    Descriptor(AsyncFd<OwnedFd>),
    /// Where there are no pidfds: kernels before 5.3, and valgrind.
    Thread(ExitThread),
}

impl ExitWatch {
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(descriptor) => Ok(Self::Descriptor(register(descriptor, Interest::READABLE)?)),
            Err(Errno::NOSYS) => ExitThread::new(pid).map(Self::Thread),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Descriptor(descriptor) => {
                // A failure of the reactor means that it shuts down: then nothing more will come.
                let _ = ready!(descriptor.poll_read_ready(context));
                Poll::Ready(())
            }
            Self::Thread(thread) => thread.poll(context),
        }
    }
}

/// Makes orphans of all descendants children of this process.
pub(super) fn adopt_orphans() -> bool {
    // Any number switches it on; our own reads best in a trace.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

/// True when this process has children that it did not start: a shell started some and then became ralph.
pub(super) fn has_other_children(spawned: &HashSet<i32>) -> bool {
    children(own_pid(), Threads::Several).is_ok_and(|children| children.iter().any(|pid| !spawned.contains(pid)))
}

/// Sends this signal to the calling process when its parent dies. It fails when that has happened already.
pub(super) fn when_parent_dies(parent: Pid, signal: Signal) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
}

/// Ours are closed on exec anyway; this is about those that ralph itself was started with.
#[expect(unsafe_code, reason = "close_range is not in rustix")]
pub(super) fn close_on_exec() {
    const CLOEXEC: libc::c_uint = 1 << 2;
    // SAFETY: it only sets a flag on descriptors. Kernels before 5.11 refuse, and then it is as it was.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOEXEC) };
}

/// Keeps other processes of the same user away from the memory and the descriptors of this one.
pub(super) fn forbid_inspection() {
    // Refused by some sandboxes, which do not allow inspection either.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Whether a process that cares about Ctrl-Z itself was halted by someone else.
pub(super) fn halted(pid: i32) -> Halted {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = line.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().take(6).collect();
    let ["T", _, group, _, terminal, foreground] = fields[..] else { return Halted::No };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    if caught >> (libc::SIGTSTP - 1) & 1 == 0 {
        return Halted::No;
    }
    if terminal != "0" && foreground != group { Halted::InBackground } else { Halted::Yes }
}

/// How often it pays to ask [`halted`].
pub(super) const ASK_HALTED: Option<Duration> = Some(Duration::from_secs(1));

/// A deep pipe: some agents lose what they still had to say when they find it full (gemini ends in mid-line, with exit
/// code 0), and no reader is always faster than they are. Where it cannot be had, the ordinary one serves.
pub(super) fn deepen(descriptor: &OwnedFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(descriptor, PIPE_SIZE);
}

pub(super) fn pty_flags() -> OpenptFlags {
    OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC
}

/// The agent's end of a terminal.
pub(super) fn pty_peer(ours: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::pty::ioctl_tiocgptpeer(ours, pty_flags())?)
}

/// This program, even when its file was replaced by a newer one meanwhile.
pub(super) fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

fn unseen() -> io::Error {
    io::Error::other("`/proc` does not show this process")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) b ( 7) Z 1 42 40 0 -1 4194560 1 2 3 4 100 50 20 10 20 0 1 0 12345 0 0 18446744073709551615";
        let entry = parse(42, line).unwrap();
        assert_eq!((entry.parent, entry.group, entry.session, entry.zombie, entry.started), (1, 42, 40, true, 12345));
        assert_eq!(entry.used.as_millis(), 180 * 1000 / u128::from(rustix::param::clock_ticks_per_second()));
    }

    #[test]
    fn a_torn_line_is_no_process() {
        for line in [&b""[..], b"42 (a", b"42 (a)", b"42 (a) S 1", b"42 (a) S x y z"] {
            assert_eq!(parse(42, line), None);
        }
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = own_pid();
        let found = entry(own).unwrap().unwrap();
        assert!(!found.zombie);
        assert!(read().unwrap().iter().any(|other| other.pid == own && other.started == found.started));
        assert!(!command(own).is_empty());
    }
}
