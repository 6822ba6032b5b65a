//! The system's process table, as far as this user may see it.
//!
//! Reading only. What it says is old the moment it is read, so nobody may act on a number from here without
//! checking [`Entry::started`] again (see `tree.rs`).

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// Dead, but not yet reaped by its parent.
    pub zombie: bool,
    /// When it started, in the system's own unit: with `pid` the identity of a process.
    pub started: u64,
    /// Processor time of it and of its reaped children.
    pub used: Duration,
}

/// All processes at one moment, found by what connects them.
///
/// Many agents look at the same table, so it is put in order once.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    numbers: HashMap<i32, usize>,
    children: HashMap<i32, Vec<usize>>,
    led: HashMap<i32, Vec<usize>>,
}

impl Table {
    /// Reads the table now. It is whole or an error: what is not seen would not be stopped.
    pub fn read() -> io::Result<Self> {
        Ok(Self::new(platform::read()?))
    }

    /// All processes that are younger than the one with this number, and perhaps others. Right only soon after that
    /// one was started, before the numbers can have come round.
    pub fn read_younger(pid: i32) -> io::Result<Self> {
        Ok(Self::new(platform::read_younger(pid)?))
    }

    /// The table at some moment after `moment`: one reading serves all who want one.
    pub fn since(moment: Instant) -> io::Result<Arc<Self>> {
        static LAST: Mutex<Option<(Instant, Arc<Table>)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((began, table)) if *began >= moment => Ok(table.clone()),
            _ => {
                let began = Instant::now();
                let table = Arc::new(Self::read()?);
                *last = Some((began, table.clone()));
                Ok(table)
            }
        }
    }

    pub fn new(entries: Vec<Entry>) -> Self {
        let mut table = Self { entries, ..Self::default() };
        for (index, entry) in table.entries.iter().enumerate() {
            table.numbers.insert(entry.pid, index);
            table.children.entry(entry.parent).or_default().push(index);
            table.led.entry(entry.group).or_default().push(index);
            if entry.session != entry.group {
                table.led.entry(entry.session).or_default().push(index);
            }
        }
        table
    }

    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn get(&self, pid: i32) -> Option<&Entry> {
        self.numbers.get(&pid).map(|index| &self.entries[*index])
    }

    pub fn children(&self, pid: i32) -> impl Iterator<Item = &Entry> {
        self.children.get(&pid).into_iter().flatten().map(|index| &self.entries[*index])
    }

    /// Those whose group or session has this number.
    pub fn led_by(&self, leader: i32) -> impl Iterator<Item = &Entry> {
        self.led.get(&leader).into_iter().flatten().map(|index| &self.entries[*index])
    }
}

/// One process, if it exists.
pub(super) fn entry(pid: i32) -> Option<Entry> {
    platform::entry(pid).ok().flatten()
}

/// The command line, for people.
pub(super) fn command(pid: i32) -> String {
    platform::command(pid)
}

/// The environment a process was started with, as `NAME=value` pieces that end in NUL; none if it cannot be read.
pub(super) fn environment(pid: i32) -> Option<Vec<u8>> {
    platform::environment(pid)
}

