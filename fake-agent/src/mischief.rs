//! What an agent must not do and does: children that outlive it, floods, silence.
//!
//! Everything it leaves behind ends by itself after a bounded time, so that no test machine stays dirty.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The first argument of a process that the agent itself started.
const CHILD: &str = "--as-child";
const LINE: &[u8; 100] =
    b"0123456789 the quick brown fox jumps over the lazy dog and the flood goes on for a hundred byte \xe2\x9c\x93\n";

/// True when the first argument says that this process is a child of the agent.
pub fn is_child(argument: &str) -> bool {
    argument == CHILD
}

/// What a child does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Lives.
    Linger,
    /// Leaves group and session, leaves a process behind that lives, and ends.
    Detach,
    /// Prints.
    Print,
}

impl Role {
    const ALL: [Self; 3] = [Self::Linger, Self::Detach, Self::Print];

    const fn name(self) -> &'static str {
        match self {
            Self::Linger => "linger",
            Self::Detach => "detach",
            Self::Print => "print",
        }
    }
}

/// Whether a child keeps the agent's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdout {
    Inherited,
    Closed,
}

/// Starts a child that lives so many milliseconds.
pub(crate) fn start(script: &Path, role: Role, life: u64, stdout: Stdout) -> io::Result<Child> {
    let stream = || if stdout == Stdout::Inherited { Stdio::inherit() } else { Stdio::null() };
    Command::new(std::env::current_exe()?)
        .args([CHILD, role.name(), &life.to_string()])
        .arg(script)
        .stdin(Stdio::null())
        .stdout(stream())
        .stderr(Stdio::null())
        .spawn()
}

/// Plays a child: `ROLE MILLISECONDS SCRIPT`.
pub fn child(arguments: &[String]) -> Result<u8, String> {
    let [role, life, script] = arguments else { return Err("a child needs role, life and script".into()) };
    let role = Role::ALL.into_iter().find(|known| known.name() == role).ok_or("unknown role")?;
    let life: u64 = life.parse().map_err(|_| "the life of a child is a number")?;
    run_child(role, life, Path::new(script)).map_err(|error| error.to_string())?;
    Ok(0)
}

fn run_child(role: Role, life: u64, script: &Path) -> io::Result<()> {
    if matches!(role, Role::Detach) {
        rustix::process::setsid()?;
        start(script, Role::Linger, life, Stdout::Closed)?;
        return Ok(());
    }
    crate::record::note_process(script)?;
    match role {
        Role::Print => {
            let end = Instant::now() + Duration::from_millis(life);
            for number in 1.. {
                if Instant::now() >= end || writeln!(io::stdout(), "a child still prints, line {number}").is_err() {
                    break;
                }
                sleep(Duration::from_millis(50));
            }
        }
        Role::Linger | Role::Detach => sleep(Duration::from_millis(life)),
    }
    Ok(())
}

/// Prints lines of 100 bytes up to so many bytes.
pub(crate) fn flood(out: &mut impl Write, bytes: u64, per_second: Option<u64>) -> io::Result<()> {
    let block: Vec<u8> = LINE.iter().copied().cycle().take(LINE.len() * 640).collect();
    let begin = Instant::now();
    let mut done = 0u64;
    while done < bytes {
        // A slow flood goes in small steps, or the reader would see bursts.
        let most = per_second.map_or(block.len() as u64, |rate| (rate / 50).clamp(100, 64_000));
        let length = usize::try_from(most.min(bytes - done)).unwrap_or(block.len());
        out.write_all(&block[..length])?;
        done += length as u64;
        if let Some(rate) = per_second {
            out.flush()?;
            let due = Duration::from_micros(done.saturating_mul(1_000_000) / rate.max(1));
            sleep(due.saturating_sub(begin.elapsed()));
        }
    }
    if !bytes.is_multiple_of(LINE.len() as u64) {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints one line of so many bytes, without holding it in memory.
pub(crate) fn huge_line(out: &mut impl Write, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(b'x'), bytes), out)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Works without a word.
pub(crate) fn burn(milliseconds: u64) {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut number = 1u64;
    while Instant::now() < end {
        for _ in 0..10_000 {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// INT, TERM and HUP no longer end this process.
pub(crate) fn ignore_signals() -> io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Closes standard output: the reader sees its end while this process lives on.
pub(crate) fn close_stdout() -> io::Result<()> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere)?;
    Ok(())
}

/// Dies by a Unix signal.
pub(crate) fn die(signal: i32) -> Result<u8, String> {
    let signal = rustix::process::Signal::from_named_raw(signal).ok_or_else(|| format!("no signal {signal}"))?;
    rustix::process::kill_process(rustix::process::getpid(), signal).map_err(|error| error.to_string())?;
    sleep(Duration::from_secs(1));
    Err("the signal did not end the process".into())
}
