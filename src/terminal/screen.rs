//! Takes the terminal and gives it back as it was: at the end, after an error, after a panic.
//!
//! Only a Unix signal that cannot be caught leaves it as it is.

use std::io;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use rustix::termios::Termios;

use super::modes::Modes;
use super::write;

/// The other screen, no cursor, pasted text as such.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?2004h";
/// Clicks and the wheel; not every movement.
const MOUSE: &str = "\u{1b}[?1000h\u{1b}[?1006h";
const NO_MOUSE: &str = "\u{1b}[?1006l\u{1b}[?1000l";
/// The terminal shows what is between them at once.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// Everything back, also a frame that was not finished.
const LEAVE: &str = "\u{1b}[?2026l\u{1b}[0m\u{1b}[?2004l\u{1b}[?25h\u{1b}[?1049l";

pub(crate) type Screen = Terminal<CrosstermBackend<Out>>;

/// A frame on its way to the terminal. What was not flushed is dropped: half a frame must not come after the terminal was
/// given back.
#[derive(Debug, Default)]
pub(crate) struct Out(Vec<u8>);

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.0);
        if !Modes::are_ours() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        io::Write::write_all(&mut out, &bytes)?;
        io::Write::flush(&mut out)
    }
}

/// The terminal while it is ours.
pub(crate) struct FullScreen {
    pub screen: Screen,
    mouse: bool,
    modes: Option<Modes>,
}

impl FullScreen {
    pub(crate) fn take() -> io::Result<Self> {
        let modes = Modes::take(&format!("{NO_MOUSE}{LEAVE}"), Termios::make_raw)?;
        let screen = write(ENTER)
            .and_then(|()| write(MOUSE))
            .and_then(|()| Terminal::new(CrosstermBackend::new(Out::default())));
        match screen {
            Ok(screen) => Ok(Self { screen, mouse: true, modes: Some(modes) }),
            Err(error) => {
                let _ = write(LEAVE);
                Err(error)
            }
        }
    }

    /// Draws one frame, which the terminal shows at once.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui_core::terminal::Frame)) -> io::Result<()> {
        write(BEGIN)?;
        self.screen.draw(draw)?;
        write(END)
    }

    /// Takes the mouse, or lets the terminal have it; true when it is ours now.
    pub(crate) fn turn_mouse(&mut self) -> io::Result<bool> {
        self.mouse = !self.mouse;
        write(if self.mouse { MOUSE } else { NO_MOUSE })?;
        Ok(self.mouse)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // What cannot be written is of no use to anybody any more.
        if Modes::are_ours() {
            let _ = write(NO_MOUSE).and_then(|()| write(LEAVE));
        }
        // Before the screen is dropped: what it still holds must not be written.
        self.modes = None;
    }
}

/// Puts a text on the clipboard, where the terminal allows it.
pub(crate) fn copy(text: &str) -> io::Result<()> {
    crossterm::execute!(io::stdout(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
}
