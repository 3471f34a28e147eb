//! A connection to a process, with a deadline and a limit on what it may send.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::record::agent::{Failure, Wait};

/// The most bytes that are received through one connection. Answers have some hundred.
const MOST: usize = 1 << 20;

/// A connection. Reading and writing fail with a [`Failure`] inside of the error.
#[derive(Debug)]
pub struct Connection<'w> {
    socket: OwnedFd,
    wait: &'w Wait<'w>,
    /// How many bytes may still be received.
    left: usize,
}

impl<'w> Connection<'w> {
    /// Connects.
    pub fn to(address: SocketAddr, wait: &'w Wait<'w>) -> Result<Self, Failure> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS) => {
                wait.ready(&socket, PollFlags::OUT)?;
                socket_error(&socket)??;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self { socket, wait, left: MOST })
    }

    /// Calls the system until it need not be waited for.
    fn when_ready<T>(
        &self,
        events: PollFlags,
        mut call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> io::Result<T> {
        loop {
            self.wait.ready(&self.socket, events).map_err(io::Error::other)?;
            match call(&self.socket) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}

impl Read for Connection<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(Failure::Refused(format!(
                "it sends more than {} KiB",
                MOST >> 10
            ))));
        }
        let length = room.len().min(self.left);
        let room = room.get_mut(..length).unwrap_or_default();
        let (count, _) =
            self.when_ready(PollFlags::IN, |socket| recv(socket, &mut *room, RecvFlags::empty()))?;
        self.left = self.left.saturating_sub(count);
        Ok(count)
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.when_ready(PollFlags::OUT, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The cause of an error of a connection.
pub fn failure(error: io::Error) -> Failure {
    error.downcast::<Failure>().unwrap_or_else(Failure::System)
}
