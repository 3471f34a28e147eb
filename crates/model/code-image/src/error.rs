//! Why an image could not be written.

use std::fmt;
use std::ops::Range;

/// Why an image could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An allocation was refused.
    Memory(fallible::Refused),
    /// The output failed.
    Io(std::io::Error),
    /// The arena is empty, or its end is before its start.
    EmptySpan(Range<u64>),
    /// The part of a code to show is outside the arena, or outside the code.
    Outside {
        /// The part to show.
        visible: Range<u64>,
        /// The arena or the code.
        within: Range<u64>,
    },
    /// Codes were added out of order, or overlap.
    Order {
        /// Start of the part to show.
        start: u64,
        /// End of the code added before.
        previous_end: u64,
    },
    /// The position for the unwind tables is not usable: not on a page boundary, not above the text, or too far from
    /// it (more than 2 GiB).
    Placement {
        /// The address chosen.
        address: u64,
        /// Addresses of the text.
        text: Range<u64>,
    },
    /// The format has no number for the machine.
    Machine(u16),
    /// Something exceeds what the file format can express.
    TooLarge {
        /// What is too large: a section or the arena.
        what: &'static str,
        /// Its size or its largest address.
        size: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(refused) => refused.fmt(f),
            Self::Io(error) => write!(f, "cannot write the image: {error}"),
            Self::EmptySpan(span) => {
                write!(f, "the arena {:#x}..{:#x} is empty", span.start, span.end)
            }
            Self::Outside { visible, within } => write!(
                f,
                "the part {:#x}..{:#x} to show lies outside of {:#x}..{:#x}",
                visible.start, visible.end, within.start, within.end
            ),
            Self::Order { start, previous_end } => write!(
                f,
                "code that begins at {start:#x} was added after code that ends at {previous_end:#x}"
            ),
            Self::Placement { address, text } => write!(
                f,
                "unwind tables cannot lie at {address:#x}, with text at {:#x}..{:#x}",
                text.start, text.end
            ),
            Self::Machine(machine) => {
                write!(f, "this format does not support ELF machine {machine}")
            }
            Self::TooLarge { what, size } => {
                write!(f, "{what} is too large ({size:#x}) for this format")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(refused) => refused.source(),
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<fallible::Refused> for Error {
    fn from(refused: fallible::Refused) -> Self {
        Self::Memory(refused)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
