//! The only place that starts a process.
//!
//! A child begins in a session of its own with nothing inherited but the environment it is given: no descriptors, no
//! ignored signals, no standard input. It must never be started without a parent-death signal where there is one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::invocation::{Environment, Invocation, Link, Stdin};
use super::mark::Mark;
use super::wall::Prepared;
use super::{MARK, platform, registry};

/// A started child and our ends of its streams.
#[derive(Debug)]
pub(super) struct Spawned {
    pub pid: Pid,
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
}

/// What the child is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The root of a tree: it carries the mark, joins the control group behind this descriptor, and dies with us.
    Agent {
        mark: Mark,
        group: Option<RawFd>,
    },
    Guardian,
}

fn agent(mark: Mark, group: Option<&OwnedFd>) -> Role {
    Role::Agent { mark, group: group.map(AsRawFd::as_raw_fd) }
}

/// Whether the session of the child gets a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controlling {
    Nothing,
    /// The terminal that is its standard output.
    StandardOutput,
}

/// Starts a child on pipes.
pub(super) fn on_pipes(
    invocation: &Invocation,
    program: &Path,
    mark: Mark,
    group: Option<&OwnedFd>,
    wall: Option<&Arc<Prepared>>,
) -> io::Result<Spawned> {
    let mut command = command(invocation, program, mark, wall);
    command.stdin(match &invocation.stdin {
        Stdin::Null | Stdin::Keys => Stdio::null(),
        Stdin::Bytes(_) => Stdio::piped(),
        Stdin::From(descriptor) => Stdio::from(descriptor.try_clone()?),
    });
    match invocation.link {
        Link::Inherited => command.stdout(Stdio::inherit()).stderr(Stdio::inherit()),
        Link::Pipe | Link::Pty(_) => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
    };
    spawn(command, agent(mark, group), Controlling::Nothing, wall)
}

/// Starts a child whose output, and whose input if there is any, is this terminal.
pub(super) fn on_terminal(
    invocation: &Invocation,
    program: &Path,
    mark: Mark,
    group: Option<&OwnedFd>,
    wall: Option<&Arc<Prepared>>,
    terminal: OwnedFd,
) -> io::Result<Spawned> {
    let mut command = command(invocation, program, mark, wall);
    command.stdin(match &invocation.stdin {
        Stdin::Bytes(bytes) if !bytes.is_empty() => Stdio::from(terminal.try_clone()?),
        Stdin::Keys => Stdio::from(terminal.try_clone()?),
        // Where there is nothing to type, nobody could type the end of it.
        Stdin::Bytes(_) | Stdin::Null => Stdio::null(),
        Stdin::From(descriptor) => Stdio::from(descriptor.try_clone()?),
    });
    command.stdout(terminal.try_clone()?).stderr(terminal);
    spawn(command, agent(mark, group), Controlling::StandardOutput, wall)
}

/// Starts the guardian: with an empty environment, so that it carries no mark, and nothing to hold on to.
pub(super) fn guardian(program: &Path, argument: &str) -> io::Result<(Pid, OwnedFd)> {
    let mut command = Command::new(program);
    command.arg0("ralph").arg(argument).arg(std::process::id().to_string()).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let spawned = spawn(command, Role::Guardian, Controlling::Nothing, None)?;
    let pipe = spawned.stdin.ok_or(io::ErrorKind::BrokenPipe)?;
    // It is only notified: one that does not listen must not hold an agent up.
    rustix::io::ioctl_fionbio(&pipe, true)?;
    Ok((spawned.pid, pipe))
}

fn command(invocation: &Invocation, program: &Path, mark: Mark, wall: Option<&Arc<Prepared>>) -> Command {
    let mut command = Command::new(program);
    command.arg0(&invocation.program);
    if let Some((around, words)) = wall.and_then(|wall| wall.around()) {
        command = Command::new(around);
        command.args(words);
    }
    command.args(&invocation.args).current_dir(&invocation.cwd);
    apply(&mut command, &invocation.env, wall.map(AsRef::as_ref));
    command.env(MARK, mark.variable());
    command
}

fn apply(command: &mut Command, environment: &Environment, wall: Option<&Prepared>) {
    let kept = |name: &OsStr| !environment.removes(name) && wall.is_none_or(|wall| wall.keeps(name));
    for (name, _) in std::env::vars_os().filter(|(name, _)| !kept(name)) {
        command.env_remove(name);
    }
    command.envs(environment.set.iter().map(|(name, value)| (name, value)));
    command.envs(wall.into_iter().flat_map(Prepared::variables).map(|(name, value)| (name, value)));
}

