//! The process at the other end of a connection, as the kernel recorded it when the process began to listen.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// A process and its user, as this process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// 0 if the process is not visible in our PID namespace. (Therefore rustix's own call, for which an id is never 0, cannot be
    /// used.)
    pub pid: u32,
    /// Its effective user.
    pub user: u32,
}

impl Peer {
    /// The process that listens at the other end of a connected socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes to `credentials`, which is that large and for which all bit patterns are
        // valid, and writes the length to `size`. The descriptor is borrowed, so it is open.
        let done = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut size,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { pid: credentials.pid.unsigned_abs(), user: credentials.uid })
    }
}
