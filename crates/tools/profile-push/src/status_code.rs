//! Status codes of gRPC.

use std::fmt;

/// A status code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrpcCode(pub u32);

/// The names, in the order of their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl GrpcCode {
    /// Done.
    pub const OK: Self = Self(0);
    /// No other code fits.
    pub const UNKNOWN: Self = Self(2);
    /// The credentials do not allow this.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// There is no room, or the message is too long.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// It is beyond what there is; a message is too long, for receivers made with tonic.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// The server has no such service.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// The server is broken.
    pub const INTERNAL: Self = Self(13);
    /// The server cannot be used now.
    pub const UNAVAILABLE: Self = Self(14);
    /// There are no credentials.
    pub const UNAUTHENTICATED: Self = Self(16);

    /// Whether OTLP asks to try again: CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE and DATA_LOSS.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self.0, 1 | 4 | 10 | 11 | 14 | 15)
    }

    /// What an answer without a status of gRPC means, by its status of HTTP.
    #[must_use]
    pub const fn of_http(status: u16) -> Self {
        match status {
            400 => Self::INTERNAL,
            401 => Self::UNAUTHENTICATED,
            403 => Self::PERMISSION_DENIED,
            404 => Self::UNIMPLEMENTED,
            429 | 502..=504 => Self::UNAVAILABLE,
            _ => Self::UNKNOWN,
        }
    }
}

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.0).ok().and_then(|place| NAMES.get(place));
        match name {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}
