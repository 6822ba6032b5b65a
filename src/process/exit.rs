//! Sees that a process has ended without reaping it.
//!
//! The dead process keeps its number, and the number of its group, until the sweep is over; only then may
//! [`Root::reap`] give it back. So a signal to the group can never hit a stranger.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::{Exit, platform};

/// The process that was started: a child of this process, not yet reaped.
#[derive(Debug)]
pub(super) struct Root {
    pid: Pid,
    watch: platform::ExitWatch,
}

impl Root {
    /// Must be called in a tokio runtime, on a child that nobody else waits for.
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, watch: platform::ExitWatch::new(pid)? })
    }

    pub(crate) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Ready when the process has ended.
    pub(crate) fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.watch.poll(context)
    }

    /// Takes the exit status and gives the number back. `None` while it still runs.
    pub(crate) fn reap(&self) -> Option<Exit> {
        reap(self.pid)
    }
}

/// Reaps one child, by its number: never "any child", which would take those of others.
pub(super) fn reap(pid: Pid) -> Option<Exit> {
    let status = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok()??;
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Reaps a child that was killed. One that hangs in the kernel is left behind rather than waited for.
pub(super) fn reap_soon(pid: Pid) {
    for _ in 0..100 {
        if reap(pid).is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_end_is_left_behind() {
        let start = std::time::Instant::now();
        // This very process will not end now.
        reap_soon(rustix::process::getpid());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
