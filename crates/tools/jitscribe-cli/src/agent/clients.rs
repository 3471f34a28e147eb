//! The connections of clients.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use code_agent::access::Peer;
use code_agent::protocol::LONGEST_REQUEST;
use rustix::event::PollFlags;
use rustix::net::sockopt::socket_peercred;

/// How many connections there may be at a time.
#[derive(Clone, Copy, Debug)]
struct Limits {
    all: usize,
    /// Of users who may only ask about their own processes. The rest is for those who may ask about all.
    others: usize,
    /// Of one user.
    user: usize,
    /// A connection that has asked nothing for so long makes way for a new one, where there are too many of others.
    idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { all: 256, others: 192, user: 32, idle: Duration::from_secs(2) }
    }
}

/// A request is sent at once. One whose end has not come by then never comes.
const LONGEST_RECEIVING: Duration = Duration::from_secs(30);

/// The most bytes of an answer that wait for the client. A client that does not read its answers gets no more of them.
const MOST_WAITING: usize = 16 << 20;

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    peer: Peer,
    /// The beginning of a request.
    received: Vec<u8>,
    /// What is to be sent, of which this much has been.
    waiting: Vec<u8>,
    sent: usize,
    /// Whether no more requests are read.
    is_over: bool,
    /// Since when its first request waits for what is being read.
    deferred: Option<Instant>,
    /// When it connected, or last sent a whole request.
    asked: Instant,
    /// Since when the end of a request is missing.
    receiving: Option<Instant>,
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
pub struct Clients {
    all: Vec<Client>,
    limits: Limits,
}

impl Clients {
    /// Accepts those who wait. `sees_all` is whether a user may ask about all processes. Returns the number of those who were refused,
    /// because there are too many, or closed for them.
    pub fn accept(&mut self, listener: &UnixListener, sees_all: impl Fn(u32) -> bool) -> u64 {
        let mut refused = 0;
        while let Ok((stream, _)) = listener.accept() {
            let Ok(credentials) = socket_peercred(&stream) else { continue };
            let user = credentials.uid.as_raw();
            let sees_all = sees_all(user);
            let of_user = self.all.iter().filter(|client| client.peer.user == user).count();
            let others = self.all.iter().filter(|client| !client.peer.sees_all).count();
            let Limits { all, others: most_others, user: most_of_user, .. } = self.limits;
            let is_full = self.all.len() >= all || !sees_all && others >= most_others;
            let is_too_many = of_user >= most_of_user && user != 0;
            if is_too_many || is_full {
                refused += 1;
            }
            if is_too_many || is_full && !self.close_idle() {
                continue;
            }
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let peer = Peer { user, sees_all };
            self.all.push(Client {
                stream,
                peer,
                received: Vec::new(),
                waiting: Vec::new(),
                sent: 0,
                is_over: false,
                deferred: None,
                asked: Instant::now(),
                receiving: None,
            });
        }
        refused
    }

    /// Closes the connection of the others that has asked nothing for the longest time. `false` if all have asked lately.
    fn close_idle(&mut self) -> bool {
        let others = self.all.iter().enumerate().filter(|(_, client)| !client.peer.sees_all);
        let idle = others.min_by_key(|(_, client)| client.asked);
        let Some((number, _)) =
            idle.filter(|(_, client)| client.asked.elapsed() >= self.limits.idle)
        else {
            return false;
        };
        self.all.swap_remove(number);
        true
    }

    /// Whether a request waits for what is being read.
    pub fn is_deferred(&self) -> bool {
        self.all.iter().any(|client| client.deferred.is_some())
    }

    /// What to wait for.
    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let clients = self.all.iter().filter(|client| client.deferred.is_none());
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
        self.all.retain_mut(|client| client.serve(&mut answer).is_ok());
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
        if self.received.is_empty() || self.has_request() {
            self.receiving = None;
        } else if self.receiving.get_or_insert_with(Instant::now).elapsed() >= LONGEST_RECEIVING {
            return Err(io::ErrorKind::TimedOut.into());
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
            self.asked = Instant::now();
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
        while let Some(rest) = self.waiting.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // A large answer's memory is not kept for the next one.
        self.waiting = Vec::new();
        self.sent = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle connections of others keep neither root nor those who ask from being answered.
    #[test]
    fn idle_connections_make_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let limits = Limits { all: 6, others: 4, user: 100, idle: Duration::from_secs(3600) };
        let mut clients = Clients { all: Vec::new(), limits };
        let ask = |clients: &mut Clients, sees_all: bool| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(b"hello\n").unwrap();
            let refused = clients.accept(&listener, |_| sees_all);
            clients.serve(|_, line| Some([line, b"!\n"].concat()));
            let mut answer = [0; 7];
            let answered = stream.read_exact(&mut answer).is_ok();
            assert!(!answered || &answer == b"hello!\n");
            (stream, refused, answered)
        };
        let held: Vec<_> = (0..4).map(|_| ask(&mut clients, false)).collect();
        assert!(held.iter().all(|(_, refused, answered)| *refused == 0 && *answered));
        // All others have asked lately. Those who may ask about everything have a share of their own.
        let (_, refused, answered) = ask(&mut clients, false);
        assert_eq!((refused, answered), (1, false));
        let (_root, refused, answered) = ask(&mut clients, true);
        assert_eq!((refused, answered), (0, true));
        // The first one makes way.
        clients.limits.idle = Duration::ZERO;
        let (_new, refused, answered) = ask(&mut clients, false);
        assert_eq!((refused, answered), (1, true));
        let others = clients.all.iter().filter(|client| !client.peer.sees_all).count();
        assert_eq!((clients.all.len(), others), (5, 4));
        let (mut first, ..) = held.into_iter().next().unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "it is closed");
    }
}
