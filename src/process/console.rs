//! The user's terminal, handed to an agent's own program: every key goes through, everything is shown as it comes.
//!
//! It must always be given back as it was: at the end, after an error, after a panic.

use std::future::pending;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, Once, PoisonError};

use memchr::memmem;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{self, OptionalActions, Termios};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::keyboard::is_ours;
use super::stream::register;

/// More than this is not kept for a terminal that is slow; then the program has to wait, as it would without us.
const MOST_HELD: usize = 256 * 1024;

/// What a program switches on and may leave on when it is stopped: a frame half drawn, colours, the mouse, reports of
/// focus, pasted text as such, other forms of keys, a hidden cursor.
const RESET: &str = "\u{1b}[?2026l\u{1b}[0m\u{1b}[?1000l\u{1b}[?1002l\u{1b}[?1003l\u{1b}[?1006l\u{1b}[?1004l\
                     \u{1b}[?2004l\u{1b}[>4m\u{1b}[<u\u{1b}[?25h";
const SECOND_SCREEN: &str = "\u{1b}[?1049h";
const FIRST_SCREEN: &str = "\u{1b}[?1049l";

/// The modes to restore, and whether the second screen is shown, while the terminal is handed over.
static BEFORE: Mutex<Option<(Termios, bool)>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The terminal, until it is dropped.
#[derive(Debug)]
pub struct Console {
    terminal: AsyncFd<OwnedFd>,
    held: Vec<u8>,
}

impl Console {
    /// Takes the terminal; `None` where there is none, or where it belongs to another program.
    pub fn take() -> Option<Self> {
        if !termios::isatty(stdin()) || !termios::isatty(stdout()) {
            return None;
        }
        // Opened anew: reading without blocking must not be passed on to whoever shares standard input.
        let terminal = rustix::fs::open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let terminal = register(terminal.ok()?, Interest::READABLE | Interest::WRITABLE).ok()?;
        if !is_ours(&terminal) {
            return None;
        }
        let before = termios::tcgetattr(&terminal).ok()?;
        let mut modes = before.clone();
        modes.make_raw();
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                usual(panic);
            }));
        });
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((before, false));
        termios::tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
        Some(Self { terminal, held: Vec::new() })
    }

    /// Shows bytes, as soon as the terminal takes them.
    pub fn show(&mut self, bytes: &[u8]) {
        let last = |sequence: &str| memmem::rfind(bytes, sequence.as_bytes());
        let (second, first) = (last(SECOND_SCREEN), last(FIRST_SCREEN));
        if second != first
            && let Some((_, shown)) = &mut *BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
        {
            *shown = second > first;
        }
        self.held.extend_from_slice(bytes);
    }

    /// True when no more should be shown before the terminal has taken what it has.
    pub fn is_full(&self) -> bool {
        self.held.len() > MOST_HELD
    }

    /// Waits for keys, and shows what is to be shown meanwhile. Cancel-safe.
    pub async fn keys(&mut self) -> Vec<u8> {
        loop {
            let interest =
                if self.held.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            let Ok(mut ready) = self.terminal.ready(interest).await else { return pending().await };
            if ready.ready().is_writable() && !self.held.is_empty() {
                match rustix::io::write(&self.terminal, &self.held) {
                    Ok(count) => drop(self.held.drain(..count)),
                    Err(Errno::AGAIN) => ready.clear_ready_matching(tokio::io::Ready::WRITABLE),
                    Err(Errno::INTR) => {}
                    // Nobody looks any more: the run hears of that by a Unix signal.
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

    /// Shows the rest, if the terminal takes it.
    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&std::mem::take(&mut self.held))?;
        out.flush()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // In the background this would halt the whole program.
        if is_ours(&self.terminal) {
            let _ = self.flush();
            give_back();
        }
    }
}

/// Gives the terminal back, once. What cannot be written is of no use to anybody any more.
fn give_back() {
    let Some((before, second)) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let mut out = io::stdout();
    let _ = write!(out, "{RESET}{}\r\n", if second { FIRST_SCREEN } else { "" }).and_then(|()| out.flush());
    let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &before);
}
