//! Why a stack ends.

/// Why unwinding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The tables say that the function has no caller: `_start`, the start of a thread.
    Bottom,
    /// The return address is 0.
    NoReturnAddress,
    /// Without a table, a frame pointer of 0: nothing has set one.
    NoFramePointer,
    /// Without a table, and the frame pointer does not point to a frame further up in the copy of the stack.
    BadFramePointer,
    /// What is needed was not copied: it is further up than the copy reaches.
    BehindCopy {
        /// How many bytes of the stack are needed.
        needed: u64,
    },
    /// What is needed is not on this stack: below the stack pointer, or elsewhere in memory.
    OtherMemory {
        /// The address.
        address: u64,
    },
    /// No file is mapped at this address.
    NoFile {
        /// The address.
        address: u64,
    },
    /// The file has no unwind tables, or cannot be read.
    NoTables {
        /// The address.
        address: u64,
    },
    /// The tables need the value of a register that is not known in this frame, or compute something that no table of a compiler does.
    Unknown,
    /// The caller's frame is the same one.
    SameFrame,
    /// There are more frames than any stack has.
    TooMany,
}

impl End {
    /// Whether the stack is whole.
    #[must_use]
    pub fn is_bottom(self) -> bool {
        self == Self::Bottom
    }
}
