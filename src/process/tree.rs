//! Everything an agent has started, wherever it has moved to.
//!
//! A process belongs to the tree by its group or session, by its parents, by its mark (see `mark.rs`), by its control group
//! (see `group.rs`), or because it came to ralph as an orphan that ralph did not start. This file must never signal a
//! process for which none of these is proven, and never reap "any child".

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::group::Group;
use super::guardian::{self, Duty};
use super::mark::{Carried, Mark};
use super::table::{self, Entry, Table};
use super::{Stray, exit, platform, registry};

#[derive(Clone, Debug)]
pub(super) struct Tree {
    root: Identity,
    mark: Mark,
    group: Option<Group>,
    /// Members that were seen before: one that loses its parents later still belongs here.
    known: HashSet<Identity>,
    /// Orphans that do not belong here.
    strangers: HashSet<Identity>,
    /// Members that carry no mark; the guardian knows them by their numbers.
    unmarked: HashSet<Identity>,
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
    pub(crate) fn new(root: Pid, mark: Mark, group: Option<Group>) -> Self {
        let pid = root.as_raw_nonzero().get();
        let started = table::entry(pid).map_or(0, |entry| entry.started);
        let root = Identity { pid, started };
        registry::add_tree(mark, root);
        guardian::add(Duty::Tree { mark, root });
        let (known, strangers, unmarked) = (HashSet::new(), HashSet::new(), HashSet::new());
        Self { root, mark, group, known, strangers, unmarked }
    }

    pub(crate) const fn root(&self) -> Identity {
        self.root
    }

    /// Ends the care for a tree whose root is reaped.
    pub(crate) fn release(&self) {
        registry::remove_tree(self.mark);
        self.forget();
        if let Some(group) = &self.group {
            group.remove();
        }
    }

    /// The same for one whose members may continue.
    pub(crate) fn leave(&self) {
        registry::leave_tree(self.mark);
        self.forget();
    }

    fn forget(&self) {
        for root in self.unmarked.iter().chain([&self.root]) {
            guardian::remove(&Duty::Tree { mark: self.mark, root: *root });
        }
        if let Some(group) = &self.group {
            guardian::remove(&group.duty());
        }
        registry::remove(self.root.pid);
    }

    /// All members now, dead ones too.
    pub(crate) fn members(&mut self) -> io::Result<Vec<Entry>> {
        let group = self.group.as_ref().map(Group::members).unwrap_or_default();
        let table = {
            let spawned = registry::spawned();
            let mut entries = platform::near(self.root.pid, &group, &spawned)?;
            entries.retain(|entry| entry.pid == self.root.pid || !spawned.contains(&entry.pid));
            Table::new(entries)
        };
        let mut met = HashSet::new();
        let in_group = group.iter().filter_map(|pid| table.get(*pid));
        // Only an orphan can have lost the proof of its parents.
        let orphans = table.children(registry::adopter()).filter(|entry| self.owns(entry, &mut met));
        let orphans: Vec<_> = orphans.collect();
        let members = select(&table, self.root, &self.known, orphans.into_iter().chain(in_group));
        self.strangers = met;
        self.known = members.iter().map(Identity::from).collect();
        Ok(members)
    }

    /// Whether an orphan belongs here. Each is asked until it has answered.
    fn owns(&self, orphan: &Entry, strangers: &mut HashSet<Identity>) -> bool {
        let identity = Identity::from(orphan);
        // Nobody is older than the first of the tree; the known ones need no other proof.
        if orphan.pid == self.root.pid || orphan.started < self.root.started || self.known.contains(&identity) {
            return false;
        }
        if self.strangers.contains(&identity) {
            strangers.insert(identity);
            return false;
        }
        match self.mark.on(orphan.pid) {
            Carried::This => true,
            Carried::Another => {
                strangers.insert(identity);
                false
            }
            Carried::None | Carried::Unknown if registry::must_be_of(self.mark, orphan.started) => true,
            Carried::None => {
                if !registry::owns_children() {
                    strangers.insert(identity);
                }
                false
            }
            Carried::Unknown => false,
        }
    }

