//! Landlock's part: a set of rules, made before the fork, that the child enters with one system call.
//!
//! Landlock only allows. "Everything except" is made by listing the directories around what is hidden, so what is created
//! there later is not allowed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};

use super::{Network, Rules};

/// The version of Landlock's interface; 0 where the kernel has none.
pub(super) static VERSION: LazyLock<u32> = LazyLock::new(version);

#[expect(unsafe_code, reason = "landlock_create_ruleset is not in rustix, and the crate does not show the version")]
fn version() -> u32 {
    const ASK_VERSION: libc::c_uint = 1;
    // SAFETY: without attributes and with this flag the call only returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK_VERSION) };
    u32::try_from(version).unwrap_or(0)
}

fn abi() -> ABI {
    match *VERSION {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        _ => ABI::V9,
    }
}

/// Devices that every program may use. Whatever else is in `/dev` may be a disk or a terminal of someone.
pub(super) const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// The whole wall as a set of rules.
pub(super) fn files_and_network(rules: &Rules) -> Result<OwnedFd, String> {
    let abi = abi();
    if abi == ABI::Unsupported {
        return Err("this kernel has no Landlock".to_owned());
    }
    let wrong = |error: landlock::RulesetError| format!("Landlock refuses its rules: {error}");
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(abi)).map_err(wrong)?;
    if abi >= ABI::V4 && !matches!(rules.network, Network::All) {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp).map_err(wrong)?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(wrong)?;
    }
    let mut made = ruleset.create().map_err(wrong)?;
    let (reads, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    // No device is made by an unprivileged process, and a socket or a pipe in the workspace is its own.
    let writes = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for path in DEVICES.iter().map(Path::new) {
        made = allow(made, path, writes)?;
    }
    for path in &rules.sockets {
        made = allow(made, path, resolve_unix(abi))?;
    }
    let mut allowed = Allowed::default();
    rules.read.iter().for_each(|path| allowed.except(path, &rules.hidden));
    for path in &allowed.opened {
        // Names below can be listed, or nobody could look into `/` and the home directory; files there cannot be read.
        made = allow(made, path, AccessFs::ReadDir.into())?;
    }
    for path in &allowed.whole {
        made = allow(made, path, reads)?;
    }
    let mut allowed = Allowed::default();
    rules.write.iter().for_each(|path| allowed.except(path, &rules.hidden));
    for path in &allowed.whole {
        made = allow(made, path, writes)?;
    }
    if let (Network::Proxy { port, .. }, true) = (&rules.network, abi >= ABI::V4) {
        made = made.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(wrong)?;
    }
    Option::<OwnedFd>::from(made).ok_or_else(|| "Landlock made no rules".to_owned())
}

/// Only what concerns other processes: no signals to them, no abstract sockets of theirs. Mounts stay possible.
pub(super) fn scopes() -> Option<OwnedFd> {
    let abi = abi();
    if abi < ABI::V6 {
        return None;
    }
    Ruleset::default().scope(Scope::from_all(abi)).ok()?.create().ok()?.into()
}

fn resolve_unix(abi: ABI) -> BitFlags<AccessFs> {
    if abi >= ABI::V9 { AccessFs::ResolveUnix.into() } else { BitFlags::empty() }
}

/// Allows something below a path; what is not there needs no rule.
fn allow(made: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, String> {
    let Ok(descriptor) = PathFd::new(path) else { return Ok(made) };
    let is_directory = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let rights = if is_directory { rights } else { rights & AccessFs::from_file(abi()) };
    if rights.is_empty() {
        return Ok(made);
    }
    made.add_rule(PathBeneath::new(descriptor, rights))
        .map_err(|error| format!("Landlock refuses a rule for `{}`: {error}", path.display()))
}

/// Paths that together are everything below some path except what is hidden.
#[derive(Debug, Default)]
struct Allowed {
    /// Allowed with everything below.
    whole: Vec<PathBuf>,
    /// Something below is hidden.
    opened: Vec<PathBuf>,
}

impl Allowed {
    fn except(&mut self, path: &Path, hidden: &[PathBuf]) {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return;
        }
        if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
            self.whole.push(path.to_owned());
            return;
        }
        self.opened.push(path.to_owned());
        let Ok(entries) = std::fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            // A link is as allowed as what it leads to.
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.except(&entry.path(), hidden);
            }
        }
    }
}

/// Enters the rules. Used between fork and exec, after `no_new_privs`.
#[expect(unsafe_code, reason = "landlock_restrict_self is not in rustix, and the crate's own function may allocate")]
pub(super) fn enter(rules: libc::c_int) -> io::Result<()> {
    // SAFETY: a descriptor and a flag word; the call changes only the calling process.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_except_is_made_by_listing_around_what_is_hidden() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for directory in ["a/b", ".config/gcloud", ".config/other", ".ssh"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("link")).unwrap();
        let hidden = [home.join(".ssh"), home.join(".config/gcloud"), home.join("missing")];
        let mut allowed = Allowed::default();
        allowed.except(home, &hidden);
        allowed.whole.sort();
        assert_eq!(allowed.whole, [home.join(".config/other"), home.join("a")]);
        assert_eq!(allowed.opened, [home.to_owned(), home.join(".config")]);
        let mut allowed = Allowed::default();
        allowed.except(&home.join(".ssh/keys"), &hidden);
        assert!(allowed.whole.is_empty() && allowed.opened.is_empty());
    }
}
