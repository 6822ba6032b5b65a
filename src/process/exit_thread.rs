//! The end of a process where the system has no descriptor for it: macOS, and Linux before 5.3.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

/// A thread sits in `waitid`, told to leave the dead process for whoever reaps it.
#[derive(Debug)]
pub(super) struct ExitThread(oneshot::Receiver<()>);

impl ExitThread {
    pub(super) fn new(pid: Pid) -> io::Result<Self> {
        let (ended, receiver) = oneshot::channel();
        std::thread::Builder::new().name("exit-watch".into()).stack_size(64 * 1024).spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
            let _ = ended.send(());
        })?;
        Ok(Self(receiver))
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}
