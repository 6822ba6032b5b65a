//! Everything an agent has started, wherever it has moved to.
//!
//! A process belongs to the tree by its group or session, by its parents, or by its mark (see `mark.rs`). This
//! file must never signal a process for which none of these is proven, and never reap "any child".

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::guardian::{self, Duty};
use super::mark::Mark;
use super::table::{self, Entry, Table};
use super::{Stray, exit, registry};

/// One agent's tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Identity,
    mark: Mark,
    /// Members that were seen before: one that loses its parents later still belongs here.
    known: HashSet<Identity>,
    /// Orphans that do not belong here.
    strangers: HashSet<Identity>,
}

/// A process, safe against its number being used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub pid: i32,
    pub started: u64,
}

impl From<&Entry> for Identity {
    fn from(entry: &Entry) -> Self {
        Self { pid: entry.pid, started: entry.started }
    }
}

impl Tree {
    /// The tree of a child that was just started and is not yet reaped.
    pub fn new(root: Pid, mark: Mark) -> Self {
        let pid = root.as_raw_nonzero().get();
        let started = table::entry(pid).map_or(0, |entry| entry.started);
        let tree = Self { root: Identity { pid, started }, mark, known: HashSet::new(), strangers: HashSet::new() };
        guardian::add(tree.duty());
        tree
    }

    pub const fn root(&self) -> Identity {
        self.root
    }

    /// Ends the care for a tree whose root is reaped.
    pub fn release(&self) {
        guardian::remove(&self.duty());
        registry::remove(self.root.pid);
    }

    fn duty(&self) -> Duty {
        Duty::Tree { mark: self.mark, root: self.root }
    }

    /// All members at some moment after `moment`, dead ones too.
    pub fn members(&mut self, moment: Instant) -> io::Result<Vec<Entry>> {
        let table = Table::since(moment)?;
        Ok(self.members_in(&table))
    }

    /// The same now, at a fraction of the price, for a root that was started a moment ago.
    pub fn members_of_short_life(&mut self) -> io::Result<Vec<Entry>> {
        Ok(self.members_in(&Table::read_younger(self.root.pid)?))
    }

    fn members_in(&mut self, table: &Table) -> Vec<Entry> {
        let Self { root, mark, known, strangers } = self;
        let mut met = HashSet::new();
        // Only an orphan can have lost the proof of its parents. Each is asked until it has answered.
        let orphans = table.children(registry::adopter()).filter(|entry| {
            let identity = Identity::from(*entry);
            let belongs = if strangers.contains(&identity) { Some(false) } else { mark.is_on(entry.pid) };
            if belongs == Some(false) {
                met.insert(identity);
            }
            belongs == Some(true)
        });
        let members = select(table, *root, known, orphans);
        *strangers = met;
        *known = members.iter().map(Identity::from).collect();
        members
    }

    /// Sends a signal to the group of the root. Right only before the root is reaped.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.root.pid) {
            // An empty group is no failure: nobody is left to be told.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Processor time of all members.
    pub fn used(&mut self) -> io::Result<Duration> {
        Ok(self.members(moments_ago(Duration::from_millis(500)))?.iter().map(|entry| entry.used).sum())
    }

    /// Looks who is there, so that they are known when they lose their parents.
    pub fn learn(&mut self) {
        // What cannot be seen now can be seen next time.
        if let Ok(table) = Table::since(moments_ago(Duration::from_secs(4))) {
            self.members_in(&table);
            registry::reap_orphans(&table);
        }
    }
}

fn moments_ago(age: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(age).unwrap_or(now)
}

/// The members of a tree: the root, its group and session, those that are known or marked, and all their descendants.
/// Parents stand before their children: a shell that outlives the command it waits for, if only by a moment, goes on with
/// the next one.
pub(super) fn select<'a>(
    table: &'a Table,
    root: Identity,
    known: &HashSet<Identity>,
    marked: impl Iterator<Item = &'a Entry>,
) -> Vec<Entry> {
    // Once the root is reaped its number may belong to somebody else, and groups of that number with it.
    let is_number_ours = table.get(root.pid).is_none_or(|entry| entry.started == root.started);
    let of_number = table.led_by(root.pid).chain(table.get(root.pid)).filter(|_| is_number_ours);
    let of_old = known.iter().filter_map(|known| table.get(known.pid).filter(|entry| Identity::from(*entry) == *known));
    let (mut members, mut seen) = (Vec::new(), HashSet::new());
    // Nobody is older than the first of the tree.
    let mut add = |entry: &'a Entry, members: &mut Vec<&'a Entry>| {
        if entry.started >= root.started && seen.insert(entry.pid) {
            members.push(entry);
        }
    };
    for entry in of_number.chain(of_old).chain(marked) {
        add(entry, &mut members);
    }
    let mut next = 0;
    while let Some(member) = members.get(next).copied() {
        next += 1;
        for child in table.children(member.pid) {
            add(child, &mut members);
        }
    }
    let parents: HashMap<i32, i32> = members.iter().map(|member| (member.pid, member.parent)).collect();
    members.sort_by_cached_key(|member| {
        let ancestors = std::iter::successors(parents.get(&member.pid), |parent| parents.get(parent));
        // Read while they changed, the numbers may form a ring.
        ancestors.take(parents.len()).count()
    });
    members.into_iter().cloned().collect()
}

/// Sends a signal to exactly this process, or to nobody.
pub(super) fn signal(process: Identity, signal: Signal) {
    platform::signal(process, signal);
}

/// Kills what lives, and reaps what is dead and came to us. Returns those that were still alive.
pub(super) fn kill(members: &[Entry]) -> Vec<&Entry> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut alive = Vec::new();
    for member in members {
        if !member.zombie {
            signal(Identity::from(member), Signal::KILL);
            alive.push(member);
        } else if member.parent == own
            && let Some(pid) = Pid::from_raw(member.pid)
        {
            exit::reap(pid);
        }
    }
    alive
}

/// What a person is told about a process.
pub(super) fn describe(entry: &Entry) -> Stray {
    Stray { pid: entry.pid.unsigned_abs(), command: table::command(entry.pid) }
}

#[cfg(target_os = "linux")]
mod platform {
    use rustix::process::{Pid, PidfdFlags, Signal};

    use super::super::table;
    use super::Identity;

    /// The descriptor pins the process; the start time, read after that, proves that it is the right one.
    pub fn signal(process: Identity, signal: Signal) {
        let Some(pid) = Pid::from_raw(process.pid) else { return };
        let Ok(descriptor) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if table::entry(process.pid).is_some_and(|entry| entry.started == process.started) {
            let _ = rustix::process::pidfd_send_signal(descriptor, signal);
        }
    }
}

/// Without descriptors for processes there is a moment between the check and the signal.
#[cfg(not(target_os = "linux"))]
mod platform {
    use rustix::process::{Pid, Signal};

    use super::super::table;
    use super::Identity;

    pub fn signal(process: Identity, signal: Signal) {
        let Some(pid) = Pid::from_raw(process.pid) else { return };
        if table::entry(process.pid).is_some_and(|entry| entry.started == process.started) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
