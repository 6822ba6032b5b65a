//! The agents: this program again, as the plan says.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::plan::{Kind, Plan};

const LONG: Duration = Duration::from_secs(60);

/// `agent SEED NUMBER DIRECTORY [ROLE [FIRST LINE]]`
pub fn main(words: &[&str]) -> ExitCode {
    let [seed, number, directory, rest @ ..] = words else { return ExitCode::from(99) };
    let plan = Plan::new(seed.parse().unwrap(), number.parse().unwrap());
    let mut voice = Voice::new(plan, Path::new(directory));
    match rest {
        [] => play(&mut voice, words),
        // Leaves its session and its parents, and stays.
        ["daemonize"] => {
            rustix::process::setsid().unwrap();
            again(words, &["sleep"]).spawn().unwrap();
            ExitCode::SUCCESS
        }
        ["sleep"] => {
            std::thread::sleep(LONG);
            ExitCode::SUCCESS
        }
        ["write", first] => {
            voice.next = first.parse().unwrap();
            voice.written = (0..voice.next).map(|index| plan.line(index).len() as u64).sum();
            voice.flood()
        }
        _ => ExitCode::from(98),
    }
}

fn play(voice: &mut Voice, words: &[&str]) -> ExitCode {
    for _ in 0..voice.plan.lines {
        voice.say();
    }
    match voice.plan.kind {
        Kind::Finish => ExitCode::from(3),
        Kind::Hang | Kind::IgnoreTerm => {
            std::thread::sleep(LONG);
            ExitCode::from(97)
        }
        Kind::Daemon => leave_daemon(&mut again(words, &["daemonize"])),
        Kind::BareDaemon => leave_daemon(again(words, &["daemonize"]).env_clear()),
        Kind::Flood => voice.flood(),
        Kind::HalfLine => {
            let line = voice.plan.line(voice.next);
            voice.write(&line[..line.len() - 1]);
            ExitCode::SUCCESS
        }
        Kind::Binary => ExitCode::SUCCESS,
        Kind::CloseStdout => {
            let null = File::options().write(true).open("/dev/null").unwrap();
            rustix::stdio::dup2_stdout(&null).unwrap();
            rustix::stdio::dup2_stderr(&null).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            ExitCode::from(4)
        }
        Kind::KillSelf => {
            rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
            ExitCode::from(96)
        }
        Kind::ForkBomb => {
            for number in 0..50 {
                let role = if number % 3 == 0 { "daemonize" } else { "sleep" };
                // The agent may be stopped while it does this; then there are fewer.
                let _ = again(words, &[role]).spawn();
            }
            ExitCode::SUCCESS
        }
        Kind::ChildWrites => {
            let next = voice.next.to_string();
            let mut child = again(words, &["write", &next]);
            child.stdout(Stdio::inherit()).spawn().unwrap();
            ExitCode::SUCCESS
        }
    }
}

fn leave_daemon(command: &mut Command) -> ExitCode {
    command.spawn().unwrap().wait().unwrap();
    ExitCode::SUCCESS
}

/// This program in another role of the same agent; the directory among its arguments is what it is found by.
fn again(words: &[&str], role: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("agent").args(&words[..3]).args(role);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Writes lines, and notes in a file how many bytes the pipe has taken.
struct Voice {
    plan: Plan,
    next: u64,
    written: u64,
    progress: File,
}

impl Voice {
    fn new(plan: Plan, directory: &Path) -> Self {
        let path = directory.join(format!("{}.progress", plan.number));
        let progress = File::options().create(true).truncate(false).write(true).open(path).unwrap();
        Self { plan, next: 0, written: 0, progress }
    }

    fn say(&mut self) {
        let line = self.plan.line(self.next);
        self.next += 1;
        self.write(&line);
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
        if written.is_err() {
            std::process::exit(95);
        }
        self.written += bytes.len() as u64;
        self.progress.write_all_at(&self.written.to_le_bytes(), 0).unwrap();
    }

    fn flood(&mut self) -> ExitCode {
        loop {
            self.say();
        }
    }
}
