//! Positions in source files.

use crate::id::StringId;

/// A line and column, and the file that they are of. They are kept together up to the frame, as a runtime's script and the source that it was compiled from have
/// different lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The file; empty if it is not known.
    pub file: StringId,
    /// The line from 1; 0 if it is not known.
    pub line: u32,
    /// The column from 1; 0 if it is not known.
    pub column: u32,
}
