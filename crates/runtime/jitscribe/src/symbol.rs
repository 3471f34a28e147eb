//! What is at an address.

/// A function at an address of announced code: see [`Scribe::symbolize`](crate::Scribe::symbolize).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'b> {
    /// The function's name: that of the code, or of a function that was inlined into it.
    pub name: &'b [u8],
    /// The source file; empty if it is not known.
    pub file: &'b [u8],
    /// The line from 1; 0 if it is not known. In a function into which another one was inlined, that of the call.
    pub line: u32,
    /// The column from 1; 0 if it is not known.
    pub column: u32,
    /// The address of the code.
    pub address: u64,
    /// The size of the code in bytes.
    pub size: u64,
    /// The number of functions at the address: the code's own, and those that were inlined there.
    pub functions: u32,
    /// Whether the buffer was too small for the name and the file, so that they are cut.
    pub is_cut: bool,
}
