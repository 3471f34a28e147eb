//! Requests by HTTP/1.1, as a browser sends them that asks for JSON.

use std::io::{self, Read};

/// The size of a request line with its headers.
const LARGEST_HEAD: usize = 16 << 10;
/// The size of a question.
const LARGEST_BODY: usize = 64 << 10;

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

impl Request {
    /// Reads a request; `None` if it is none that is understood.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
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
        Request::read(&mut Slow(bytes, at_once)).expect("memory")
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
