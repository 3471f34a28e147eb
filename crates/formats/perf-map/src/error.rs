//! Why a line could not be read.

/// A line that is not an entry, and its position. The lines behind it are still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The line does not begin with a hexadecimal number.
    #[error("the line does not begin with a hexadecimal address")]
    NoAddress,
    /// No hexadecimal number follows the address.
    #[error("no hexadecimal size follows the address")]
    NoSize,
    /// The address needs more than 64 bits.
    #[error("the address does not fit in 64 bits")]
    AddressTooLarge,
    /// The size needs more than 64 bits.
    #[error("the size does not fit in 64 bits")]
    SizeTooLarge,
    /// Address plus size exceeds the end of the address space.
    #[error("address {address:#x} plus size {size:#x} overflows 64 bits")]
    EndOverflows {
        /// The address as written.
        address: u64,
        /// The size as written.
        size: u64,
    },
}
