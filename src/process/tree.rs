//! Everything an agent has started, wherever it has moved to.
//!
//! A process belongs to the tree by its group or session, by its parents, or by the mark in its environment. This
//! file must never signal a process for which none of these is proven, and never reap "any child".

use std::collections::{HashMap, HashSet};

use rustix::process::{Pid, Signal};

use super::guardian::{self, Duty};
use super::table::{self, Entry};
use super::{MARK, Stray, exit, registry};

/// One agent's tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Identity,
    /// What [`MARK`] holds in the environment of this tree.
    token: String,
    /// Members that were seen before: one that loses its parents later still belongs here.
    known: HashSet<Identity>,
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
    pub fn new(root: Pid, token: String) -> Self {
        let pid = root.as_raw_nonzero().get();
        let started = table::entry(pid).map_or(0, |entry| entry.started);
        let tree = Self { root: Identity { pid, started }, token, known: HashSet::new() };
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
        Duty::Tree { token: self.token.clone(), root: self.root }
    }

    /// All members but the root itself, dead ones too.
    pub fn descendants(&mut self) -> Vec<Entry> {
        let mut members = self.members();
        members.retain(|entry| entry.pid != self.root.pid);
        members
    }

    /// All members, dead ones too.
    pub fn members(&mut self) -> Vec<Entry> {
        let entries = table::read().unwrap_or_default();
        let members = select(&entries, self.root, &self.known, |entry| self.is_marked(entry));
        self.known = members.iter().map(Identity::from).collect();
        members
    }

    /// Only an orphan can have lost the proof of its parents, and orphans come to the reaper.
    fn is_marked(&self, entry: &Entry) -> bool {
        registry::may_be_orphan(entry)
            && (registry::belongs_by_exclusion(entry, self.root.pid) || has_token(entry.pid, &self.token))
    }

    /// Sends a signal to the group of the root. Right only before the root is reaped.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.root.pid) {
            // An empty group is no failure: nobody is left to be told.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Processor time of all members.
    pub fn used(&mut self) -> std::time::Duration {
        self.members().iter().map(|entry| entry.used).sum()
    }
}

/// True when the environment of a process carries the token, alone or among those of outer runs.
pub(super) fn has_token(pid: i32, token: &str) -> bool {
    table::variable(&table::environment(pid), MARK)
        .is_some_and(|value| value.split(|byte| *byte == b':').any(|one| one == token.as_bytes()))
}

/// The members of a tree among all processes.
pub(super) fn select(
    entries: &[Entry],
    root: Identity,
    known: &HashSet<Identity>,
    is_marked: impl Fn(&Entry) -> bool,
) -> Vec<Entry> {
    // Once the root is reaped its number may belong to somebody else, and groups of that number with it.
    let number = entries.iter().all(|entry| entry.pid != root.pid || entry.started == root.started).then_some(root.pid);
    let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
    let mut members: Vec<&Entry> = Vec::new();
    let mut seen = HashSet::new();
    // Nobody is older than the first of the tree; that leaves out most of the table.
    for entry in entries.iter().filter(|entry| entry.started >= root.started) {
        children.entry(entry.parent).or_default().push(entry);
        let belongs = [entry.pid, entry.group, entry.session].iter().any(|leader| Some(*leader) == number)
            || known.contains(&Identity::from(entry))
            || is_marked(entry);
        if belongs && seen.insert(entry.pid) {
            members.push(entry);
        }
    }
    let mut next = 0;
    while let Some(member) = members.get(next).copied() {
        next += 1;
        for child in children.get(&member.pid).into_iter().flatten() {
            if seen.insert(child.pid) {
                members.push(child);
            }
        }
    }
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
