//! Why a description cannot be encoded.

use core::fmt::{self, Display, Formatter};

/// Why a description cannot be encoded. Rows are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A row's offset is not greater than that of the previous row.
    RowOrder {
        /// The row's number.
        row: usize,
    },
    /// A row's offset is not within the code.
    RowOutside {
        /// The row's number.
        row: usize,
    },
    /// Instructions cannot begin at this offset on this machine.
    Alignment {
        /// The offset in the code.
        offset: u32,
    },
    /// A register cannot be saved or used as CFA register: its number is 128 or above, or it is aarch64's
    /// pseudo-register for signed return addresses (34).
    Register {
        /// The row's number.
        row: usize,
        /// The register's number.
        register: u16,
    },
    /// A row has two locations for one register.
    SavedTwice {
        /// The row's number.
        row: usize,
        /// The register's number.
        register: u16,
    },
    /// A distance is not a multiple of 8: that of a saved register from the CFA, or a negative one of the CFA from
    /// its register.
    Unit {
        /// The row's number.
        row: usize,
    },
    /// Only aarch64 signs return addresses.
    Signed,
    /// The code is so large, or the tables are so far away, that distances do not fit into 32 bits.
    TooFar,
    /// A ready section does not consist of CIEs and one FDE.
    Ready,
    /// A ready section was given where a single entry is needed.
    ReadyAsEntry,
    /// A kind of description that this version cannot encode.
    Unsupported,
    /// An allocation was refused.
    Memory,
    /// Windows' unwind codes cannot express the state of a row: see [`windows`](crate::windows).
    Inexpressible {
        /// The row's number.
        row: usize,
        /// The part that cannot be expressed.
        why: Inexpressible,
    },
}

/// What [Windows' unwind codes](crate::windows) cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inexpressible {
    /// The CFA is computed from a register that calls do not preserve.
    FrameRegister {
        /// Its number.
        register: u16,
    },
    /// A register is saved that calls do not preserve.
    Volatile {
        /// Its number.
        register: u16,
    },
    /// The return address is not where the call has put it.
    ReturnAddress,
    /// The stack pointer is above the return address, something is saved below it, or two registers are in one
    /// location.
    Below,
    /// A register is saved more than 240 bytes below the frame register, or the frame register points above what is
    /// saved.
    FarFromFrame,
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowOrder { row } => write!(f, "unwind row {row} is not behind the previous row"),
            Self::RowOutside { row } => write!(f, "unwind row {row} is outside the code"),
            Self::Alignment { offset } => {
                write!(f, "no instruction can begin at offset {offset}")
            }
            Self::Register { row, register } => {
                write!(f, "unwind row {row} refers to the invalid register {register}")
            }
            Self::SavedTwice { row, register } => {
                write!(f, "unwind row {row} has two locations for register {register}")
            }
            Self::Unit { row } => {
                write!(f, "unwind row {row} has a distance that is not a multiple of 8")
            }
            Self::Signed => f.write_str("this machine has no signed return addresses"),
            Self::TooFar => f.write_str("code and unwind tables do not fit within 2 GiB"),
            Self::Memory => f.write_str("out of memory"),
            Self::Ready => f.write_str("the ready .eh_frame does not have exactly one FDE"),
            Self::ReadyAsEntry => f.write_str("a ready .eh_frame is not a single entry"),
            Self::Unsupported => f.write_str("no encoder for this kind of description"),
            Self::Inexpressible { row, why } => {
                write!(f, "Windows' unwind codes cannot express row {row}: {why}")
            }
        }
    }
}

impl Display for Inexpressible {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameRegister { register } => {
                write!(f, "register {register}, which calls do not preserve, is the CFA register")
            }
            Self::Volatile { register } => {
                write!(f, "register {register} is saved, but calls do not preserve it")
            }
            Self::ReturnAddress => f.write_str("the return address is not where the call put it"),
            Self::Below => f.write_str("something is saved below the stack pointer, or twice"),
            Self::FarFromFrame => {
                f.write_str("a saved register is too far from the frame register")
            }
        }
    }
}

impl core::error::Error for Error {}
