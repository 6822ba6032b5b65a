//! A wall that is ready: everything that the child needs between fork and exec, made before the fork.
//!
//! What runs in the child makes system calls only and allocates nothing.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit};
use seccompiler::BpfProgram;

use super::super::mark::Mark;
use super::super::{Invocation, own_program, resolve};
use super::bubblewrap::{self, USABLE};
use super::limits::Groups;
use super::{Backend, Limits, Machine, Network, Rules, landlock, limits, mounts, seccomp};

/// What this machine has to build a wall with.
pub(crate) fn machine() -> Machine {
    Machine {
        landlock: *landlock::VERSION,
        seccomp: seccomp::is_available(),
        bubblewrap: USABLE.as_ref().map(|usable| usable.program.clone()).map_err(Clone::clone),
        counts_processes: limits::counts_processes(),
        counts_memory: limits::counts_memory(),
    }
}

/// A wall for one command.
#[derive(Debug)]
pub(in super::super) struct Prepared {
    landlock: Option<OwnedFd>,
    /// Loaded in the child; bubblewrap loads its own.
    filters: Vec<BpfProgram>,
    limits: Vec<(Resource, Rlimit)>,
    groups: Groups,
    around: Option<Around>,
    keep: Option<Vec<String>>,
    set: Vec<(OsString, OsString)>,
}

/// bubblewrap, and what it inherits.
#[derive(Debug)]
struct Around {
    program: PathBuf,
    words: Vec<OsString>,
    inherited: Vec<OwnedFd>,
}

impl Prepared {
    pub(in super::super) fn new(rules: &Rules, invocation: &Invocation, mark: Mark) -> Result<Self, String> {
        let filters = seccomp::programs(rules.backend, &rules.network)?;
        let groups = Groups::new(&rules.limits, mark)?;
        let limits = own_limits(&rules.limits);
        let (keep, set) = (rules.keep.clone(), rules.set.clone());
        match rules.backend {
            Backend::Landlock => {
                let landlock = Some(landlock::files_and_network(rules)?);
                Ok(Self { landlock, filters, limits, groups, around: None, keep, set })
            }
            Backend::Bubblewrap => {
                let around = Some(Around::new(rules, invocation, &filters)?);
                let landlock = landlock::scopes();
                Ok(Self { landlock, filters: Vec::new(), limits, groups, around, keep, set })
            }
        }
    }

    /// Whether a variable of ours is handed on.
    pub(in super::super) fn keeps(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        self.keep.as_ref().is_none_or(|keep| {
            keep.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix.as_bytes()),
                None => name == pattern.as_bytes(),
            })
        })
    }

    /// Variables that the command gets whatever else it is given.
    pub(in super::super) fn variables(&self) -> &[(OsString, OsString)] {
        &self.set
    }

    /// The program to start instead of the command, and the words before the command's arguments.
    pub(in super::super) fn around(&self) -> Option<(&Path, Vec<OsString>)> {
        self.around.as_ref().map(|around| (around.program.as_path(), around.words.clone()))
    }

    /// Goes behind the wall. Used between fork and exec, as the last step.
    #[expect(unsafe_code, reason = "descriptors of the parent, named by their numbers between fork and exec")]
    pub(in super::super) fn enter(&self) -> io::Result<()> {
        for door in &self.groups.doors {
            rustix::io::write(door, b"0")?;
        }
        for (resource, limit) in &self.limits {
            rustix::process::setrlimit(*resource, *limit)?;
        }
        if let Some(around) = &self.around {
            for descriptor in &around.inherited {
                // SAFETY: the parent holds it open until this process has reached exec.
                let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor.as_raw_fd()) };
                rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
            }
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
                // SAFETY: ignoring a signal needs no handler. The last step inside takes it back for the command.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
        } else {
            drop_capabilities()?;
        }
        rustix::thread::set_no_new_privs(true)?;
        if let Some(rules) = &self.landlock {
            landlock::enter(rules.as_raw_fd())?;
        }
        self.filters.iter().try_for_each(|filter| seccomp::load(filter))
    }
}

impl Around {
    fn new(rules: &Rules, invocation: &Invocation, filters: &[BpfProgram]) -> Result<Self, String> {
        let usable = USABLE.as_ref().map_err(Clone::clone)?;
        // By its descriptor: its file may have been replaced by a newer one meanwhile.
        let own = File::open(own_program()).map_err(|error| format!("cannot open this program: {error}"))?;
        let path = resolve::program(invocation).map_err(|error| error.to_string())?;
        let path = if path.is_absolute() { path } else { invocation.cwd.join(path) };
        let mut inherited = Vec::new();
        let mut words = mounts::arguments(rules, usable.own_users, std::slice::from_ref(&path), &invocation.cwd);
        for filter in filters {
            let file =
                in_memory(&seccomp::bytes(filter)).map_err(|error| format!("cannot hand on a filter: {error}"))?;
            words.extend(["--add-seccomp-fd".into(), file.as_raw_fd().to_string().into()]);
            inherited.push(file);
        }
        let mut listener = None;
        if let Network::Proxy { port, sockets } = &rules.network {
            let (ours, theirs) = UnixStream::pair().map_err(|error| format!("cannot connect the proxy: {error}"))?;
            sockets.send(ours).map_err(|_| "the proxy of the sandbox has ended".to_owned())?;
            listener = Some((theirs.as_raw_fd(), *port));
            inherited.push(theirs.into());
        }
        words.extend(["--".into(), format!("/proc/self/fd/{}", own.as_raw_fd()).into()]);
        inherited.push(own.into());
        words.extend(bubblewrap::inner(listener, &path, &invocation.program));
        Ok(Self { program: usable.program.clone(), words, inherited })
    }
}

fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = rustix::fs::memfd_create("filter", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(descriptor);
    file.write_all(bytes)?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}

/// Limits of each process: what no control group counts.
fn own_limits(wanted: &Limits) -> Vec<(Resource, Rlimit)> {
    let below = |resource: Resource, most: u64| {
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        (resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    let mut limits = Vec::new();
    // Memory that is only reserved does not count: some runtimes reserve terabytes.
    limits.extend(wanted.memory.filter(|_| !limits::counts_memory()).map(|most| below(Resource::Data, most)));
    limits.extend(wanted.processes.filter(|_| !limits::counts_processes()).map(|most| below(Resource::Nproc, most)));
    limits.extend(wanted.open_files.map(|most| below(Resource::Nofile, most)));
    limits.push(below(Resource::Core, 0));
    limits
}

/// Root without capabilities is a user like any other; with them it reads around Landlock.
#[expect(unsafe_code, reason = "capabilities of a process between fork and exec are not in rustix")]
fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    #[repr(C)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    const AMBIENT_CLEAR: libc::c_ulong = 4;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [const { Sets { effective: 0, permitted: 0, inheritable: 0 } }; 2];
    // SAFETY: plain system calls with structures of the kernel's layout. The first ones fail for an ordinary user, who has
    // nothing to drop there; the last one must not fail.
    unsafe {
        for capability in 0..64 {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, AMBIENT_CLEAR, 0, 0, 0);
        match libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
