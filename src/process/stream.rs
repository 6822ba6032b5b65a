//! The ends of pipes and terminals, read and written without blocking.
//!
//! One type for both links, so that the supervisor does not care which one it has.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// When a descriptor has nothing more to give for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drained {
    /// A pipe fills the buffer if it can.
    ShortRead,
    /// A terminal hands out at most a few kilobytes at once, however much it has.
    WouldBlock,
}

/// The end of a pipe or terminal that is read.
#[derive(Debug)]
pub(super) struct Source {
    descriptor: Arc<AsyncFd<OwnedFd>>,
    drained: Drained,
}

impl Source {
    pub(crate) fn new(descriptor: impl Into<Arc<AsyncFd<OwnedFd>>>, drained: Drained) -> Self {
        Self { descriptor: descriptor.into(), drained }
    }

    /// Ready with the number of bytes read; zero is the end.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        loop {
            let Ok(mut guard) = ready!(self.descriptor.poll_read_ready(context)) else { return Poll::Ready(0) };
            match rustix::io::read(self.descriptor.get_ref(), &mut *buffer) {
                Ok(count) => {
                    if self.drained == Drained::ShortRead && count < buffer.len() {
                        guard.clear_ready();
                    }
                    return Poll::Ready(count);
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                // A terminal says EIO when nobody has its other end open any more.
                Err(_) => return Poll::Ready(0),
            }
        }
    }

    /// Reads what is there, without waiting and without asking the reactor.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match rustix::io::read(self.descriptor.get_ref(), &mut *buffer) {
                Ok(count) => return Some(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => return Some(0),
            }
        }
    }
}

/// The end of a pipe or terminal that is written, and what is still to be written.
#[derive(Debug)]
pub(super) struct Sink {
    descriptor: Arc<AsyncFd<OwnedFd>>,
    bytes: Arc<[u8]>,
    written: usize,
}

impl Sink {
    pub(crate) fn new(descriptor: impl Into<Arc<AsyncFd<OwnedFd>>>, bytes: Arc<[u8]>) -> Self {
        Self { descriptor: descriptor.into(), bytes, written: 0 }
    }

    /// What is still to be written.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Ready when all is written, or when nobody will read the rest: that is the agent's right, not an error.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.written < self.bytes.len() {
            let Ok(mut guard) = ready!(self.descriptor.poll_write_ready(context)) else { return Poll::Ready(()) };
            match rustix::io::write(self.descriptor.get_ref(), &self.bytes[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Ready(())
    }
}

/// Registers a descriptor with the runtime, which must be running.
#[expect(unsafe_code, reason = "registration of a descriptor that must stay open, which an owned one does")]
pub(crate) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(descriptor.as_fd(), true)?;
    // SAFETY: `AsyncFd` owns the descriptor and gives it back only by being dropped, so it is open while registered.
    unsafe { AsyncFd::register_with_interest(descriptor, interest) }.map_err(io::Error::from)
}
