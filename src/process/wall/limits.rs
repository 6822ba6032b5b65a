//! Limits on memory and processes of a whole tree, by control groups of either version; what they cannot do, the limits of
//! a single process do.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::super::group;
use super::super::mark::Mark;
use super::Limits;

/// One controller: its name, and the file with the limit in version 2 and in version 1.
struct Controller {
    name: &'static str,
    unified: &'static str,
    own: &'static str,
}

const MEMORY: Controller = Controller { name: "memory", unified: "memory.max", own: "memory.limit_in_bytes" };
const PROCESSES: Controller = Controller { name: "pids", unified: "pids.max", own: "pids.max" };

/// Where groups with a limit can be made.
#[derive(Clone, Debug)]
struct Parent {
    path: PathBuf,
    /// All controllers in one tree.
    unified: bool,
}

static FOR_MEMORY: LazyLock<Option<Parent>> = LazyLock::new(|| parent(&MEMORY));
static FOR_PROCESSES: LazyLock<Option<Parent>> = LazyLock::new(|| parent(&PROCESSES));

pub(super) fn counts_memory() -> bool {
    FOR_MEMORY.is_some()
}

pub(super) fn counts_processes() -> bool {
    FOR_PROCESSES.is_some()
}

/// Groups of one tree, removed with it.
#[derive(Debug, Default)]
pub(super) struct Groups {
    paths: Vec<PathBuf>,
    /// The files that a process writes to in order to join.
    pub(super) doors: Vec<OwnedFd>,
}

impl Groups {
    /// The groups that these limits need, as far as they can be had.
    pub(super) fn new(limits: &Limits, mark: Mark) -> Result<Self, String> {
        let mut groups = Self::default();
        for (limit, controller, parent) in
            [(limits.memory, &MEMORY, &*FOR_MEMORY), (limits.processes, &PROCESSES, &*FOR_PROCESSES)]
        {
            let (Some(limit), Some(parent)) = (limit, parent) else { continue };
            groups
                .add(limit, controller, parent, mark)
                .map_err(|error| format!("cannot limit {} by a control group: {error}", controller.name))?;
        }
        Ok(groups)
    }

    fn add(&mut self, limit: u64, controller: &Controller, parent: &Parent, mark: Mark) -> std::io::Result<()> {
        let path = parent.path.join(group::name(&format!("limit.{mark}")));
        let is_new = !self.paths.contains(&path);
        if is_new {
            std::fs::create_dir(&path)?;
            self.paths.push(path.clone());
        }
        set(&path.join(if parent.unified { controller.unified } else { controller.own }), limit)?;
        if is_new {
            self.doors.push(OpenOptions::new().write(true).open(path.join("cgroup.procs"))?.into());
        }
        Ok(())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| group::remove(path));
    }
}

fn set(file: &Path, limit: u64) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(limit.to_string().as_bytes())
}

/// Where this process can make a group with a limit of this kind, found out by making one.
fn parent(controller: &Controller) -> Option<Parent> {
    let own = group::own_group_of(controller.name).map(|path| Parent { path, unified: false });
    // In version 2, groups beside our own: a group with processes cannot hand out resources.
    let unified = group::own_group()
        .into_iter()
        .flat_map(|path| path.ancestors().skip(1).take(3).map(Path::to_owned).collect::<Vec<_>>());
    let unified = unified.filter(|path| {
        std::fs::read_to_string(path.join("cgroup.subtree_control"))
            .is_ok_and(|handed_on| handed_on.split_whitespace().any(|name| name == controller.name))
    });
    own.into_iter()
        .chain(unified.map(|path| Parent { path, unified: true }))
        .find(|parent| is_usable(parent, controller))
}

fn is_usable(parent: &Parent, controller: &Controller) -> bool {
    group::remove_leftovers(&parent.path);
    let trial = parent.path.join(group::name(&format!("trial-{}", controller.name)));
    if std::fs::create_dir(&trial).is_err() {
        return false;
    }
    let limits = set(&trial.join(if parent.unified { controller.unified } else { controller.own }), 1 << 20).is_ok();
    let joins = OpenOptions::new().write(true).open(trial.join("cgroup.procs")).is_ok()
        && OpenOptions::new().write(true).open(parent.path.join("cgroup.procs")).is_ok();
    group::remove(&trial);
    limits && joins
}
