//! A person at a terminal: types, and reads what stands on the screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::{PATIENCE, Ran, Running, Test};

/// A run on a terminal of its own.
pub struct OnTerminal {
    pub running: Running,
    ours: File,
    theirs: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Test {
    /// Starts it as the foreground program of a terminal.
    pub fn on_terminal(self, rows: u16, columns: u16) -> OnTerminal {
        self.under(&[], rows, columns)
    }

    /// Starts a line of bash as the foreground program of a terminal; `"$@"` is ralph.
    pub fn in_shell(self, line: &str, rows: u16, columns: u16) -> OnTerminal {
        self.under(&["bash", "-c", line, "bash"], rows, columns)
    }

    fn under(self, program: &[&str], rows: u16, columns: u16) -> OnTerminal {
        let ralph = self.ralph();
        // Makes the terminal the controlling one, which takes a new session.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(program).arg(ralph.get_program()).args(ralph.get_args());
        command.current_dir(ralph.get_current_dir().unwrap());
        for (name, value) in ralph.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm-256color");
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let theirs = OwnedFd::from(open());
        tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        command.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().unwrap();
        drop(command);
        let ours = File::from(ours);
        let screen =
            Arc::new(Mutex::new(vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 10_000)));
        let (mut reads, seen) = (ours.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reads.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..count]);
            }
        });
        OnTerminal { running: Running { test: self, child }, ours, theirs, screen }
    }
}

impl OnTerminal {
    /// What stands on the screen.
    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until this stands on the screen.
    #[track_caller]
    pub fn until(&self, text: &str) {
        let start = Instant::now();
        while !self.screen().contains(text) {
            assert!(start.elapsed() < PATIENCE, "waited too long for {text:?} on\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal larger or smaller.
    pub fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(&self.theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        self.screen.lock().unwrap().screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
    }

    /// Whether nothing is left of what a program switches on: the second screen, the mouse, a hidden cursor.
    pub fn is_clean(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        let screen = parser.screen();
        !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    /// Whether the terminal shows what is typed, line by line, as a shell leaves it.
    pub fn is_as_before(&self) -> bool {
        tcgetattr(&self.theirs).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Waits for the end.
    pub fn wait(self) -> (Ran, String) {
        let ran = self.running.wait();
        // What it wrote last may still be on its way.
        std::thread::sleep(Duration::from_millis(50));
        let screen = self.screen.lock().unwrap().screen().contents();
        (ran, screen)
    }
}