/// Spawns on a thread that lives as long as this process: the parent-death signal of Linux comes when the *thread*
/// ends that started the child, and the caller's thread may be one of a pool.
fn spawn(
    mut command: Command,
    role: Role,
    controlling: Controlling,
    wall: Option<&Arc<Prepared>>,
) -> io::Result<Spawned> {
    type Job = (Command, Sender<io::Result<Child>>);
    static SPAWNER: LazyLock<io::Result<Sender<Job>>> = LazyLock::new(|| {
        registry::prepare();
        hear_of_children();
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("spawn".into()).spawn(move || {
            for (mut command, reply) in queue {
                let _ = reply.send(spawn_patiently(&mut command));
            }
        })?;
        Ok(jobs)
    });

    before_exec(&mut command, role, controlling, wall.cloned());
    let gone = || io::Error::from(rustix::io::Errno::AGAIN);
    let jobs = SPAWNER.as_ref().map_err(|_| gone())?;
    let (reply, answer) = mpsc::channel();
    jobs.send((command, reply)).map_err(|_| gone())?;
    let mut child = answer.recv().map_err(|_| gone())??;
    Ok(Spawned {
        pid: Pid::from_child(&child),
        stdin: child.stdin.take().map(OwnedFd::from),
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
    })
}

/// A program that was written a moment ago may still be open for writing in a child that another thread has forked and
/// that has not yet reached its exec.
fn spawn_patiently(command: &mut Command) -> io::Result<Child> {
    let mut attempts = 20;
    loop {
        match registry::spawn(command) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && attempts > 0 => {
                attempts -= 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Where the one who started ralph ignores the end of children, so does ralph, and then they leave no exit status.
#[expect(unsafe_code, reason = "the dispositions of signals are not in rustix")]
fn hear_of_children() {
    // SAFETY: plain C calls; the structure is filled before it is read, and only an ignored signal is changed.
    unsafe {
        let mut found = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        let asked = libc::sigaction(libc::SIGCHLD, std::ptr::null(), found.as_mut_ptr());
        if asked == 0 && found.assume_init().sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Prepares what the child does between fork and exec.
#[expect(unsafe_code, reason = "code between fork and exec; it makes system calls only and allocates nothing")]
fn before_exec(command: &mut Command, role: Role, controlling: Controlling, wall: Option<Arc<Prepared>>) {
    let parent = rustix::process::getpid();
    let files = *OPEN_FILES;
    // SAFETY: everything called in there is a plain system call on values that were made before the fork.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            if controlling == Controlling::StandardOutput {
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdout())?;
            }
            match role {
                Role::Agent { mark, group } => {
                    platform::when_parent_dies(parent, Signal::KILL)?;
                    platform::set_limit(mark.0);
                    join(group);
                }
                // One that was halted wakes up, sees our end, and goes.
                Role::Guardian => platform::when_parent_dies(parent, Signal::CONT)?,
            }
            default_signals();
            platform::close_on_exec();
            rustix::process::setrlimit(Resource::Nofile, files)?;
            // The last step: behind the wall, some of the others are refused.
            wall.as_ref().map_or(Ok(()), |wall| wall.enter())
        });
    }
}

/// Moves the calling process into a control group. Used between fork and exec; without it the mark has to do.
#[expect(unsafe_code, reason = "a descriptor of the parent, named by its number between fork and exec")]
fn join(group: Option<RawFd>) {
    if let Some(group) = group {
        // SAFETY: whoever started us holds the descriptor open until we have reached exec.
        let group = unsafe { BorrowedFd::borrow_raw(group) };
        let _ = rustix::io::write(group, b"0");
    }
}

/// Raises the limit on open files, once, and says what it is now.
pub(super) fn raise_open_files() -> u64 {
    let _ = *OPEN_FILES;
    rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The limit on open files as ralph found it. 200 agents need more descriptors than the usual 1024, but the agents
/// get the limit that the user gave.
static OPEN_FILES: LazyLock<Rlimit> = LazyLock::new(|| {
    let found = rustix::process::getrlimit(Resource::Nofile);
    // macOS refuses an unlimited number.
    let wanted = found.maximum.map_or(10_240, |maximum| maximum.min(65_536));
    if found.current.is_some_and(|current| current < wanted) {
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..found });
    }
    found
});

/// A signal that is ignored stays ignored over exec: under `nohup`, or behind `&` in a script, an agent could
/// otherwise not be asked to stop.
#[expect(unsafe_code, reason = "the dispositions of signals are not in rustix")]
pub(super) fn default_signals() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::TSTP, Signal::CONT, Signal::CHILD] {
        // SAFETY: the default action needs no handler, and the call is safe between fork and exec.
        unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
    }
}

/// The output of a small system program, in the language that programs read; for platforms without `/proc`.
pub(super) fn output(program: &str, args: &[&str]) -> io::Result<Vec<u8>> {
    Ok(Command::new(program).args(args).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null()).output()?.stdout)
}

/// Becomes another program; returns only when that fails.
#[cfg_attr(any(not(target_os = "linux"), ralph_portable), allow(dead_code))]
pub(super) fn become_program(program: &Path, name: &OsStr, args: impl Iterator<Item = OsString>) -> io::Error {
    Command::new(program).arg0(name).args(args).exec()
}
