//! The agent's counts for Prometheus: HTTP on a loopback port.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::PollFlags;

use crate::foreign::processor_time;
use crate::{Error, Result};

/// The most connections at a time. The oldest gives way: one that says nothing keeps no others out.
const MOST: usize = 16;
/// The most bytes of a request.
const LONGEST: usize = 8 << 10;

/// Listens for Prometheus.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The answer, once there is a request.
    answer: Option<Vec<u8>>,
}

impl Metrics {
    /// Listens on a loopback address: who asks on a port is not known, so that others must not reach it.
    ///
    /// # Errors
    /// If the address is none of loopback, or cannot be listened on.
    pub fn listen(address: SocketAddr) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(Error::Usage(format!(
                "--metrics {address}: give an address of loopback, such as 127.0.0.1:{}",
                address.port()
            )));
        }
        let failed = |error| Error::Refused(format!("--metrics {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, connections: Vec::new() })
    }

    /// Where it listens, with the port that the system has chosen for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// What to wait for.
    pub fn events(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let connections = self.connections.iter().map(|connection| {
            let is_asked = connection.answer.is_some();
            (connection.stream.as_fd(), if is_asked { PollFlags::OUT } else { PollFlags::IN })
        });
        std::iter::once((self.listener.as_fd(), PollFlags::IN)).chain(connections)
    }

    /// Accepts connections, and answers those that have asked with `text`.
    pub fn serve(&mut self, text: impl Fn() -> String) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.connections.push(Connection { stream, received: Vec::new(), answer: None });
            }
        }
        let excess = self.connections.len().saturating_sub(MOST);
        self.connections.drain(..excess);
        self.connections.retain_mut(|connection| connection.serve(&text).is_ok());
    }
}

impl Connection {
    /// # Errors
    /// If the connection is over.
    fn serve(&mut self, text: &impl Fn() -> String) -> io::Result<()> {
        if self.answer.is_none() {
            let mut room = [0; 1 << 10];
            loop {
                match self.stream.read(&mut room) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => {
                        self.received.extend_from_slice(room.get(..count).unwrap_or_default())
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                if self.received.len() > LONGEST {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            if !self.received.windows(4).any(|end| end == b"\r\n\r\n") {
                return Ok(());
            }
            self.answer = Some(response(&self.received, text));
        }
        let Some(answer) = &mut self.answer else { return Ok(()) };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(count) => drop(answer.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// What this process uses, under the names that Prometheus gives to it.
pub fn of_this_process() -> String {
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<usize> = statm.split_ascii_whitespace().nth(1).and_then(|it| it.parse().ok());
    let resident = pages.unwrap_or(0).saturating_mul(rustix::param::page_size());
    let used = processor_time(std::process::id()).unwrap_or(0);
    let (seconds, rest) = (used / 1_000_000_000, used % 1_000_000_000);
    format!(
        "# TYPE process_open_fds gauge\nprocess_open_fds {descriptors}\n\
         # TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {resident}\n\
         # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {seconds}.{rest:09}\n"
    )
}

/// Whether the request is to an address of loopback. A page in a browser of this machine can send requests to the name of its own
/// site that leads here, and would read the answer.
fn is_for_this_machine(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request);
    let headers = request.lines().skip(1).take_while(|line| !line.is_empty());
    let headers = headers.filter_map(|line| line.split_once(':'));
    let mut hosts = headers.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    hosts.all(|(_, host)| {
        let host = host.trim();
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback())
    })
}

fn response(request: &[u8], text: &impl Fn() -> String) -> Vec<u8> {
    let (status, body) = match request {
        _ if !is_for_this_machine(request) => {
            ("403 Forbidden", "only requests to localhost are answered\n".to_owned())
        }
        _ if request.starts_with(b"GET /metrics ") => ("200 OK", text()),
        _ if request.starts_with(b"GET ") => {
            ("404 Not Found", "the metrics are at /metrics\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_loopback_are_answered() {
        let status = |host: &str| {
            let request = format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\n{host}\r\n");
            let answer = response(request.as_bytes(), &|| "text".to_owned());
            String::from_utf8(answer).unwrap()[9..12].to_owned()
        };
        for host in ["127.0.0.1:9464", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:9464", "::1"]
        {
            assert_eq!(status(&format!("Host: {host}\r\n")), "200", "{host}");
        }
        // Of HTTP/1.0.
        assert_eq!(status(""), "200");
        for host in ["example.org", "example.org:9464", "127.0.0.1.example.org", "10.0.0.1", ""] {
            assert_eq!(status(&format!("hOST:{host}\r\n")), "403", "{host}");
        }
        assert_eq!(status("Host: localhost\r\nHost: example.org\r\n"), "403");
    }
}
