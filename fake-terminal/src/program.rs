//! A program that is alone on a terminal.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{GLANCE, Size, Terminal};

/// A command whose controlling terminal will be the one it is given, so that Ctrl-C is a Unix signal where the program
/// wants it to be. Arguments and variables are added to it.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(program);
    command
}

/// A program on a terminal of its own.
pub struct Program {
    terminal: Terminal,
    child: Child,
}

impl Program {
    /// Starts it.
    pub fn start(mut command: Command, size: Size) -> io::Result<Self> {
        let terminal = Terminal::open(size)?;
        terminal.connect(&mut command)?;
        let child = command.spawn()?;
        Ok(Self { terminal, child })
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; `None` when it does not.
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
}

impl Deref for Program {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Terminal {
        &mut self.terminal
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> Program {
        let mut command = command(Path::new("sh"));
        command.args(["-c", script]);
        Program::start(command, Size::new(60, 9)).unwrap()
    }

    #[test]
    fn a_program_has_a_terminal_of_that_size_and_gets_what_is_typed() {
        let mut program = shell("stty size; read -r line; echo \"you said $line\"; exit 3");
        assert!(program.until(PATIENCE, |text| text.contains("9 60")), "{}", program.text());
        program.types("hello\n").unwrap();
        assert!(program.until(PATIENCE, |text| text.contains("you said hello")), "{}", program.text());
        assert_eq!(program.ended(PATIENCE).unwrap().unwrap().code(), Some(3));
    }

    #[test]
    fn ctrl_c_is_a_unix_signal() {
        let mut program = shell("trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.1; done");
        assert!(program.until(PATIENCE, |text| text.contains("ready")));
        program.types("\u{3}").unwrap();
        assert_eq!(program.ended(PATIENCE).unwrap().unwrap().code(), Some(4));
    }

    #[test]
    fn a_program_hears_where_the_cursor_is() {
        let program = shell("stty raw -echo; printf 'abc\\033[6n'; head -c 6 | tr '\\033' '^'; stty sane");
        assert!(program.until(PATIENCE, |text| text.contains("abc^[1;4R")), "{}", program.text());
    }

    #[test]
    fn what_is_switched_on_is_noticed() {
        let program = shell("stty -icanon -echo; printf '\\033[?1049hhere'; read -r line");
        assert!(program.until(PATIENCE, |text| text.contains("here")));
        assert!(!program.is_clean() && !program.is_as_before());
    }

    #[test]
    fn a_terminal_that_goes_away_ends_its_program() {
        let mut program = shell("echo ready; while :; do sleep 0.1; done");
        assert!(program.until(PATIENCE, |text| text.contains("ready")));
        program.hang_up().unwrap();
        assert_eq!(program.ended(PATIENCE).unwrap().unwrap().signal(), Some(1));
    }

    #[test]
    fn a_new_size_is_told() {
        let program = shell("trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done");
        assert!(program.until(PATIENCE, |text| text.contains("ready")));
        program.resize(Size::new(70, 20)).unwrap();
        assert!(program.until(PATIENCE, |text| text.contains("20 70")), "{}", program.text());
    }
}
