//! The file system behind bubblewrap, as its arguments: the nearest rule above a path decides.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Network, Rules};

/// What is done to one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Read,
    Write,
    Hide,
    /// Read-only in a part that may be changed.
    Keep,
}

/// Everything before the command: namespaces and mounts. `own_users` makes a user namespace, which root can do without.
pub(super) fn arguments(rules: &Rules, own_users: bool, also_read: &[PathBuf], directory: &Path) -> Vec<OsString> {
    let mut words = Words::default();
    words.add(["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]);
    words.add(["--cap-drop", "ALL"]);
    if own_users {
        words.add(["--unshare-user"]);
    }
    if !matches!(rules.network, Network::All) {
        words.add(["--unshare-net"]);
    }
    let everything = rules.read.iter().any(|path| path == Path::new("/"));
    if everything {
        words.add(["--ro-bind", "/", "/"]);
    }
    words.add(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]);
    // Root could change the kernel's settings there, without any capability.
    for path in ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"] {
        words.add(["--ro-bind-try", path, path]);
    }
    for path in ["/tmp", "/var/tmp"] {
        if Path::new(path).is_dir() || !everything {
            words.bind("--bind", &rules.temporary, Path::new(path));
        }
    }
    for (path, way) in mounts(rules, also_read, everything) {
        words.mount(&path, way);
    }
    words.add(["--chdir"]);
    words.0.push(directory.into());
    words.0
}

/// Each path with what is done to it, parents first.
fn mounts(rules: &Rules, also_read: &[PathBuf], everything: bool) -> Vec<(PathBuf, Way)> {
    let masked = |path: &Path| ["/run", "/tmp", "/var/tmp", "/dev", "/proc"].iter().any(|mask| path.starts_with(mask));
    let usual = |path: &Path| ["/dev", "/proc"].iter().any(|mask| path.starts_with(mask));
    let seen = |path: &Path| {
        everything && !masked(path)
            || rules.read.iter().chain(&rules.write).any(|root| root != Path::new("/") && path.starts_with(root))
    };
    // Names of hosts are looked up with a file that many systems keep in `/run`.
    let names = ["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf"].map(PathBuf::from);
    let reads = rules.read.iter().chain(also_read).chain(&rules.sockets).chain(&names);
    let reads = reads.filter(|path| *path != Path::new("/") && (!everything || masked(path)));
    let hides = rules.hidden.iter().filter(|path| *path != Path::new("/dev") && seen(path));
    let mut all: Vec<(PathBuf, Way)> = reads.map(|path| (path.clone(), Way::Read)).collect();
    all.extend(rules.write.iter().map(|path| (path.clone(), Way::Write)));
    all.extend(hides.map(|path| (path.clone(), Way::Hide)));
    all.extend(rules.read_only.iter().map(|path| (path.clone(), Way::Keep)));
    all.retain(|(path, _)| path.symlink_metadata().is_ok() && !usual(path));
    all.sort_by_key(|(path, way)| (path.components().count(), path.clone(), *way));
    // The last word about a path is the strongest.
    let mut kept: Vec<(PathBuf, Way)> = Vec::new();
    for (path, way) in all {
        let above = kept.iter().rev().find(|(above, _)| path != *above && path.starts_with(above));
        if way == Way::Read && above.is_some_and(|(_, above)| matches!(above, Way::Read | Way::Write)) {
            // It is seen already, and a link there cannot be made a second time.
            continue;
        }
        match kept.last_mut().filter(|(last, _)| *last == path) {
            Some(last) => last.1 = way,
            None => kept.push((path, way)),
        }
    }
    kept
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.add([how]);
        self.0.extend([from.into(), to.into()]);
    }

    fn mount(&mut self, path: &Path, way: Way) {
        match way {
            Way::Read | Way::Keep => match std::fs::read_link(path) {
                Ok(target) if way == Way::Read => self.bind("--symlink", &target, path),
                _ => self.bind("--ro-bind", path, path),
            },
            Way::Write => self.bind("--bind", path, path),
            Way::Hide if path.is_dir() => {
                self.add(["--perms", "0555", "--tmpfs"]);
                self.0.push(path.into());
                self.add(["--remount-ro"]);
                self.0.push(path.into());
            }
            Way::Hide => self.bind("--ro-bind", Path::new("/dev/null"), path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, Limits};
    use super::*;

    #[test]
    fn parents_come_first_and_what_is_hidden_or_kept_wins() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for directory in ["work/.git/hooks", ".ssh"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        let rules = Rules {
            backend: Backend::Bubblewrap,
            write: vec![home.join("work"), home.join("missing")],
            read: vec!["/".into(), home.clone()],
            hidden: vec!["/dev".into(), home.join(".ssh"), home.join("gone")],
            read_only: vec![home.join("work/.git/hooks")],
            sockets: Vec::new(),
            temporary: home.clone(),
            network: Network::All,
            limits: Limits::default(),
            keep: None,
            set: Vec::new(),
        };
        let mounted = mounts(&rules, &[], true);
        let expected = [
            (home.clone(), Way::Read),
            (home.join(".ssh"), Way::Hide),
            (home.join("work"), Way::Write),
            (home.join("work/.git/hooks"), Way::Keep),
        ];
        assert_eq!(mounted.iter().filter(|(path, _)| path.starts_with(&home)).cloned().collect::<Vec<_>>(), expected);
    }
}
