//! A person at a terminal: types, and reads what stands on the screen.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use fake_terminal::{Size, Terminal, command};

use super::{PATIENCE, Ran, Running, Test};

/// A run on a terminal of its own.
pub struct OnTerminal {
    pub running: Running,
    terminal: Terminal,
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
        let words = program.iter().map(OsStr::new).chain([ralph.get_program()]).chain(ralph.get_args());
        let words: Vec<&OsStr> = words.collect();
        let mut command = command(Path::new(words[0]));
        command.args(&words[1..]).current_dir(ralph.get_current_dir().unwrap());
        for (name, value) in ralph.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let terminal = Terminal::open(Size::new(columns, rows)).unwrap();
        terminal.connect(&mut command).unwrap();
        let child = command.spawn().unwrap();
        OnTerminal { running: Running { test: self, child }, terminal }
    }
}

impl OnTerminal {
    /// What stands on the screen.
    pub fn screen(&self) -> String {
        self.terminal.text()
    }

    /// Waits until this stands on the screen.
    #[track_caller]
    pub fn until(&self, text: &str) {
        let shown = self.terminal.until(PATIENCE, |screen| screen.contains(text));
        assert!(shown, "waited too long for {text:?} on\n{}", self.screen());
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        self.terminal.types(keys).unwrap();
    }

    /// Makes the terminal larger or smaller.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.terminal.resize(Size::new(columns, rows)).unwrap();
    }

    /// Whether nothing is left of what a program switches on: the second screen, the mouse, a hidden cursor.
    pub fn is_clean(&self) -> bool {
        self.terminal.is_clean()
    }

    /// Whether the terminal treats what is typed as in the beginning.
    pub fn is_as_before(&self) -> bool {
        self.terminal.is_as_before()
    }

    /// Waits for the end.
    pub fn wait(self) -> (Ran, String) {
        let ran = self.running.wait();
        // What it wrote last may still be on its way.
        std::thread::sleep(Duration::from_millis(50));
        (ran, self.terminal.text())
    }
}
