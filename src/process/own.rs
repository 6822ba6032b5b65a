//! What ralph does to its own process: halting with the shell, and dying by the signal that ended it.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::Size;

/// This program, for starting it once more; on Linux even when its file was replaced by a newer one meanwhile.
pub fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_else(|_| PathBuf::from("ralph"))
    }
}

/// The size of the terminal on standard output; a usual one where there is none.
pub fn terminal_size() -> Size {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => Size { rows: size.ws_row, columns: size.ws_col },
        _ => Size { rows: 24, columns: 80 },
    }
}

/// True when standard input is a terminal, and this is its foreground program: in the background, reading would halt it.
pub fn has_terminal() -> bool {
    let input = rustix::stdio::stdin();
    rustix::termios::isatty(input)
        && rustix::termios::tcgetpgrp(input).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// True when standard output is a terminal of ours that another program has now: the shell, after `bg`.
pub fn is_in_background() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdout()).is_ok_and(|group| group != rustix::process::getpgrp())
}

/// Asks, and hears the line that a person types; `None` when nothing comes in time, or the terminal is gone.
pub fn typed_line(question: &str, patience: Duration) -> Option<String> {
    let input = rustix::stdio::stdin();
    // What was typed before the question is no answer to it; what is typed as soon as it is seen is one.
    let _ = rustix::termios::tcflush(input, rustix::termios::QueueSelector::IFlush);
    let mut output = std::io::stdout();
    output.write_all(question.as_bytes()).and_then(|()| output.flush()).ok()?;
    let mut ready = [rustix::event::PollFd::new(&input, rustix::event::PollFlags::IN)];
    let timeout = rustix::event::Timespec::try_from(patience).ok()?;
    match rustix::event::poll(&mut ready, Some(&timeout)) {
        Ok(1..) => {
            let mut words = String::new();
            std::io::stdin().read_line(&mut words).ok().filter(|length| *length > 0).map(|_| words)
        }
        _ => None,
    }
}

/// Halts this process until the shell lets it go on. The caller has halted its agents before.
pub fn suspend_self() {
    // STOP and not TSTP: this program handles TSTP, so that it would come back here.
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Unix signals that end a program which does not care about them.
const USUAL: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP];

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
static HANDLERS: Mutex<Option<[libc::sigaction; USUAL.len()]>> = Mutex::new(None);

/// Lets the usual Unix signals end this process again, but for ignored ones: nothing is left that would need care.
#[expect(unsafe_code, reason = "the default action of a signal can only be restored by a C call")]
pub fn restore_signals() {
    let before = USUAL.map(|number| {
        // SAFETY: plain C calls with valid arguments; all zeros is the default action with no flags and an empty mask.
        unsafe {
            let (default, mut before): (_, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
            let wanted = if ignores(number) { std::ptr::null() } else { &raw const default };
            libc::sigaction(number, wanted, &raw mut before);
            before
        }
    });
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
}

/// Cares about them again, when another run begins in the same process. The runtime installs its handlers only once.
#[expect(unsafe_code, reason = "a handler can only be put back by a C call")]
pub fn take_signals() {
    let handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).take();
    for (number, before) in USUAL.into_iter().zip(handlers.into_iter().flatten()) {
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
