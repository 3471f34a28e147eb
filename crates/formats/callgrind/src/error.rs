//! Why a profile could not be read.

use std::io;

/// Why a profile was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading it failed.
    #[error("cannot read the profile: {0}")]
    Read(io::Error),
    /// Writing the copy failed.
    #[error("{0}")]
    Write(io::Error),
    /// The profile violates the format.
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
    /// It does not begin like any valid line.
    #[error("not a valid line of a profile")]
    NoSuchLine,
    /// A number is missing, malformed, or does not fit in 64 bits.
    #[error("a number is missing or malformed")]
    NoNumber,
    /// A line refers to a name by a number that was not defined before.
    #[error("the name ({0}) was not defined before")]
    UnknownName(u64),
    /// `positions:` lists too many columns.
    #[error("the line lists too many positions")]
    TooManyColumns,
    /// `events:` lists more events than any tool counts.
    #[error("the line lists too many events")]
    TooManyEvents,
    /// A cost line before any function.
    #[error("cost line before any function")]
    NoFunction,
    /// The line behind `calls=` is not a cost line.
    #[error("a call is not followed by its cost line")]
    NoCallCosts,
    /// The line is longer than a reader should have to hold.
    #[error("the line is longer than 16 MiB")]
    TooLong,
    /// A name is longer than a reader should have to hold, after expansion of the names that it refers to by number.
    #[error("the name is longer than 256 KiB, including the names that it refers to by number")]
    NameTooLong,
    /// Names composed of other names take more memory than a reader should have to provide.
    #[error("the names composed of other names are longer than 256 MiB in total")]
    NamesTooLong,
    /// The file has no line of a profile.
    #[error("not a callgrind profile: it lists no events")]
    NoEvents,
}
