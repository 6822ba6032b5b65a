//! The user's terminal, handed to an agent's own program: every key goes through, everything is shown as it comes.
//!
//! It must always be given back as it was: at the end, after an error, after a panic.

use std::future::pending;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::io::Errno;
use rustix::stdio::stdout;
use rustix::termios::{self, Termios};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::modes::Modes;

/// More than this is not kept for a terminal that is slow; then the program has to wait, as it would without us.
const MOST_HELD: usize = 256 * 1024;

/// What a program switches on and may leave on when it is stopped: a frame half drawn, colours, the mouse, reports of
/// focus, pasted text as such, other forms of keys, a hidden cursor.
const RESET: &str = "\u{1b}[?2026l\u{1b}[0m\u{1b}[?1000l\u{1b}[?1002l\u{1b}[?1003l\u{1b}[?1006l\u{1b}[?1004l\
                     \u{1b}[?2004l\u{1b}[>4m\u{1b}[<u\u{1b}[?25h";
const SECOND_SCREEN: &str = "\u{1b}[?1049h";
const FIRST_SCREEN: &str = "\u{1b}[?1049l";

/// The terminal, until it is dropped.
#[derive(Debug)]
pub(crate) struct Handover {
    _modes: Modes,
    /// The program shows the second screen.
    second: bool,
    terminal: AsyncFd<OwnedFd>,
    held: Vec<u8>,
}

impl Handover {
    /// Takes the terminal; `None` where there is none, or where it belongs to another program.
    pub(crate) fn take() -> Option<Self> {
        if !super::has_keyboard() || !termios::isatty(stdout()) {
            return None;
        }
        let terminal = super::open(Interest::READABLE | Interest::WRITABLE)?;
        let modes = Modes::take(&reset(false), Termios::make_raw).ok()?;
        Some(Self { _modes: modes, second: false, terminal, held: Vec::new() })
    }

    /// Shows bytes, as soon as the terminal takes them.
    pub(crate) fn show(&mut self, bytes: &[u8]) {
        let last = |sequence: &str| memmem::rfind(bytes, sequence.as_bytes());
        let (second, first) = (last(SECOND_SCREEN), last(FIRST_SCREEN));
        if second != first {
            self.second = second > first;
            Modes::leave_by(&reset(self.second));
        }
        self.held.extend_from_slice(bytes);
    }

    /// True when no more should be shown before the terminal has taken what it has.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() > MOST_HELD
    }

    /// Waits for keys, and shows what is to be shown meanwhile. Cancel-safe.
    pub(crate) async fn keys(&mut self) -> Vec<u8> {
        loop {
            let interest =
                if self.held.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let Ok(mut ready) = self.terminal.ready(interest).await else { return pending().await };
            if ready.ready().is_writable() && !self.held.is_empty() {
                match rustix::io::write(&self.terminal, &self.held) {
                    Ok(count) => drop(self.held.drain(..count)),
                    Err(Errno::AGAIN) => ready.clear_ready_matching(tokio::io::Ready::WRITABLE),
                    Err(Errno::INTR) => {}
                    // Nobody looks any more: the run learns that from a Unix signal.
                    Err(_) => self.held.clear(),
                }
            }
            if ready.ready().is_readable() {
                let mut buffer = [0; 4096];
                match rustix::io::read(&self.terminal, &mut buffer) {
                    Ok(count) if count > 0 => return buffer[..count].to_vec(),
                    Err(Errno::AGAIN) => ready.clear_ready_matching(tokio::io::Ready::READABLE),
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(_) => return pending().await,
                }
            }
        }
    }

    /// Shows the rest, if the terminal takes it soon: after Ctrl-S it takes nothing until Ctrl-Q.
    fn flush(&mut self) {
        self.held.extend_from_slice(reset(self.second).as_bytes());
        let until = Instant::now() + PATIENCE;
        while !self.held.is_empty() {
            match rustix::io::write(&self.terminal, &self.held) {
                Ok(count) => drop(self.held.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Err(_) => return,
            }
        }
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // In the background this would halt the whole program.
        if super::has_keyboard() && Modes::are_ours() {
            self.flush();
        }
    }
}

/// How long a terminal may take to show the rest.
const PATIENCE: Duration = Duration::from_millis(500);

/// What undoes what the program has switched on.
fn reset(second: bool) -> String {
    format!("{RESET}{}\r\n", if second { FIRST_SCREEN } else { "" })
}
