//! Why a profile could not be read.

use std::io;

/// Why a profile was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading it failed.
    #[error("cannot read it: {0}")]
    Read(io::Error),
    /// Writing the other one failed.
    #[error("{0}")]
    Write(io::Error),
    /// It is not as the format says.
    #[error("line {line} (offset {offset:#x}): {cause}")]
    Damaged {
        /// Offset of the line's first byte.
        offset: u64,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: Cause,
    },
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// It begins like none that there is.
    #[error("the line is of no kind that a profile has")]
    NoSuchLine,
    /// A number is missing, is none, or does not fit in 64 bits.
    #[error("a number is missing or malformed")]
    NoNumber,
    /// A name is referred to that was not said before.
    #[error("the name ({0}) was not said before")]
    UnknownName(u64),
    /// `positions:` says more columns than there are.
    #[error("the line says too many positions")]
    TooManyColumns,
    /// `events:` says more than any tool counts.
    #[error("the line says too many events")]
    TooManyEvents,
    /// A line of costs stands where no function was said.
    #[error("costs stand before any function")]
    NoFunction,
    /// What follows `calls=` is no line of costs.
    #[error("a call is not followed by its costs")]
    NoCallCosts,
    /// The line is longer than any reader should have to hold.
    #[error("the line is longer than 16 MiB")]
    TooLong,
    /// Nothing in the file is a profile's.
    #[error("this is no profile of callgrind's: it says no events")]
    NoEvents,
}
