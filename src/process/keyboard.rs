//! Single keys of the user's terminal, for as long as somebody waits for them. It must never take the terminal from a
//! foreground program, and always gives it back as it was.

use std::future::pending;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::stream::register;

/// The keyboard, key by key and without echo, until it is dropped.
#[derive(Debug)]
pub struct Keyboard {
    before: Termios,
    terminal: AsyncFd<OwnedFd>,
}

impl Keyboard {
    /// Takes the keyboard; `None` where there is none, or where it belongs to another program.
    pub fn take() -> Option<Self> {
        if !termios::isatty(stdin()) {
            return None;
        }
        // Opened anew: reading without blocking must not be passed on to whoever shares standard input.
        let terminal = rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let terminal = register(terminal.ok()?, Interest::READABLE).ok()?;
        if !is_ours(&terminal) {
            return None;
        }
        let before = termios::tcgetattr(&terminal).ok()?;
        let mut modes = before.clone();
        // Ctrl-C and Ctrl-Z keep their meaning.
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
        Some(Self { before, terminal })
    }

    /// Waits for the next key. Cancel-safe.
    pub async fn key(&self) -> u8 {
        loop {
            let Ok(mut ready) = self.terminal.readable().await else { return pending().await };
            let mut byte = [0];
            match rustix::io::read(&self.terminal, &mut byte) {
                Ok(1) => return byte[0],
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                // The terminal is gone.
                Ok(_) | Err(_) => return pending().await,
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // In the background this would halt the whole program.
        if is_ours(&self.terminal) {
            let _ = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
        }
    }
}

/// True when the terminal's foreground is this program.
pub(super) fn is_ours(terminal: &AsyncFd<OwnedFd>) -> bool {
    termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
