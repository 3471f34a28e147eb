//! Why a JVM does not answer.

use std::io;

use rustix::io::Errno;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There was no answer before the deadline.
    #[error("it does not respond")]
    NotAnswering,
    /// The answer is no longer needed.
    #[error("interrupted")]
    Stopped,
    /// There is no answer, for this reason.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}
