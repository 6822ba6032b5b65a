//! A terminal with nobody at it: a program in a pseudo-terminal, keys for it, and what stands on the screen.
//!
//! It answers what programs ask a terminal, as a real one does. The program never outlives it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How often is looked.
const GLANCE: Duration = Duration::from_millis(10);

/// How large a terminal is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// From left to right.
    pub columns: NonZeroU16,
    /// From top to bottom.
    pub rows: NonZeroU16,
}

/// A program on a terminal of its own.
pub struct Terminal {
    child: Child,
    ours: File,
    theirs: OwnedFd,
    screen: Arc<Mutex<vt100::Parser<Questions>>>,
}

/// A command for [`Terminal::start`], to which arguments and variables are added: the terminal will be the controlling one of
/// the program, so that Ctrl-C is a Unix signal where the program wants it to be.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program);
    command
}

impl Terminal {
    /// Starts a program as the only one on a new terminal.
    pub fn start(mut command: Command, size: Size) -> io::Result<Self> {
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&ours)?;
        rustix::pty::unlockpt(&ours)?;
        let name = rustix::pty::ptsname(&ours, Vec::new())?;
        let name = name.to_str().map_err(io::Error::other)?;
        let open = || File::options().read(true).write(true).open(name);
        let theirs = OwnedFd::from(open()?);
        let (ws_row, ws_col) = (size.rows.get(), size.columns.get());
        tcsetwinsize(&theirs, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 })?;
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::from(open()?)).stdout(Stdio::from(open()?)).stderr(Stdio::from(open()?));
        let child = command.spawn()?;
        // It holds the terminal open as long as it lives.
        drop(command);
        let ours = File::from(ours);
        let parser = vt100::Parser::new_with_callbacks(size.rows, size.columns, 0, Questions::default());
        let screen = Arc::new(Mutex::new(parser));
        let (mut terminal, seen) = (ours.try_clone()?, Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = terminal.read(&mut bytes) {
                let mut parser = seen.lock().unwrap_or_else(PoisonError::into_inner);
                parser.process(&bytes[..count]);
                let answers = std::mem::take(&mut parser.callbacks_mut().answers);
                drop(parser);
                // A program that has ended needs no answer.
                let _ = terminal.write_all(answers.as_bytes());
            }
        });
        Ok(Self { child, ours, theirs, screen })
    }

    fn parser(&self) -> MutexGuard<'_, vt100::Parser<Questions>> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands on the screen.
    pub fn text(&self) -> String {
        self.parser().screen().contents()
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

    /// The program's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the program ended; `None` when it does not.
    pub fn ended(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let begun = Instant::now();
        loop {
            let status = self.child.try_wait()?;
            if status.is_some() || begun.elapsed() > patience {
                return Ok(status);
            }
            sleep(GLANCE);
        }
    }

    /// Whether it is as a shell left it: typed lines are shown, and nothing that a program switches on is still on.
    pub fn is_as_before(&self) -> bool {
        let cooked = tcgetattr(&self.theirs)
            .is_ok_and(|modes| modes.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
        let parser = self.parser();
        let screen = parser.screen();
        let hidden = screen.alternate_screen() || screen.hide_cursor() || screen.bracketed_paste();
        cooked && !hidden && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What programs ask a terminal before they draw, and what is answered.
#[derive(Default)]
struct Questions {
    answers: String,
}

impl vt100::Callbacks for Questions {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        kind: char,
    ) {
        match (first, params, kind) {
            // Where is the cursor?
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                let _ = write!(self.answers, "\x1b[{};{}R", row + 1, column + 1);
            }
            // What are you? One of the oldest.
            (None, [] | [[0]], 'c') => self.answers.push_str("\x1b[?6c"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Terminal {
        let mut command = command(Path::new("sh"));
        command.args(["-c", script]);
        let number = |number| NonZeroU16::new(number).unwrap();
        Terminal::start(command, Size { columns: number(60), rows: number(9) }).unwrap()
    }

    #[test]
    fn a_program_has_a_terminal_of_that_size_and_gets_what_is_typed() {
        let mut terminal = shell("stty size; read -r line; echo \"you said $line\"; exit 3");
        assert!(terminal.until(PATIENCE, |text| text.contains("9 60")), "{}", terminal.text());
        terminal.types("hello\n").unwrap();
        assert!(terminal.until(PATIENCE, |text| text.contains("you said hello")), "{}", terminal.text());
        assert_eq!(terminal.ended(PATIENCE).unwrap().unwrap().code(), Some(3));
    }

    #[test]
    fn ctrl_c_is_a_unix_signal() {
        let mut terminal = shell("trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.1; done");
        assert!(terminal.until(PATIENCE, |text| text.contains("ready")));
        terminal.types("\u{3}").unwrap();
        assert_eq!(terminal.ended(PATIENCE).unwrap().unwrap().code(), Some(4));
    }

    #[test]
    fn a_program_hears_where_the_cursor_is() {
        let terminal = shell("stty raw -echo; printf 'abc\\033[6n'; head -c 6 | tr '\\033' '^'; stty sane");
        assert!(terminal.until(PATIENCE, |text| text.contains("abc^[1;4R")), "{}", terminal.text());
    }

    #[test]
    fn what_is_switched_on_is_noticed() {
        let terminal = shell("printf '\\033[?1049hhere'; read -r line");
        assert!(terminal.until(PATIENCE, |text| text.contains("here")));
        assert!(!terminal.is_as_before());
    }
}
