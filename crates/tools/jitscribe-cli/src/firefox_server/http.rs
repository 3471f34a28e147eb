//! Serves requests by HTTP/1.1, of which it knows as much as a browser needs that asks for JSON.
//!
//! Any page and any program of this machine can connect. Each connection has a thread, which reads one request within a limited time and size;
//! the number of connections is limited too.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
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

/// Accepts connections in threads of their own. Each request that arrives comes with where to send its answer.
pub fn listen(listener: TcpListener) -> Receiver<(Request, SyncSender<Answer>)> {
    let (requests, received) = mpsc::channel();
    let open = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Too many open files: others will be closed.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (requests, open) = (requests.clone(), Arc::clone(&open));
            thread::spawn(move || {
                // A client that stays away gets no answer.
                let _ = converse(stream, &requests);
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    received
}

fn converse(
    mut stream: TcpStream,
    requests: &Sender<(Request, SyncSender<Answer>)>,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let answer =
        match Request::read(&mut Timed { stream: &stream, until: Instant::now() + PATIENCE })? {
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
