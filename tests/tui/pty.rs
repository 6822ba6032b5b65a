//! A program in a pseudo-terminal, and what a terminal emulator makes of what it writes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// No test may wait longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// What begins each frame.
const FRAME: &[u8] = b"\x1b[?2026h";

pub struct Screen {
    child: Child,
    ours: File,
    theirs: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

/// What came from the program.
pub struct Seen {
    pub parser: vt100::Parser<Obeyed>,
    pub bytes: Vec<u8>,
}

/// What a terminal does beside printing.
#[derive(Default)]
pub struct Obeyed {
    pub copied: Vec<Vec<u8>>,
    pub others: Vec<String>,
}

impl vt100::Callbacks for Obeyed {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.others.push("bell".into());
    }
    fn resize(&mut self, _: &mut vt100::Screen, _: (u16, u16)) {
        self.others.push("resize".into());
    }
    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("icon".into());
    }
    fn set_window_title(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("title".into());
    }
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.copied.push(data.to_vec());
    }
    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.others.push("paste".into());
    }
}

fn size(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

impl Screen {
    /// Starts a program in a terminal of so many columns and rows.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
        tcsetwinsize(&theirs, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&theirs).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        command.stderr(theirs.try_clone().unwrap()).env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        drop(command);
        let parser = vt100::Parser::new_with_callbacks(size(rows), size(columns), 0, Obeyed::default());
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let ours = File::from(ours);
        let mut reading = ours.try_clone().unwrap();
        let shared = Arc::clone(&seen);
        let closed = Arc::new(AtomicBool::new(false));
        let hung_up = Arc::clone(&closed);
        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            loop {
                let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                let ready = poll(&mut [PollFd::new(&reading, PollFlags::IN)], Some(&soon));
                if hung_up.load(Ordering::SeqCst) {
                    return;
                }
                if matches!(ready, Ok(0) | Err(_)) {
                    continue;
                }
                let Ok(count @ 1..) = reading.read(&mut bytes) else { return };
                let mut seen = shared.lock().unwrap();
                seen.parser.process(&bytes[..count]);
                seen.bytes.extend_from_slice(&bytes[..count]);
            }
        });
        Self { child, ours, theirs, before, seen, reader: Some(reader), closed }
    }

    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }

    pub fn text(&self) -> String {
        self.seen(|seen| seen.parser.screen().contents())
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
        let start = Instant::now();
        loop {
            let text = self.text();
            if so(&text) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "waited too long for {what:?}:\n{text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn keys(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
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
        let winsize = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        self.seen.lock().unwrap().parser.screen_mut().set_size(size(rows), size(columns));
        tcsetwinsize(&self.theirs, winsize).unwrap();
        self.signal(Signal::WINCH);
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Processor time that the program has used.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// Memory that the program has in use, in megabytes.
    pub fn megabytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// The terminal goes away, as when its window is closed; waits for the end.
    #[track_caller]
    pub fn hang_up(mut self) -> ExitStatus {
        self.closed.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        self.ours = File::open("/dev/null").unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "it goes on without a terminal");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end; the terminal must be as it was.
    #[track_caller]
    pub fn ends(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        let so = |seen: &Seen| {
            let screen = seen.parser.screen();
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        };
        while !self.seen(so) {
            assert!(start.elapsed() < PATIENCE, "the terminal is not as it was:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = tcgetattr(&self.theirs).unwrap();
        assert_eq!(
            (after.local_modes, after.input_modes, after.output_modes),
            (self.before.local_modes, self.before.input_modes, self.before.output_modes)
        );
        std::thread::sleep(Duration::from_millis(50));
        (status, self.text())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
