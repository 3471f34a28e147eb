//! The little of HTTP that an inspector needs: one request without a body, and an answer whose length is known.

use std::io::{Read, Write};

use super::connection::{Connection, failure};
use crate::record::agent::Failure;

/// The longest head of an answer.
const LONGEST_HEAD: usize = 8 << 10;

/// The longest body.
const LONGEST_BODY: usize = 64 << 10;

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status, such as 200.
    pub status: u16,
    /// The length of the body, if the head has it.
    pub length: Option<usize>,
}

/// Sends a request for a path, with more lines for the head, each ended by `\r\n`. Returns the head of the answer.
///
/// What follows the head is not read.
pub fn get(connection: &mut Connection<'_>, path: &str, more: &str) -> Result<Head, Failure> {
    // An inspector answers only those who know it by its address, or by this name.
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    connection.write_all(request.as_bytes()).map_err(failure)?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD {
            return Err(no_answer());
        }
        if connection.read(&mut byte).map_err(failure)? == 0 {
            return Err(Failure::Refused("it closed the connection without an answer".into()));
        }
        head.extend(byte);
    }
    Head::parse(&head).ok_or_else(no_answer)
}

/// Reads the body of an answer.
pub fn body(connection: &mut Connection<'_>, head: Head) -> Result<Vec<u8>, Failure> {
    let length = head.length.filter(|&length| length <= LONGEST_BODY);
    let mut body = vec![0; length.ok_or_else(no_answer)?];
    connection.read_exact(&mut body).map_err(failure)?;
    Ok(body)
}

/// The failure for what is no answer of an inspector.
pub fn no_answer() -> Failure {
    Failure::Refused("its answer is not that of an inspector".into())
}

impl Head {
    /// Parses a head, up to the empty line.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let (version, rest) = lines.next()?.split_once(' ')?;
        let status = rest.split(' ').next().filter(|_| version.starts_with("HTTP/1."))?;
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        Some(Self { status: status.parse().ok()?, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_parsed() {
        let parse = |text: &str| Head::parse(text.as_bytes());
        let head = |status, length| Some(Head { status, length });
        assert_eq!(
            parse("HTTP/1.0 200 OK\r\nX: y\r\ncontent-LENGTH:  12 \r\n\r\n"),
            head(200, Some(12))
        );
        assert_eq!(parse("HTTP/1.1 101 Switching Protocols\r\n\r\n"), head(101, None));
        assert_eq!(
            parse("HTTP/1.1 302\r\nLocation: x\r\nContent-Length: -1\r\n\r\n"),
            head(302, None)
        );
        for wrong in ["", "\r\n\r\n", "HTTP/2 200 OK\r\n", "HTTP/1.1\r\n", "HTTP/1.1 x OK\r\n"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(Head::parse(b"HTTP/1.1 200 \xff\r\n\r\n"), None);
    }
}
