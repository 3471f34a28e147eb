//! Why a line could not be read.

/// A line that cannot be read, and its position. The lines behind it are still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} (offset {offset:#x}): {cause}")]
pub struct Error {
    /// Offset of the line's first byte in the file.
    pub offset: u64,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// A field is missing or not of its type.
    #[error("the {field} is missing or not valid")]
    Field {
        /// The name of the field.
        field: &'static str,
    },
    /// The file ends within the line: V8 was killed, or still writes.
    #[error("the file ends within the line")]
    CutOff,
    /// The line is longer than [`LONGEST_LINE`](crate::LONGEST_LINE).
    #[error("the line has more than {} bytes", crate::LONGEST_LINE)]
    TooLong,
}
