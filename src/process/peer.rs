//! Who is at the other end of a Unix socket, as the kernel tells it.

use std::io;
use std::os::unix::net::UnixStream;

/// The user and the process at the other end.
pub fn peer(stream: &UnixStream) -> io::Result<(u32, i32)> {
    system::peer(stream)
}

#[cfg(all(target_os = "linux", not(ralph_portable)))]
mod system {
    use super::{UnixStream, io};

    pub(super) fn peer(stream: &UnixStream) -> io::Result<(u32, i32)> {
        let credentials = rustix::net::sockopt::socket_peercred(stream)?;
        Ok((credentials.uid.as_raw(), credentials.pid.as_raw_nonzero().get()))
    }
}

#[cfg(target_os = "macos")]
mod system {
    use std::os::fd::AsRawFd as _;

    use super::{UnixStream, io};

    #[expect(unsafe_code, reason = "no safe function gives the process at the other end")]
    pub fn peer(stream: &UnixStream) -> io::Result<(u32, i32)> {
        let (mut uid, mut gid, mut pid): (libc::uid_t, libc::gid_t, libc::pid_t) = (0, 0, 0);
        let mut size = libc::socklen_t::try_from(size_of::<libc::pid_t>()).unwrap_or(4);
        // SAFETY: the descriptor is open, and every pointer is to a local variable of the right size.
        let failed = unsafe {
            libc::getpeereid(stream.as_raw_fd(), &raw mut uid, &raw mut gid) != 0
                || libc::getsockopt(
                    stream.as_raw_fd(),
                    libc::SOL_LOCAL,
                    libc::LOCAL_PEERPID,
                    (&raw mut pid).cast(),
                    &raw mut size,
                ) != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok((uid, pid)) }
    }
}

#[cfg(all(not(target_os = "macos"), any(not(target_os = "linux"), ralph_portable)))]
mod system {
    use super::{UnixStream, io};

    pub(crate) fn peer(_stream: &UnixStream) -> io::Result<(u32, i32)> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
