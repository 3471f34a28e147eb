//! Why an image could not be written.

use std::ops::Range;

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An allocation was refused.
    #[error(transparent)]
    Memory(#[from] fallible::Refused),
    /// The output failed.
    #[error("cannot write the image: {0}")]
    Io(#[from] std::io::Error),
    /// The arena is empty, or its end is before its start.
    #[error("the arena {:#x}..{:#x} is empty", .0.start, .0.end)]
    EmptySpan(Range<u64>),
    /// The part of a code to show is outside the arena, or outside the code.
    #[error(
        "the part {:#x}..{:#x} to show lies outside of {:#x}..{:#x}",
        .visible.start, .visible.end, .within.start, .within.end
    )]
    Outside {
        /// The part to show.
        visible: Range<u64>,
        /// The arena or the code.
        within: Range<u64>,
    },
    /// Codes were added out of order, or overlap.
    #[error("code that begins at {start:#x} was added after code that ends at {previous_end:#x}")]
    Order {
        /// Start of the part to show.
        start: u64,
        /// End of the code added before.
        previous_end: u64,
    },
    /// The position for the unwind tables is not usable: not on a page boundary, not above the text, or too far from
    /// it (more than 2 GiB).
    #[error("unwind tables cannot lie at {address:#x}, with text at {:#x}..{:#x}", .text.start, .text.end)]
    Placement {
        /// The address chosen.
        address: u64,
        /// Addresses of the text.
        text: Range<u64>,
    },
    /// The format has no number for the machine.
    #[error("this format does not support ELF machine {0}")]
    Machine(u16),
    /// Something exceeds what the file format can express.
    #[error("{what} is too large ({size:#x}) for this format")]
    TooLarge {
        /// What is too large: a section or the arena.
        what: &'static str,
        /// Its size or its largest address.
        size: u64,
    },
}
