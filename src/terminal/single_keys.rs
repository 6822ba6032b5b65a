//! Single keys of the user's terminal, for as long as someone waits for them. It must never take the terminal from a
//! foreground program, and always gives it back as it was.

use std::future::pending;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::termios::{LocalModes, SpecialCodeIndex};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::modes::Modes;

/// The keyboard, key by key and without echo, until it is dropped.
#[derive(Debug)]
pub(crate) struct SingleKeys {
    _modes: Modes,
    terminal: AsyncFd<OwnedFd>,
}

impl SingleKeys {
    /// Takes the keyboard; `None` where there is none, or where it belongs to another program.
    pub(crate) fn take() -> Option<Self> {
        if !super::has_keyboard() {
            return None;
        }
        let terminal = super::open(Interest::READABLE)?;
        let modes = Modes::take("", |modes| {
            // Ctrl-C and Ctrl-Z keep their meaning.
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        });
        Some(Self { _modes: modes.ok()?, terminal })
    }

    /// Waits for the next key. Cancel-safe.
    pub(crate) async fn key(&self) -> u8 {
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
