//! What a compiler says of its frames.

/// How to unwind one code: a contiguous piece of instructions.
///
/// CFA is the canonical frame address of DWARF: the value of the stack pointer before the call, for
/// x86-64 before the call pushed its return address.
///
/// The registers that a description does not mention have, in the caller's eyes, the value they have
/// now. For those that a call may change this is of no matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwind<'a> {
    /// The usual prologue, and then a frame pointer to the end.
    ///
    /// x86-64: `push rbp; mov rbp, rsp`. aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`.
    ///
    /// This is right at each instruction from the code's start on, but not where an epilogue has
    /// given the frame up already: a stack walked from the last `ret` lacks the caller. What lies
    /// below the frame pointer is of no matter. On aarch64 a prologue that makes a larger frame at
    /// once, with the frame record at its bottom, is unwound with the right callers and a stack
    /// pointer that is too low in them; use [`Rows`](Self::Rows) if they need theirs.
    FramePointer {
        /// Offset of the prologue's first instruction in the code: 0, or 4 behind an `endbr64`,
        /// `bti` or `paciasp`. The instructions before it must leave stack pointer, frame pointer
        /// and return address alone (but for `paciasp`).
        prologue: u32,
        /// aarch64: what is saved as return address is signed, by a `paciasp` before the prologue.
        /// There is no such thing on x86-64.
        signed: bool,
    },
    /// A frame pointer that holds at each instruction: for code that runs in a frame which other
    /// code has set up, as handlers of an interpreter and parts of a function do.
    FramePointerAlways {
        /// As in [`FramePointer`](Self::FramePointer).
        signed: bool,
    },
    /// The whole state at each offset where it changes, ascending.
    ///
    /// Before the first row holds what a call leaves: x86-64 CFA = rsp + 8, aarch64 CFA = sp, and
    /// nothing is saved. No rows at all describe a leaf without a frame.
    Rows(&'a [Row<'a>]),
    /// A ready `.eh_frame` section, copied as it is: one CIE and one FDE for the whole code, with or
    /// without the terminator. Pointers in it must be relative to the place that the section will
    /// have.
    EhFrame(&'a [u8]),
}

impl Unwind<'_> {
    /// The usual prologue at the very start of the code.
    pub const FRAME_POINTER: Self = Self::FramePointer { prologue: 0, signed: false };
    /// The usual prologue behind one instruction of four bytes that marks where branches may land:
    /// `endbr64` or `bti`.
    pub const FRAME_POINTER_BEHIND_LANDING: Self =
        Self::FramePointer { prologue: 4, signed: false };
}

/// The state of the frame from an offset on, up to the next row.
///
/// Registers have the numbers that the machine's ABI gives them in DWARF (see
/// [`Machine`](crate::Machine)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row<'a> {
    /// Offset in the code of the first instruction for which the row holds. An instruction that
    /// changes the frame has changed it where the next one begins.
    pub offset: u32,
    /// The register that the CFA is computed from.
    pub cfa_register: u16,
    /// What is added to it, in bytes.
    pub cfa_offset: i32,
    /// The registers whose values for the caller are in memory, in any order: number, and distance
    /// of the place from the CFA in bytes (a multiple of 8, below 0 as a rule).
    ///
    /// The return address need not be mentioned where the call has put it: at CFA - 8 on x86-64, in
    /// x30 on aarch64.
    pub saved: &'a [(u16, i32)],
    /// aarch64: the return address is signed, with the CFA as modifier (`paciasp`).
    pub signed: bool,
}
