//! As much of HTTP/1.1 as a browser needs that asks for JSON.
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

/// How long a request may take to arrive, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// The size of a request line with its headers.
const LARGEST_HEAD: usize = 16 << 10;
/// The size of a question.
const LARGEST_BODY: usize = 64 << 10;
/// How many connections there may be at a time; browsers open six.
const MOST_CONNECTIONS: usize = 64;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// For a file.
    Get,
    /// A question.
    Post,
    /// Whether a page may ask.
    Options,
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub method: Method,
    /// The path, as it was sent, without parameters.
    pub path: String,
    /// The host that the client took this server for.
    pub host: String,
    /// The question.
    pub body: Vec<u8>,
}

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
    let answer = match read(&mut Timed { stream: &stream, until: Instant::now() + PATIENCE })? {
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

/// Reads a request; `None` if it is none that is understood.
fn read(from: &mut impl Read) -> io::Result<Option<Request>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut buffer = [0; 4096];
    // Bytes may arrive one at a time: what was searched is not searched again.
    let mut searched = 0_usize;
    let head = loop {
        let new = bytes.get(searched..).unwrap_or_default();
        if let Some(end) = new.windows(4).position(|part| part == b"\r\n\r\n") {
            break searched.saturating_add(end);
        }
        searched = bytes.len().saturating_sub(3);
        let count = from.read(&mut buffer)?;
        if count == 0 || bytes.len() > LARGEST_HEAD {
            return Ok(None);
        }
        bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
    };
    let (head, rest) = bytes.split_at(head);
    let mut body = rest.get(4..).unwrap_or_default().to_vec();
    let Some((mut request, length)) = std::str::from_utf8(head).ok().and_then(parse) else {
        return Ok(None);
    };
    if length > LARGEST_BODY {
        return Ok(None);
    }
    while body.len() < length {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        body.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    body.truncate(length);
    request.body = body;
    Ok(Some(request))
}

/// The request line and the headers; how long the body is.
fn parse(head: &str) -> Option<(Request, usize)> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let method = match words.next()? {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "OPTIONS" => Method::Options,
        _ => return None,
    };
    let target = words.next()?;
    let path = target.split(['?', '#']).next()?.to_owned();
    if !words.next()?.starts_with("HTTP/1.") || words.next().is_some() || !path.starts_with('/') {
        return None;
    }
    let (mut host, mut length) = (String::new(), 0);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "host" => host = value.to_ascii_lowercase(),
            "content-length" => length = value.parse().ok()?,
            // The end of the body would be elsewhere.
            "transfer-encoding" => return None,
            _ => {}
        }
    }
    Some((Request { method, path, host, body: Vec::new() }, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(buffer.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn read_all(bytes: &[u8], at_once: usize) -> Option<Request> {
        read(&mut Slow(bytes, at_once)).expect("memory")
    }

    #[test]
    fn a_question_is_read_however_it_arrives() {
        let sent =
            b"POST /t/asm/v1?x HTTP/1.1\r\nHOST: 127.0.0.1:80 \r\ncontent-length: 3\r\n\r\n{} more";
        for at_once in [1, 2, 7, 4096] {
            let request = read_all(sent, at_once).expect("a request");
            assert_eq!((request.method, request.path.as_str()), (Method::Post, "/t/asm/v1"));
            assert_eq!(
                (request.host.as_str(), request.body.as_slice()),
                ("127.0.0.1:80", &b"{} "[..])
            );
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let long = [b"GET /".to_vec(), vec![b'x'; LARGEST_HEAD * 2], b"\r\n\r\n".to_vec()].concat();
        let large = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", usize::MAX);
        let requests: [&[u8]; 9] = [
            b"",
            b"\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET x HTTP/1.1\r\n\r\n",
            b"DELETE / HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            &long,
            large.as_bytes(),
        ];
        for request in requests {
            assert_eq!(read_all(request, 1000), None, "{:?}", String::from_utf8_lossy(request));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), mark in 0usize..200) {
            let mut bytes = [b"POST / HTTP/1.1\r\nContent-Length: 4\r\n".as_slice(), &bytes].concat();
            bytes.splice(mark.min(bytes.len()).., *b"\r\n\r\n");
            let _ = read_all(&bytes, 64);
        }
    }
}
