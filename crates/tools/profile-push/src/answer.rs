//! What a server answers, before anyone judges it.

use std::time::Duration;

use crate::status_code::GrpcCode;

/// An answer of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// Headers, and trailers behind them, with names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The content, which may be cut.
    pub content: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// The name of the host is unknown, or nothing accepts connections there.
    #[error("{host}:{port}: {cause}")]
    Connect {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The system's words.
        cause: String,
    },
    /// The certificates do not fit: neither side will think otherwise soon.
    #[error("TLS with {host}: {cause}")]
    Certificate {
        /// The host.
        host: String,
        /// What is wrong.
        cause: String,
    },
    /// The connection ended, or what came is no HTTP.
    #[error("the connection broke: {cause}")]
    Broken {
        /// What happened.
        cause: String,
    },
    /// There was no answer in time.
    #[error("no answer within {} s", limit.as_secs_f64())]
    Timeout {
        /// The time that it had.
        limit: Duration,
    },
    /// The body cannot be unpacked for a server that takes no compressed one.
    #[error("the profile cannot be unpacked: {cause}")]
    Unpack {
        /// What is wrong.
        cause: String,
    },
}

impl Answer {
    /// The last header or trailer with this name.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        let mut named = self.headers.iter().rev().filter(|(it, _)| it == name);
        named.next().map(|(_, value)| value.as_slice())
    }

    /// The status of gRPC, if there is one.
    pub(crate) fn grpc_code(&self) -> Option<GrpcCode> {
        let text = std::str::from_utf8(self.header("grpc-status")?).ok()?;
        Some(GrpcCode(text.trim().parse().unwrap_or(GrpcCode::UNKNOWN.0)))
    }
}
