//! Why a process does not answer.

use std::io;

use rustix::io::Errno;

/// The longest part of an answer that is quoted in a message.
const LONGEST_CAUSE: usize = 300;

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

/// A foreign text, shortened and without anything that controls a terminal.
pub fn plain(text: &str) -> String {
    let mut plain: String = text.chars().flat_map(char::escape_debug).take(LONGEST_CAUSE).collect();
    if text.len() > LONGEST_CAUSE {
        plain.push('…');
    }
    // Quotes and backslashes are harmless where nothing is in quotes.
    plain.replace("\\'", "'").replace("\\\"", "\"")
}
