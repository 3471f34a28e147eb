//! The connections of clients.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use code_agent::access::Peer;
use code_agent::protocol::LONGEST_REQUEST;
use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;

/// The most connections at a time, and the most of one user.
const MOST: usize = 256;
const MOST_OF_USER: usize = 32;

/// The most bytes of an answer that wait for the client. A client that does not read its answers gets no more of them.
const MOST_WAITING: usize = 16 << 20;

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    peer: Peer,
    /// The beginning of a request.
    received: Vec<u8>,
    /// What is to be sent.
    waiting: Vec<u8>,
    /// Whether no more requests are read.
    is_over: bool,
    /// Since when its first request waits for what is being read.
    deferred: Option<Instant>,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Who asks.
    pub peer: Peer,
    /// For how long the request has waited for what is being read; zero when it is first seen.
    pub waited: Duration,
}

/// The connections.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

impl Clients {
    /// Accepts those who wait. `sees_all` is whether a user may ask about all processes. Returns the number of those who were refused,
    /// because there are too many.
    pub fn accept(&mut self, listener: &UnixListener, sees_all: impl Fn(u32) -> bool) -> u64 {
        let mut refused = 0;
        while let Ok((stream, _)) = listener.accept() {
            let Ok(credentials) = socket_peercred(&stream) else { continue };
            let user = credentials.uid.as_raw();
            let of_user = self.0.iter().filter(|client| client.peer.user == user).count();
            if self.0.len() >= MOST || (of_user >= MOST_OF_USER && user != 0) {
                refused += 1;
                continue;
            }
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let peer = Peer { user, sees_all: sees_all(user) };
            self.0.push(Client {
                stream,
                peer,
                received: Vec::new(),
                waiting: Vec::new(),
                is_over: false,
                deferred: None,
            });
        }
        refused
    }

    /// Whether a request waits for what is being read.
    pub fn is_deferred(&self) -> bool {
        self.0.iter().any(|client| client.deferred.is_some())
    }

    /// What to wait for.
    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let clients = self.0.iter().filter(|client| client.deferred.is_none());
        clients.map(|client| {
            let mut flags = PollFlags::empty();
            // While it does not read its answers, its requests wait.
            if client.waiting.is_empty() {
                flags |= PollFlags::IN;
            } else {
                flags |= PollFlags::OUT;
            }
            (client.stream.as_fd(), flags)
        })
    }

    /// Reads requests, and sends what `answer` makes of each line. If it makes nothing of it, it gets the line again the next time.
    pub fn serve(&mut self, mut answer: impl FnMut(Asked, &[u8]) -> Option<Vec<u8>>) {
        self.0.retain_mut(|client| client.serve(&mut answer).is_ok());
    }
}

impl Client {
    /// # Errors
    /// If the connection is over.
    fn serve(
        &mut self,
        answer: &mut impl FnMut(Asked, &[u8]) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        self.send()?;
        if self.waiting.is_empty() {
            self.receive()?;
        }
        while self.waiting.is_empty() && self.has_request() {
            self.answer(answer);
            self.send()?;
            if self.deferred.is_some() {
                return Ok(());
            }
        }
        let is_done = self.is_over && self.waiting.is_empty();
        if is_done { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Whether there is a whole request, or more than a request may have.
    fn has_request(&self) -> bool {
        self.received.len() > LONGEST_REQUEST || self.received.contains(&b'\n')
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut room = [0; 1 << 16];
        while !self.is_over && self.received.len() <= LONGEST_REQUEST {
            match self.stream.read(&mut room) {
                Ok(0) => self.is_over = true,
                Ok(count) => self.received.extend_from_slice(room.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(&mut self, answer: &mut impl FnMut(Asked, &[u8]) -> Option<Vec<u8>>) {
        let mut done = 0;
        let mut deferred = self.deferred.take();
        let peer = self.peer;
        let asked = |deferred: Option<Instant>| {
            let waited = deferred.map_or(Duration::ZERO, |since| since.elapsed());
            Asked { peer, waited }
        };
        while let Some(rest) = self.received.get(done..)
            && let Some(length) = rest.iter().position(|byte| *byte == b'\n')
            && self.waiting.len() < MOST_WAITING
        {
            if let Some(line) = rest.get(..length).filter(|line| !line.trim_ascii().is_empty()) {
                let Some(mut answered) = answer(asked(deferred), line) else {
                    self.deferred = deferred.or_else(|| Some(Instant::now()));
                    break;
                };
                self.waiting.append(&mut answered);
                deferred = None;
            }
            done += length + 1;
        }
        self.received.drain(..done);
        if self.received.len() > LONGEST_REQUEST && !self.received.contains(&b'\n') {
            // There is no telling where the next request begins.
            self.waiting.extend(answer(asked(None), &self.received).unwrap_or_default());
            self.received.clear();
            self.is_over = true;
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest) = self.waiting.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.drain(..sent);
        Ok(())
    }
}
