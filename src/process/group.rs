//! A control group for each agent, where the system lets ralph make one: its kill reaches every process at once, whatever
//! it has done to its parents, its session, its user or its environment.
//!
//! Only version 2 of cgroups can do that. A group must never hold a process that is not of its agent.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::guardian::{self, Duty};
use super::mark::Mark;

/// The names of our groups begin so; the number of the ralph that made it follows.
const PREFIX: &str = "ralph.";

/// The control group of this process, where groups for agents are made; none where that cannot be done.
static PARENT: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let parent = own_group()?;
    remove_leftovers(&parent);
    is_usable(&parent).then_some(parent)
});

/// The control group of one agent.
#[derive(Clone, Debug)]
pub(super) struct Group {
    path: PathBuf,
}

impl Group {
    /// A new group, and the file that a process writes to in order to join it; none where there are no groups.
    pub(crate) fn create(mark: Mark) -> Option<(Self, OwnedFd)> {
        let group = Self { path: PARENT.as_ref()?.join(name(&mark.to_string())) };
        std::fs::create_dir(&group.path).ok()?;
        let Ok(file) = OpenOptions::new().write(true).open(group.path.join("cgroup.procs")) else {
            group.remove();
            return None;
        };
        guardian::add(group.duty());
        Some((group, file.into()))
    }

    /// Removes one that nobody joined.
    pub(crate) fn abandon(&self) {
        guardian::remove(&self.duty());
        self.remove();
    }

    pub(crate) fn duty(&self) -> Duty {
        Duty::Group(self.path.clone())
    }

    pub(crate) fn members(&self) -> Vec<i32> {
        members(&self.path)
    }

    pub(crate) fn kill(&self) {
        kill(&self.path);
    }

    /// Removes it; one that is still in use stays, and is removed by a later ralph.
    pub(crate) fn remove(&self) {
        remove(&self.path);
    }
}

/// True when this process can make groups for agents.
pub(super) fn is_available() -> bool {
    PARENT.is_some()
}

/// Kills every process in a group and in the groups below it.
pub(super) fn kill(group: &Path) {
    // A group that is gone has no processes.
    let _ = write(&group.join("cgroup.kill"), "1");
}

/// Removes a group and those below it.
pub(super) fn remove(group: &Path) {
    for below in below(group) {
        remove(&below);
    }
    let _ = std::fs::remove_dir(group);
}

fn members(group: &Path) -> Vec<i32> {
    let listed = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = listed.lines().filter_map(|line| line.parse().ok()).collect();
    // An agent may be a ralph with groups of its own.
    found.extend(below(group).iter().flat_map(|below| members(below)));
    found
}

fn below(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(group) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

pub(super) fn name(rest: &str) -> String {
    format!("{PREFIX}{}.{rest}", std::process::id())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    // Without `create`: in a directory that is no control group nothing may appear.
    let mut file: File = OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Where the group of this process is in the file system.
pub(super) fn own_group() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounted(own, |kind| kind.starts_with("cgroup2 "))
}

/// The same in the tree that version 1 has for one controller.
#[cfg(all(target_os = "linux", not(ralph_portable)))]
pub(super) fn own_group_of(controller: &str) -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let has = |options: &str| options.split(',').any(|option| option == controller);
    mounted(own, |kind| kind.starts_with("cgroup ") && kind.rsplit(' ').next().is_some_and(has))
}

/// Where a group is, in the first tree of this kind.
fn mounted(own: &str, is: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        is(kind).then_some(())?;
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let inside = if root == "/" { own } else { own.strip_prefix(root)? };
        // A process outside of its own root has a path that leads out of it.
        (!inside.contains("/..")).then(|| Path::new(place).join(inside.trim_start_matches('/')))
    })
}

/// Whether groups can be made, joined, killed and removed there: permissions do not tell all of it.
fn is_usable(parent: &Path) -> bool {
    let trial = parent.join(name("trial"));
    if std::fs::create_dir(&trial).is_err() {
        return false;
    }
    let joins = OpenOptions::new().write(true).open(trial.join("cgroup.procs")).is_ok()
        && OpenOptions::new().write(true).open(parent.join("cgroup.procs")).is_ok();
    let kills = trial.join("cgroup.kill").exists();
    // A group that hands out resources cannot have processes beside groups, and the agents' groups get none of them.
    let mode = std::fs::read_to_string(trial.join("cgroup.type")).unwrap_or_default();
    remove(&trial);
    joins && kills && mode.trim() == "domain"
}

/// Groups of ralphs that are gone.
pub(super) fn remove_leftovers(parent: &Path) {
    for group in below(parent) {
        let owner = group.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
        let owner = owner.and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| pid != std::process::id() && !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&group);
        }
    }
}
