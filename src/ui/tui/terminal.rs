//! Takes the terminal and gives it back as it was: at the end, after an error, after a panic.
//!
//! Only a Unix signal that cannot be caught leaves it as it is.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{Thread, ThreadId};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;

/// The other screen, no cursor, pasted text as such.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?2004h";
/// Clicks and the wheel; not every movement.
const MOUSE: &str = "\u{1b}[?1000h\u{1b}[?1006h";
const NO_MOUSE: &str = "\u{1b}[?1006l\u{1b}[?1000l";
/// The terminal shows what stands between them at once.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
/// Everything back, also a frame that was not finished.
const LEAVE: &str = "\u{1b}[?2026l\u{1b}[0m\u{1b}[?2004l\u{1b}[?25h\u{1b}[?1049l";

/// True while the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();
/// The thread that has the terminal, or had it last.
static TAKER: Mutex<Option<ThreadId>> = Mutex::new(None);

/// What is drawn on.
pub type Screen = Terminal<CrosstermBackend<Out>>;

/// A frame on its way to the terminal. What was not flushed is dropped: half a frame must not come after the terminal was
/// given back.
#[derive(Debug, Default)]
pub struct Out(Vec<u8>);

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.0);
        if !TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        out.flush()
    }
}

/// The terminal while it is ours.
pub struct Taken {
    /// What is drawn on.
    pub screen: Screen,
    mouse: bool,
}

impl Taken {
    /// Takes it.
    pub fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // Another thread may break and the view go on.
                if is_the_views(&std::thread::current()) {
                    give_back();
                }
                before(panic);
            }));
        });
        enable_raw_mode()?;
        *TAKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current().id());
        TAKEN.store(true, Ordering::SeqCst);
        let screen = write(ENTER)
            .and_then(|()| write(MOUSE))
            .and_then(|()| Terminal::new(CrosstermBackend::new(Out::default())));
        match screen {
            Ok(screen) => Ok(Self { screen, mouse: true }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws one frame, which the terminal shows at once.
    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui_core::terminal::Frame)) -> io::Result<()> {
        write(BEGIN)?;
        self.screen.draw(draw)?;
        write(END)
    }

    /// Takes the mouse, or lets the terminal have it; true when it is ours now.
    pub fn turn_mouse(&mut self) -> io::Result<bool> {
        self.mouse = !self.mouse;
        write(if self.mouse { MOUSE } else { NO_MOUSE })?;
        Ok(self.mouse)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Puts a text on the clipboard, where the terminal allows it.
pub fn copy(text: &str) -> io::Result<()> {
    crossterm::execute!(io::stdout(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
}

/// True when the view ends with a thread: its own, or the one that the whole program ends with.
fn is_the_views(thread: &Thread) -> bool {
    let taker = *TAKER.lock().unwrap_or_else(PoisonError::into_inner);
    taker == Some(thread.id()) || thread.name() == Some("main")
}

/// Gives the terminal back, once. What cannot be written is of no use to anybody any more.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = write(NO_MOUSE);
        let _ = write(LEAVE);
        let _ = disable_raw_mode();
    }
}

fn write(sequence: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}
