//! What ralph does to its own process: halting with the shell, and dying by the signal that ended it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

use super::guardian::{self, Duty};
use super::platform;

/// This program, for starting it once more.
pub fn own_program() -> PathBuf {
    platform::own_program()
}

/// Raises the limit on open files as far as it goes; an error with that limit where it is too low to run anything.
pub fn enough_files() -> Result<(), u64> {
    match super::spawn::raise_open_files() {
        limit @ ..FEWEST_FILES => Err(limit),
        _ => Ok(()),
    }
}

/// What ralph itself and one agent need, with some to spare.
const FEWEST_FILES: u64 = 40;

/// Keeps agents of the same user away from the memory and the descriptors of this process. Call it first thing in `main`.
pub fn forbid_inspection() {
    platform::forbid_inspection();
}

/// Keeps a little freed memory for the next message of an agent, instead of giving it back to the system each time. Call it before
/// the first thread starts.
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "the settings of the allocator are not in rustix")
)]
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (setting, bytes) in [(libc::M_TRIM_THRESHOLD, 1 << 20), (libc::M_MMAP_THRESHOLD, 512 << 10)] {
        // SAFETY: sets a number of the allocator; nothing else runs yet.
        unsafe { libc::mallopt(setting, bytes) };
    }
}

/// True when this program is in the foreground of a terminal, so that a person can press Ctrl-Z.
pub fn is_foreground() -> bool {
    let group = rustix::process::getpgrp();
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.iter().any(|stream| rustix::termios::tcgetpgrp(stream).is_ok_and(|foreground| foreground == group))
}

/// Halts this process until the shell lets it go on. The caller has halted its agents before.
pub fn suspend_self() {
    guardian::add(Duty::Sleep);
    // STOP and not TSTP: this program handles TSTP, so that it would come back here.
    let _ = kill_process(getpid(), Signal::STOP);
    guardian::remove(&Duty::Sleep);
}

/// Unix signals that end a program which does not care about them, beside SIGINT, SIGTERM and SIGHUP. Those
/// that tell of a fault in the program itself are in `faults.rs`.
const ENDING: &[(i32, &str)] = &[
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGSYS, "SIGSYS"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    #[cfg(target_os = "linux")]
    (libc::SIGPWR, "SIGPWR"),
    #[cfg(target_os = "linux")]
    (libc::SIGSTKFLT, "SIGSTKFLT"),
];

/// The numbers of all Unix signals that end a program, beside SIGINT, SIGTERM and SIGHUP.
pub fn ending_signals() -> Vec<i32> {
    let named = ENDING.iter().map(|(number, _)| *number);
    #[cfg(target_os = "linux")]
    let named = named.chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    named.collect()
}

/// The name of one of them.
pub fn signal_name(number: i32) -> String {
    let named = ENDING.iter().find(|(one, _)| *one == number);
    named.map_or_else(|| format!("Unix signal {number}"), |(_, name)| (*name).to_owned())
}

/// All Unix signals that a run cares about.
fn usual() -> Vec<i32> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP].into_iter().chain(ending_signals()).collect()
}

/// True for a Unix signal that whoever started ralph wants ignored, as `nohup` does.
#[expect(unsafe_code, reason = "the dispositions of signals are not in rustix")]
pub fn ignores(number: i32) -> bool {
    // SAFETY: it only asks; all zeros is a valid value to be written over.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &raw mut now);
        now
    };
    now.sa_sigaction == libc::SIG_IGN
}

/// What was done about them before [`restore_signals`].
static HANDLERS: Mutex<Option<Vec<(i32, libc::sigaction)>>> = Mutex::new(None);

/// Lets the usual Unix signals end this process again, but for ignored ones: nothing is left that would need care.
#[expect(unsafe_code, reason = "the default action of a signal can only be restored by a C call")]
pub fn restore_signals() {
    let before = usual().into_iter().map(|number| {
        // SAFETY: plain C calls with valid arguments; all zeros is the default action with no flags and an empty mask.
        unsafe {
            let (default, mut before): (_, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
            let wanted = if ignores(number) { std::ptr::null() } else { &raw const default };
            libc::sigaction(number, wanted, &raw mut before);
            (number, before)
        }
    });
    let before = before.collect();
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
}

/// Cares about them again, when another run begins in the same process. The runtime installs its handlers only once.
#[expect(unsafe_code, reason = "a handler can only be put back by a C call")]
pub fn take_signals() {
    super::end_like_sigterm();
    let handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).take();
    for (number, before) in handlers.into_iter().flatten() {
        // SAFETY: a plain C call; the handler was installed before in this very process.
        unsafe {
            libc::sigaction(number, &raw const before, std::ptr::null_mut());
        }
    }
}

/// Ends this process by a Unix signal, so that the shell sees a true death by it.
#[expect(unsafe_code, reason = "the default action of a signal can only be restored by a C call")]
pub fn die_by(number: i32) -> ! {
    // SAFETY: plain C calls with valid arguments; no handler of ours runs between them.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        libc::raise(number);
    }
    // The signal was blocked or ignored by whoever started us: tell it by the number.
    std::process::exit(128 + number)
}
