//! A program in a pseudo-terminal, and what a terminal emulator makes of what it writes.

use std::process::{Command, ExitStatus};
use std::time::Duration;

use fake_terminal::{Program, Seen, Size};
use rustix::process::{Pid, Signal, kill_process};

/// No test may wait longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What begins each frame.
const FRAME: &[u8] = b"\x1b[?2026h";

pub struct Screen {
    program: Program,
}

impl Screen {
    /// Starts a program in a terminal of so many columns and rows.
    pub fn start(command: Command, columns: u16, rows: u16) -> Self {
        Self { program: Program::start(command, Size::new(columns, rows)).unwrap() }
    }

    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        self.program.seen(look)
    }

    pub fn text(&self) -> String {
        self.program.text()
    }

    pub fn frames(&self) -> usize {
        self.seen(|seen| seen.bytes.windows(FRAME.len()).filter(|window| *window == FRAME).count())
    }

    /// Waits until the screen has something.
    #[track_caller]
    pub fn shows(&self, what: &str) {
        self.until(what, |text| text.contains(what));
    }

    #[track_caller]
    pub fn hides(&self, what: &str) {
        self.until(&format!("no {what}"), |text| !text.contains(what));
    }

    #[track_caller]
    pub fn until(&self, what: &str, so: impl Fn(&str) -> bool) {
        assert!(self.program.until(PATIENCE, so), "waited too long for {what:?}:\n{}", self.text());
    }

    pub fn keys(&mut self, keys: &str) {
        self.program.types(keys).unwrap();
    }

    /// A click, at a column and a row from 1.
    pub fn click(&mut self, column: u16, row: u16) {
        self.keys(&format!("\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m"));
    }

    /// Turns of the wheel: down when positive.
    pub fn wheel(&mut self, turns: i32, column: u16, row: u16) {
        let button = if turns > 0 { 65 } else { 64 };
        (0..turns.abs()).for_each(|_| self.keys(&format!("\u{1b}[<{button};{column};{row}M")));
    }

    /// The row on which something stands, from 1.
    #[track_caller]
    pub fn row_of(&self, what: &str) -> u16 {
        let text = self.text();
        let row = text.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("no {what}:\n{text}"));
        u16::try_from(row).unwrap() + 1
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.program.resize(Size::new(columns, rows)).unwrap();
        // It is not its controlling terminal, so that nobody else tells it.
        self.signal(Signal::WINCH);
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.program.pid()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Processor time that the program has used.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.program.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// Memory that the program has in use, in megabytes.
    pub fn megabytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// The terminal goes away, as when its window is closed; waits for the end.
    #[track_caller]
    pub fn hang_up(mut self) -> ExitStatus {
        self.program.hang_up().unwrap();
        self.program.ended(Duration::from_secs(20)).unwrap().expect("it goes on without a terminal")
    }

    /// Waits for the end; the terminal must be as it was.
    #[track_caller]
    pub fn ends(mut self) -> (ExitStatus, String) {
        let status = self.program.ended(PATIENCE).unwrap();
        let status = status.unwrap_or_else(|| panic!("it does not end:\n{}", self.text()));
        let clean = self.program.until(PATIENCE, |_| self.program.is_clean());
        assert!(clean && self.program.is_as_before(), "the terminal is not as it was:\n{}", self.text());
        std::thread::sleep(Duration::from_millis(50));
        (status, self.text())
    }
}
