//! A terminal with nobody at it: a pseudo-terminal for a program, keys for it, and what stands on the screen.
//!
//! It answers what programs ask a terminal, as a real one does. A [`Program`] never outlives it.

mod heard;
mod program;

pub use heard::Heard;
pub use program::{Program, command};

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use signal_hook::consts::{SIGHUP, SIGINT};

/// How often is looked.
const GLANCE: Duration = Duration::from_millis(10);

/// Lets programs that are started from now on hear Ctrl-C and a hang-up. Whoever started this process may have had them
/// ignored, as `nohup` does, and they would inherit that; what is handled here is not inherited.
pub fn hear_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGHUP] {
            // Without it everything is as it was.
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::new(AtomicBool::new(true)));
        }
    });
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// From left to right.
    pub columns: NonZeroU16,
    /// From top to bottom.
    pub rows: NonZeroU16,
}

impl Size {
    /// So many of each; none is taken for one.
    pub fn new(columns: u16, rows: u16) -> Self {
        let number = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
        Self { columns: number(columns), rows: number(rows) }
    }

    fn winsize(self) -> Winsize {
        Winsize { ws_row: self.rows.get(), ws_col: self.columns.get(), ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// A terminal.
pub struct Terminal {
    ours: File,
    theirs: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
    closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

/// All that came from the program.
pub struct Seen {
    /// What an emulator made of it.
    pub parser: vt100::Parser<Heard>,
    /// As it came.
    pub bytes: Vec<u8>,
}

impl Terminal {
    /// A new one.
    pub fn open(size: Size) -> io::Result<Self> {
        hear_signals();
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&ours)?;
        rustix::pty::unlockpt(&ours)?;
        let ours = File::from(ours);
        let theirs = other_end(&ours)?;
        let before = tcgetattr(&theirs)?;
        tcsetwinsize(&theirs, size.winsize())?;
        let parser = vt100::Parser::new_with_callbacks(size.rows, size.columns, 0, Heard::default());
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let closed = Arc::new(AtomicBool::new(false));
        let (terminal, shared, hung_up) = (ours.try_clone()?, Arc::clone(&seen), Arc::clone(&closed));
        let reader = Some(std::thread::spawn(move || read(terminal, &shared, &hung_up)));
        Ok(Self { ours, theirs, before, seen, closed, reader })
    }

    /// Gives it to a command that is going to be started.
    pub fn connect(&self, command: &mut Command) -> io::Result<()> {
        let end = || other_end(&self.ours).map(Stdio::from);
        command.stdin(end()?).stdout(end()?).stderr(end()?).env("TERM", "xterm-256color");
        Ok(())
    }

    /// Looks at what came.
    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What stands on the screen.
    pub fn text(&self) -> String {
        self.seen(|seen| seen.parser.screen().contents())
    }

    /// Waits until the screen is as wanted; `false` when that does not come.
    pub fn until(&self, patience: Duration, wanted: impl Fn(&str) -> bool) -> bool {
        let begun = Instant::now();
        while !wanted(&self.text()) {
            if begun.elapsed() > patience {
                return false;
            }
            sleep(GLANCE);
        }
        true
    }

    /// Types.
    pub fn types(&mut self, keys: &str) -> io::Result<()> {
        self.ours.write_all(keys.as_bytes())
    }

    /// Makes it larger or smaller.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.parser.screen_mut().set_size(size.rows, size.columns);
        Ok(tcsetwinsize(&self.theirs, size.winsize())?)
    }

    /// Goes away, as when its window is closed.
    pub fn hang_up(&mut self) -> io::Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        // It holds the terminal open.
        let _ = self.reader.take().map(JoinHandle::join);
        self.ours = File::open("/dev/null")?;
        Ok(())
    }

    /// Whether it treats what is typed and printed as in the beginning, as a shell leaves it.
    pub fn is_as_before(&self) -> bool {
        let modes = |termios: &Termios| (termios.local_modes, termios.input_modes, termios.output_modes);
        tcgetattr(&self.theirs).is_ok_and(|now| modes(&now) == modes(&self.before))
    }

    /// Whether nothing is left of what a program switches on: the second screen, the mouse, a hidden cursor.
    pub fn is_clean(&self) -> bool {
        self.seen(|seen| {
            let screen = seen.parser.screen();
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// Reads until the terminal is gone; answers what is asked.
fn read(mut terminal: File, seen: &Mutex<Seen>, hung_up: &AtomicBool) {
    let mut bytes = vec![0; 65_536];
    let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !hung_up.load(Ordering::SeqCst) {
        let ready = poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&soon));
        if matches!(ready, Ok(0) | Err(_)) {
            continue;
        }
        let Ok(count @ 1..) = terminal.read(&mut bytes) else { return };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.parser.process(&bytes[..count]);
        seen.bytes.extend_from_slice(&bytes[..count]);
        let answers = seen.parser.callbacks_mut().answers();
        drop(seen);
        // A program that has ended needs no answer.
        let _ = terminal.write_all(answers.as_bytes());
    }
}

/// The end that is the program's. It must not become the controlling terminal of whoever opens it.
fn other_end(ours: &File) -> io::Result<OwnedFd> {
    let name = rustix::pty::ptsname(ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name.as_c_str(), flags, Mode::empty())?)
}
