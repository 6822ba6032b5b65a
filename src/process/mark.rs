//! The sign on everything that an agent starts, whatever it does to its group, its session and its parents.
//!
//! It is on two things that children inherit: the environment, which a program may drop, and, on Linux, a resource
//! limit that the kernel keeps but has not used for anything since 2.4, which nobody drops. It must never be on a
//! process that is not of the tree.

use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MARK, platform, registry, table};

/// A number that no other tree on this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark(pub u64);

/// Whose mark a process carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    This,
    Another,
    /// It has dropped it, or never had one.
    None,
    /// That cannot be seen now.
    Unknown,
}

/// Which bits of a mark say what; the highest keeps it far above any limit that a person would set.
const HIGH: u64 = 1 << 62;
const COUNT: u64 = (1 << 20) - 1;

impl Mark {
    /// Number and start time of this process, and a count.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(*PROCESS | (NEXT.fetch_add(1, Ordering::Relaxed) & COUNT))
    }

    /// Whose mark a process carries. Only marks of trees that this process knows count: others may be invented.
    pub(crate) fn on(self, pid: i32) -> Carried {
        let limit = platform::limit(pid).map(Self);
        if limit.is_some_and(|limit| limit == self) {
            return Carried::This;
        }
        if limit.is_some_and(registry::is_tree) {
            return Carried::Another;
        }
        match in_environment(pid) {
            None => Carried::Unknown,
            Some(marks) if marks.contains(&self) => Carried::This,
            Some(marks) if marks.iter().any(|mark| registry::is_tree(*mark)) => Carried::Another,
            Some(_) => Carried::None,
        }
    }

    /// What is in [`MARK`]: this one, after those of the runs that this process itself is part of.
    pub(crate) fn variable(self) -> String {
        match std::env::var(MARK) {
            Ok(outer) if !outer.is_empty() => format!("{outer}:{self}"),
            _ => self.to_string(),
        }
    }

    /// All marks on a process: its own, and those of the runs around it. None when that cannot be seen now.
    pub(crate) fn all_on(pid: i32) -> Option<Vec<Self>> {
        let mut marks = in_environment(pid)?;
        marks.push(Self(platform::limit(pid)?));
        Some(marks)
    }
}

/// The marks that are in [`MARK`] of a process.
fn in_environment(pid: i32) -> Option<Vec<Mark>> {
    let environment = table::environment(pid)?;
    let value = String::from_utf8_lossy(table::variable(&environment, MARK).unwrap_or_default()).into_owned();
    Some(value.split(':').filter_map(|one| u64::from_str_radix(one, 16).ok()).map(Mark).collect())
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

static PROCESS: LazyLock<u64> = LazyLock::new(|| {
    let pid = u64::from(std::process::id()) & 0x3f_ffff;
    let started = table::entry(std::process::id().cast_signed()).map_or(0, |entry| entry.started) & 0xf_ffff;
    HIGH | pid << 40 | started << 20
});
