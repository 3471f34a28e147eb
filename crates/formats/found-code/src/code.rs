//! What is found.

/// A code that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCode {
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes: at least 1, and its end is an address.
    pub size: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// The file in which it begins; empty if unknown.
    pub file: Vec<u8>,
    /// The line in which it begins; 0 if unknown.
    pub line: u32,
    /// How its frame is left on x86-64; `None` if unknown.
    pub frame: Option<Frame>,
}

/// A frame that is the same at each instruction of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The distance from the stack pointer to the caller's, in bytes.
    pub size: u32,
    /// The registers that are saved in it: the DWARF number of each, and its distance from the caller's stack pointer.
    pub saved: &'static [(u16, i32)],
}

/// A change since the last poll.
#[derive(Debug)]
pub enum Change {
    /// A code is there.
    Found {
        /// A number that no other code of the [`Finder`](crate::Finder) has.
        id: u64,
        /// The code.
        code: FoundCode,
        /// From when on it may have been there: the last time that its description was looked for in vain.
        since: u64,
    },
    /// A code is gone.
    Gone {
        /// Its number.
        id: u64,
    },
}
