//! The system's process table, as far as this user may see it.
//!
//! Reading only. What it says is old the moment it is read, so nobody may act on a number from here without
//! checking [`Entry::started`] again (see `tree.rs`).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::platform;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// Dead, but not yet reaped by its parent.
    pub zombie: bool,
    pub threads: u32,
    /// When it started, in the system's own unit: with `pid` the identity of a process.
    pub started: u64,
    /// Processor time of it and of its reaped children.
    pub used: Duration,
}

/// Processes at one moment, found by what connects them.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    numbers: HashMap<i32, usize>,
    children: HashMap<i32, Vec<usize>>,
    led: HashMap<i32, Vec<usize>>,
}

impl Table {
    /// Reads every process that this user may see. An empty table is an error: what is not seen would not be stopped.
    pub(crate) fn read() -> io::Result<Self> {
        Ok(Self::new(platform::read()?))
    }

    pub(crate) fn new(entries: Vec<Entry>) -> Self {
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

    pub(crate) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Entry> {
        self.numbers.get(&pid).map(|index| &self.entries[*index])
    }

    pub(crate) fn children(&self, pid: i32) -> impl Iterator<Item = &Entry> {
        self.children.get(&pid).into_iter().flatten().map(|index| &self.entries[*index])
    }

    /// Those whose group or session has this number.
    pub(crate) fn led_by(&self, leader: i32) -> impl Iterator<Item = &Entry> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XRALPH=0\0RALPH_RUN_ID=abc\0RALPH=\0";
        assert_eq!(variable(environment, "RALPH_RUN_ID"), Some(&b"abc"[..]));
        assert_eq!(variable(environment, "RALPH"), Some(&b""[..]));
        assert_eq!(variable(environment, "RALPH_RUN"), None);
    }
}
