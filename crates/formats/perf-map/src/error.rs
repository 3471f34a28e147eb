//! Why a line could not be read.

use core::fmt;

/// A line that is not an entry, and its position. The lines behind it are still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset of the line's first byte in the file.
    pub offset: u64,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The line does not begin with a hexadecimal number.
    NoAddress,
    /// No hexadecimal number follows the address.
    NoSize,
    /// The address needs more than 64 bits.
    AddressTooLarge,
    /// The size needs more than 64 bits.
    SizeTooLarge,
    /// Address plus size exceeds the end of the address space.
    EndOverflows {
        /// The address as written.
        address: u64,
        /// The size as written.
        size: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, line, cause } = self;
        write!(f, "line {line} (offset {offset:#x}): {cause}")
    }
}

impl core::error::Error for Error {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddress => "the line does not begin with a hexadecimal address",
            Self::NoSize => "no hexadecimal size follows the address",
            Self::AddressTooLarge => "the address does not fit in 64 bits",
            Self::SizeTooLarge => "the size does not fit in 64 bits",
            Self::EndOverflows { address, size } => {
                return write!(f, "address {address:#x} plus size {size:#x} overflows 64 bits");
            }
        })
    }
}

impl core::error::Error for Cause {}