/// The value of a variable in what [`environment`] returned.
pub(super) fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    environment
        .split(|byte| *byte == 0)
        .find_map(|pair| pair.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")))
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs::File;
    use std::io::{self, Read};
    use std::time::Duration;

    use super::Entry;

    pub fn read() -> io::Result<Vec<Entry>> {
        read_from(0)
    }

    /// Numbers are given in ascending order. When the last one given is lower than `pid`, they have started again.
    pub fn read_younger(pid: i32) -> io::Result<Vec<Entry>> {
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let last: i32 = load.split_ascii_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or_default();
        read_from(if last >= pid { pid } else { 0 })
    }

    fn read_from(first: i32) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(128);
        for directory in std::fs::read_dir("/proc")? {
            let name = directory?.file_name();
            if let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).filter(|pid| *pid >= first) {
                // It may have ended since it was listed.
                entries.extend(entry(pid)?);
            }
        }
        Ok(entries)
    }

    pub fn entry(pid: i32) -> io::Result<Option<Entry>> {
        // A line of `stat` has 52 numbers and a name of at most 64 bytes.
        let mut line = [0; 2048];
        match File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut line)) {
            Ok(length) => Ok(parse(pid, &line[..length])),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name in the second field may hold anything, blanks and parentheses too, so the rest starts at the last `)`.
    pub(super) fn parse(pid: i32, line: &[u8]) -> Option<Entry> {
        let end = memchr::memrchr(b')', line)?;
        let rest = std::str::from_utf8(line.get(end + 2..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
        let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
        // Fields 14 to 17 of proc(5): own time and that of reaped children, user and system.
        let ticks: i64 = (11..=14).filter_map(number).sum();
        Some(Entry {
            pid,
            parent: i32::try_from(number(1)?).ok()?,
            group: i32::try_from(number(2)?).ok()?,
            session: i32::try_from(number(3)?).ok()?,
            zombie: matches!(fields.first(), Some(&("Z" | "X"))),
            started: fields.get(19)?.parse().ok()?,
            used: Duration::from_millis(
                u64::try_from(ticks).unwrap_or_default() * 1000 / rustix::param::clock_ticks_per_second(),
            ),
        })
    }

    pub fn command(pid: i32) -> String {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let words = words.join(" ");
        if words.trim().is_empty() {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            return format!("[{}]", name.trim());
        }
        words.trim().chars().take(200).collect()
    }

    pub fn environment(pid: i32) -> Option<Vec<u8>> {
        std::fs::read(format!("/proc/{pid}/environ")).ok()
    }
}

/// Without `/proc` the table comes from `ps`, which every Unix has. Its start times have a resolution of one second,
/// and the environment of a process is what `ps -E` shows to its owner.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::time::Duration;

    use super::Entry;

    pub fn read() -> io::Result<Vec<Entry>> {
        let output = super::super::spawn::output("ps", &["-axo", "pid=,ppid=,pgid=,stat=,time=,lstart="])?;
        Ok(String::from_utf8_lossy(&output).lines().filter_map(parse).collect())
    }

    pub fn read_younger(_pid: i32) -> io::Result<Vec<Entry>> {
        read()
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next()?.parse::<i32>().ok();
        let (pid, parent, group) = (number()?, number()?, number()?);
        let state = fields.next()?;
        let used = time(fields.next()?)?;
        let started = fields.collect::<Vec<_>>().join(" ");
        let hash = started.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(131).wrapping_add(u64::from(byte)));
        Some(Entry {
            pid,
            parent,
            group,
            // What `ps` calls a session there is an address, not the number of a process.
            session: group,
            zombie: state.starts_with('Z'),
            started: hash,
            used,
        })
    }

    fn time(text: &str) -> Option<Duration> {
        text.split(':')
            .try_fold(0.0, |seconds, part| Some(seconds * 60.0 + part.parse::<f64>().ok()?))
            .map(Duration::from_secs_f64)
    }

    pub fn entry(pid: i32) -> io::Result<Option<Entry>> {
        Ok(read()?.into_iter().find(|entry| entry.pid == pid))
    }

    pub fn command(pid: i32) -> String {
        let output = super::super::spawn::output("ps", &["-o", "command=", "-p", &pid.to_string()]).unwrap_or_default();
        String::from_utf8_lossy(&output).trim().chars().take(200).collect()
    }

    pub fn environment(pid: i32) -> Option<Vec<u8>> {
        let output = super::super::spawn::output("ps", &["-wwE", "-o", "command=", "-p", &pid.to_string()]).ok()?;
        Some(output.split(|byte| *byte == b' ').flat_map(|word| word.iter().copied().chain([0])).collect())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let line = b"42 (a) b ( 7) Z 1 42 40 0 -1 4194560 1 2 3 4 100 50 20 10 20 0 1 0 12345 0 0 18446744073709551615";
        let entry = platform::parse(42, line).unwrap();
        assert_eq!((entry.parent, entry.group, entry.session, entry.zombie, entry.started), (1, 42, 40, true, 12345));
        assert_eq!(entry.used.as_millis(), 180 * 1000 / u128::from(rustix::param::clock_ticks_per_second()));
    }

    #[test]
    fn a_torn_line_is_no_process() {
        for line in [&b""[..], b"42 (a", b"42 (a)", b"42 (a) S 1", b"42 (a) S x y z"] {
            assert_eq!(platform::parse(42, line), None);
        }
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = std::process::id().cast_signed();
        let entry = entry(own).unwrap();
        assert!(!entry.zombie);
        assert_eq!(Table::read().unwrap().get(own).map(|other| other.started), Some(entry.started));
        assert!(!command(own).is_empty());
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XRALPH=0\0RALPH_RUN_ID=abc\0RALPH=\0";
        assert_eq!(variable(environment, "RALPH_RUN_ID"), Some(&b"abc"[..]));
        assert_eq!(variable(environment, "RALPH"), Some(&b""[..]));
        assert_eq!(variable(environment, "RALPH_RUN"), None);
    }
}
