//! The user's terminal: raw mode, second screen, keys, size. Whatever takes it gives it back as it was: at the end, after
//! an error, after a panic, and when a Unix signal ends the program (which the caller hears, and drops what took it).

mod handover;
mod keys;
mod modes;
mod screen;
mod single_keys;

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::stdio::{stdin, stdout};
use rustix::termios;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::process::{Size, register};

pub(crate) use handover::Handover;
pub(crate) use keys::Keyboard;
pub(crate) use screen::{FullScreen, copy};
pub(crate) use single_keys::SingleKeys;

/// The size of the terminal on standard output; the usual one where there is none.
pub(crate) fn size() -> Size {
    match termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => Size { rows: size.ws_row, columns: size.ws_col },
        _ => Size { rows: 24, columns: 80 },
    }
}

/// The terminal, opened again: reading without blocking must not be passed on to whoever shares standard input.
fn open(interest: Interest) -> Option<AsyncFd<OwnedFd>> {
    let terminal = rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
    register(terminal.ok()?, interest).ok()
}

/// True when standard input is a terminal, and this is its foreground program: in the background, reading would halt it.
pub(crate) fn has_keyboard() -> bool {
    termios::isatty(stdin()) && termios::tcgetpgrp(stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// True when standard output is a terminal of ours that another program has now: the shell, after `bg`.
pub(crate) fn is_in_background() -> bool {
    termios::tcgetpgrp(stdout()).is_ok_and(|group| group != rustix::process::getpgrp())
}

/// Asks, and reads the line that a person types; `None` when nothing comes in time, or the terminal is gone.
pub(crate) fn typed_line(question: &str, patience: Duration) -> Option<String> {
    // What was typed before the question is no answer to it; what is typed as soon as it is seen is one.
    let _ = termios::tcflush(stdin(), termios::QueueSelector::IFlush);
    write(question).ok()?;
    let input = stdin();
    let mut ready = [rustix::event::PollFd::new(&input, rustix::event::PollFlags::IN)];
    let timeout = rustix::event::Timespec::try_from(patience).ok()?;
    match rustix::event::poll(&mut ready, Some(&timeout)) {
        Ok(1..) => {
            let mut words = String::new();
            io::stdin().read_line(&mut words).ok().filter(|length| *length > 0).map(|_| words)
        }
        _ => None,
    }
}

/// Writes control sequences, or ralph's own words, to the terminal.
fn write(sequence: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}
