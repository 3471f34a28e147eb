//! Why an image could not be written.

use std::ops::Range;

/// Why an image could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The output failed.
    #[error("cannot write the image: {0}")]
    Io(#[from] std::io::Error),
    /// The arena is empty or upside down.
    #[error("the arena {:#x}..{:#x} is empty", .0.start, .0.end)]
    EmptySpan(Range<u64>),
    /// A code shows something outside of the arena, or outside of itself.
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
    /// Codes came out of order, or overlap.
    #[error("code to show from {start:#x} on was added after code up to {previous_end:#x}")]
    Order {
        /// Start of the part to show.
        start: u64,
        /// End of what was added before.
        previous_end: u64,
    },
    /// The place for the unwind tables does not serve: not on a page boundary, not above the text,
    /// or too far from it (more than 2 GiB).
    #[error("unwind tables cannot lie at {address:#x}, with text at {:#x}..{:#x}", .text.start, .text.end)]
    Placement {
        /// The address chosen.
        address: u64,
        /// Addresses of the text.
        text: Range<u64>,
    },
    /// The format has no number for the machine.
    #[error("this format is not for the ELF machine {0}")]
    Machine(u16),
    /// Something exceeds what the file format can express.
    #[error("{what} is too large ({size:#x}) for this format")]
    TooLarge {
        /// What it is: a section or the arena.
        what: &'static str,
        /// Its size or its largest address.
        size: u64,
    },
}
