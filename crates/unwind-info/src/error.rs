//! Why a description cannot be encoded.

use core::fmt::{self, Display, Formatter};

/// Why a description cannot be encoded. Rows are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A row's offset is not above that of the row before.
    RowOrder {
        /// The row's number.
        row: usize,
    },
    /// A row's offset is not within the code.
    RowOutside {
        /// The row's number.
        row: usize,
    },
    /// Instructions do not begin at this offset on this machine.
    Alignment {
        /// The offset in the code.
        offset: u32,
    },
    /// A register cannot be saved or computed from: its number is 128 or above, or it is aarch64's
    /// pseudo-register for signed return addresses (34).
    Register {
        /// The row's number.
        row: usize,
        /// The register's number.
        register: u16,
    },
    /// A row has two places for one register.
    SavedTwice {
        /// The row's number.
        row: usize,
        /// The register's number.
        register: u16,
    },
    /// The distance of a saved register from the CFA, or a negative one of the CFA from its
    /// register, is not a multiple of 8.
    Unit {
        /// The row's number.
        row: usize,
    },
    /// Only aarch64 signs return addresses.
    Signed,
    /// The code is so large, or the tables are so far away, that distances do not fit in 32 bits.
    TooFar,
    /// A ready section does not consist of CIEs and one FDE.
    Ready,
    /// A ready section was given where a single entry is to be made.
    ReadyAsEntry,
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowOrder { row } => write!(f, "unwind row {row} is not behind the one before"),
            Self::RowOutside { row } => write!(f, "unwind row {row} lies outside of the code"),
            Self::Alignment { offset } => {
                write!(f, "no instruction can begin at offset {offset}")
            }
            Self::Register { row, register } => {
                write!(f, "unwind row {row} names the impossible register {register}")
            }
            Self::SavedTwice { row, register } => {
                write!(f, "unwind row {row} has two places for register {register}")
            }
            Self::Unit { row } => {
                write!(f, "unwind row {row} has a distance that is no multiple of 8")
            }
            Self::Signed => f.write_str("this machine has no signed return addresses"),
            Self::TooFar => f.write_str("code and unwind tables reach further than 2 GiB"),
            Self::Ready => f.write_str("the ready .eh_frame does not have exactly one FDE"),
            Self::ReadyAsEntry => f.write_str("a ready .eh_frame is no single entry"),
        }
    }
}

impl core::error::Error for Error {}
