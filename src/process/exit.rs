//! Sees that a process has ended without reaping it.
//!
//! The dead process keeps its number, and the number of its group, until the sweep is over; only then may
//! [`Root::reap`] give it back. So a signal to the group can never hit a stranger.

use std::io;
use std::task::{Context, Poll};

use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::Exit;

/// The process that was started: a child of this process, not yet reaped.
#[derive(Debug)]
pub(super) struct Root {
    pid: Pid,
    watch: platform::ExitWatch,
}

impl Root {
    /// Must be called in a tokio runtime, on a child that nobody else waits for.
    pub fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, watch: platform::ExitWatch::new(pid)? })
    }

    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Ready when the process has ended.
    pub fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.watch.poll(context)
    }

    /// Takes the exit status and gives the number back. `None` while it still runs.
    pub fn reap(&self) -> Option<Exit> {
        reap(self.pid)
    }
}

/// Reaps one child, by its number: never "any child", which would take those of others.
pub(super) fn reap(pid: Pid) -> Option<Exit> {
    let status = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok()??;
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Reaps a child that was killed; it cannot take long.
pub(super) fn reap_killed(pid: Pid) {
    while rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)
        .is_err_and(|error| error == rustix::io::Errno::INTR)
    {}
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll, ready};

    use rustix::process::{Pid, PidfdFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::super::stream::register;

    /// A pidfd becomes readable when its process ends.
    #[derive(Debug)]
    pub struct ExitWatch(AsyncFd<OwnedFd>);

    impl ExitWatch {
        pub fn new(pid: Pid) -> io::Result<Self> {
            let descriptor = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
            Ok(Self(register(descriptor, Interest::READABLE)?))
        }

        pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
            // A failure of the reactor means that it shuts down: then nothing more will be heard.
            let _ = ready!(self.0.poll_read_ready(context));
            Poll::Ready(())
        }
    }
}

/// Elsewhere a thread sits in `waitid`, told to leave the dead process for [`Root::reap`].
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use rustix::process::{Pid, WaitId, WaitIdOptions};
    use tokio::sync::oneshot;

    #[derive(Debug)]
    pub struct ExitWatch(oneshot::Receiver<()>);

    impl ExitWatch {
        pub fn new(pid: Pid) -> io::Result<Self> {
            let (ended, receiver) = oneshot::channel();
            std::thread::Builder::new().name("exit-watch".into()).stack_size(64 * 1024).spawn(move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
                let _ = ended.send(());
            })?;
            Ok(Self(receiver))
        }

        pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
            Pin::new(&mut self.0).poll(context).map(drop)
        }
    }
}
