//! Serves requests by HTTP/1.1, of which it knows as much as a browser needs that asks for JSON.
//!
//! Any page and any program of this machine can connect. Each connection has a thread, which reads one request within a limited time and size;
//! the number of connections is limited too: beyond it, the oldest of those whose request is not there yet makes way.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use profile_export::firefox::Request;

/// How long a request may take to arrive, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections there may be at a time; browsers open six.
const MOST_CONNECTIONS: usize = 64;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    body: Arc<[u8]>,
    is_gzip: bool,
}

impl Answer {
    /// Without content.
    pub fn status(status: u16) -> Self {
        Self { status, body: Arc::default(), is_gzip: false }
    }

    /// With JSON.
    pub fn json(body: Vec<u8>) -> Self {
        Self { status: 200, body: body.into(), is_gzip: false }
    }

    /// With JSON that is compressed.
    pub fn gzipped_json(body: Arc<[u8]>) -> Self {
        Self { status: 200, body, is_gzip: true }
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            204 => "No Content",
            400 => "Bad Request",
            403 => "Forbidden",
            _ => "Not Found",
        };
        let length = self.body.len();
        let encoding = if self.is_gzip { "Content-Encoding: gzip\r\n" } else { "" };
        write!(
            to,
            "HTTP/1.1 {} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{encoding}\
             Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: GET, POST, OPTIONS\r\n\
             Access-Control-Allow-Headers: *\r\nAccess-Control-Allow-Private-Network: true\r\n\
             X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
            self.status
        )?;
        to.write_all(&self.body)?;
        to.flush()
    }
}

/// The connections whose requests are not there yet, the oldest first, each with a number.
#[derive(Debug, Default)]
struct Waiting(Mutex<VecDeque<(u64, TcpStream)>>);

impl Waiting {
    fn add(&self, number: u64, stream: TcpStream) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((number, stream));
    }

    fn remove(&self, number: u64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(other, _)| *other != number);
    }

    /// Closes the oldest one. `false` if there is none.
    fn close_oldest(&self) -> bool {
        let oldest = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        // Its thread, which reads from it, ends.
        oldest.is_some_and(|(_, stream)| stream.shutdown(Shutdown::Both).is_ok())
    }
}

/// Accepts connections in threads of their own. Each request that arrives comes with where to send its answer.
pub fn listen(listener: TcpListener) -> Receiver<(Request, SyncSender<Answer>)> {
    let (requests, received) = mpsc::channel();
    let open = Arc::new(AtomicUsize::new(0));
    let waiting = Arc::new(Waiting::default());
    thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let Ok(stream) = stream else {
                // Too many open files: others will be closed.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS && !waiting.close_oldest() {
                continue;
            }
            let Ok(second) = stream.try_clone() else { continue };
            waiting.add(number, second);
            open.fetch_add(1, Ordering::Relaxed);
            let (requests, open) = (requests.clone(), Arc::clone(&open));
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                // A client that stays away gets no answer.
                let _ = converse(stream, &requests, || waiting.remove(number));
                waiting.remove(number);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    received
}

fn converse(
    mut stream: TcpStream,
    requests: &Sender<(Request, SyncSender<Answer>)>,
    has_come: impl FnOnce(),
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&mut Timed { stream: &stream, until: Instant::now() + PATIENCE })?;
    has_come();
    let answer = match request {
        Some(request) => {
            let (reply, answer) = mpsc::sync_channel(1);
            if requests.send((request, reply)).is_err() {
                return Ok(());
            }
            let Ok(answer) = answer.recv() else { return Ok(()) };
            answer
        }
        None => Answer::status(400),
    };
    answer.write(&mut stream)?;
    stream.shutdown(Shutdown::Write)
}

/// A stream that is read until some time, however slowly bytes arrive.
struct Timed<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn connections_that_ask_nothing_make_way() {
        let begun = Instant::now();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let requests = listen(listener);
        let half_open: Vec<TcpStream> = (0..2 * MOST_CONNECTIONS)
            .map(|_| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(b"GET /half HTTP/1.1\r\n").unwrap();
                stream
            })
            .collect();
        let answering = thread::spawn(move || {
            let (request, reply) = requests.recv().unwrap();
            reply.send(Answer::status(204)).unwrap();
            request.path
        });
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(b"GET /whole HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        assert_eq!(answering.join().unwrap(), "/whole");
        half_open.last().unwrap().set_nonblocking(true).unwrap();
        let newest = half_open.last().unwrap().peek(&mut [0]);
        // Unless their time was over by then, they were closed to make way, the oldest first.
        let waits = newest.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        assert!(waits || begun.elapsed() > PATIENCE);
    }
}