    /// Sends a signal to the group of the root. Right only before the root is reaped.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.root.pid) {
            // An empty group is no failure: there is no process left to name.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Kills what can be killed without looking: the group of the root, and all of its control group at once.
    pub(crate) fn kill_groups(&self) {
        self.signal_group(Signal::KILL);
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    /// Kills and reaps what is there now.
    pub(crate) fn sweep(&mut self, exited: Exited) -> io::Result<Swept> {
        let mut members = self.members()?;
        if exited == Exited::Keep {
            // The dead root keeps its number and its exit status until all is over.
            let root = self.root.pid;
            members.retain(|member| member.pid != root || !member.zombie);
        }
        Ok(kill(members))
    }

    /// Kills members that fork and exit faster than they can be killed one by one: their process group is hit as a whole,
    /// and they are looked for without a pause.
    pub(crate) fn chase(&mut self) {
        let own = rustix::process::getpgrp();
        let mut before = Vec::new();
        for _ in 0..CHASE {
            let Ok(swept) = self.sweep(Exited::Keep) else { return };
            let alive: Vec<_> = swept.alive.iter().map(Identity::from).collect();
            // The same ones again do not run away: they cannot be killed.
            if swept.reaped.is_empty() && (alive.is_empty() || alive == before) {
                return;
            }
            before = alive;
            for group in swept.alive.iter().filter_map(|entry| Pid::from_raw(entry.group)) {
                if group != own && group.as_raw_nonzero().get() > 1 {
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
            }
        }
    }

    /// Processor time of all members.
    pub(crate) fn used(&mut self) -> io::Result<Duration> {
        Ok(self.members()?.iter().map(|entry| entry.used).sum())
    }

    /// Looks who is there, so that they are known when they lose their parents; and reaps orphans that have died: an
    /// agent that runs for hours may leave thousands.
    pub(crate) fn learn(&mut self) {
        // What cannot be seen now can be seen next time.
        let Ok(members) = self.members() else { return };
        let own = registry::adopter();
        for member in members.iter().filter(|member| member.parent == own && member.pid != self.root.pid) {
            if member.zombie {
                reap(member);
            } else if self.mark.on(member.pid) != Carried::This && self.unmarked.insert(member.into()) {
                guardian::add(Duty::Tree { mark: self.mark, root: member.into() });
            }
        }
    }
}

/// How many looks in a row a chase takes.
const CHASE: u32 = 40;

/// Whether the root of a tree that has ended is reaped with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exited {
    Keep,
    Reap,
}

#[derive(Debug, Default)]
pub(super) struct Swept {
    pub alive: Vec<Entry>,
    pub reaped: Vec<Entry>,
}

/// The members of a tree: the root, its group and session, those that are known or marked, and all their descendants.
/// Parents are before their children: a shell that outlives the command it waits for, if only by a moment, continues
/// the next one.
pub(super) fn select<'a>(
    table: &'a Table,
    root: Identity,
    known: &HashSet<Identity>,
    marked: impl Iterator<Item = &'a Entry>,
) -> Vec<Entry> {
    // Once the root is reaped its number may belong to someone else, and groups of that number with it.
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

/// Kills what lives, and reaps what is dead and came to us.
fn kill(members: Vec<Entry>) -> Swept {
    let mut swept = Swept::default();
    for member in members {
        if !member.zombie {
            signal(Identity::from(&member), Signal::KILL);
            swept.alive.push(member);
        } else if reap(&member) {
            swept.reaped.push(member);
        }
    }
    swept
}

fn reap(member: &Entry) -> bool {
    let own = std::process::id().cast_signed();
    member.parent == own && Pid::from_raw(member.pid).is_some_and(|pid| exit::reap(pid).is_some())
}

/// A process in words, for messages.
pub(super) fn describe(entry: &Entry) -> Stray {
    Stray { pid: entry.pid.unsigned_abs(), command: table::command(entry.pid) }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
