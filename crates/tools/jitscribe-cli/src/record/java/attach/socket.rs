//! Sends one request to the socket of a JVM and reads the answer.
//!
//! The process may not be a JVM, and may do anything with its socket and its `/tmp`. Therefore the file is opened once, without
//! following links and without blocking. We connect to exactly that file, and the kernel reports which process listens there.
//! Nothing is sent to any process other than the intended one.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};

use super::peer::Peer;
use super::protocol::{Answer, Incoming, Request};
use crate::record::agent::{Failure, PAUSE, Wait};

/// Opens the socket's file in a folder, without connecting; `None` if there is none.
///
/// # Errors
/// If the file is not a socket, or belongs to another user.
pub fn find(folder: impl AsFd, name: &str, user: u32) -> Result<Option<OwnedFd>, Failure> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let status = fstat(&file)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Socket {
        return Err(Failure::Refused(format!("its /tmp/{name} is not a socket")));
    }
    if status.st_uid != user {
        return Err(Failure::Refused(format!("its /tmp/{name} belongs to another user")));
    }
    Ok(Some(file))
}

/// Sends a request to the process that listens on a socket's file, if that is `peer`.
pub fn ask(
    file: &OwnedFd,
    peer: Peer,
    request: &Request,
    wait: &Wait<'_>,
) -> Result<Answer, Failure> {
    let socket = connected(file, wait)?;
    if Peer::of(&socket)? != peer {
        return Err(Failure::Refused("another process listens on its socket".into()));
    }
    let mut left = request.bytes();
    while !left.is_empty() {
        wait.ready(&socket, PollFlags::OUT)?;
        match send(&socket, left, SendFlags::NOSIGNAL) {
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The answer received so far may contain the reason.
            Err(Errno::PIPE | Errno::CONNRESET) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut incoming = Incoming::default();
    let mut room = [0; 4096];
    loop {
        wait.ready(&socket, PollFlags::IN)?;
        match recv(&socket, &mut room, RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return incoming.finish(),
            Ok((count, _)) => incoming.push(room.get(..count).unwrap_or_default())?,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Connects to a socket's file.
fn connected(file: &OwnedFd, wait: &Wait<'_>) -> Result<OwnedFd, Failure> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Connect through the descriptor, because another file may have the name by now.
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            // The backlog of the socket is full.
            Err(Errno::AGAIN) => wait.pause(PAUSE)?,
            Err(Errno::INTR) => {}
            Err(Errno::CONNREFUSED) => {
                return Err(Failure::Refused("no process listens on its socket".into()));
            }
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests;
