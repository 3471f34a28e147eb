//! How a compiler describes its frames.

/// How to unwind one code: a contiguous piece of instructions.
///
/// The CFA is the canonical frame address of DWARF: the value of the stack pointer before the call; on x86-64, before
/// the call pushed its return address.
///
/// Registers that a description does not mention have the same value in the caller as they have now. For registers
/// that a call may change, this does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwind<'a> {
    /// The usual prologue, and then a frame pointer up to the end.
    ///
    /// x86-64: `push rbp; mov rbp, rsp`. aarch64: `stp x29, x30, [sp, -16]!; mov x29, sp`.
    ///
    /// This is correct at each instruction from the code's start on, except where an epilogue has already removed the
    /// frame: a stack that is walked from the final `ret` lacks the caller.
    ///
    /// It assumes that other registers that a call must preserve (x86-64: rbx and r12 to r15) are not changed, or are saved directly
    /// behind the prologue, where the unwinders in the process find them by reading the code's bytes. Otherwise use
    /// [`FramePointerSaving`](Self::FramePointerSaving): stacks are right either way, but an exception that passes through the code
    /// would continue with wrong values in these registers. Debuggers do not show them for the callers, as nothing says that the
    /// assumption is true; an empty list in `FramePointerSaving` does.
    ///
    /// On aarch64, a prologue may allocate a larger frame at once, with the frame record at its bottom. It is unwound with the
    /// correct callers, but with a stack pointer that is too low in them. Use [`Rows`](Self::Rows) if they need the correct one.
    FramePointer {
        /// Offset of the prologue's first instruction in the code: 0, or 4 behind an `endbr64`, `bti` or `paciasp`.
        /// The instructions before it must not change stack pointer, frame pointer and return address (except for
        /// `paciasp`).
        prologue: u32,
        /// aarch64: the saved return address is signed, by a `paciasp` before the prologue. x86-64 has no equivalent.
        signed: bool,
    },
    /// Like [`FramePointer`](Self::FramePointer), for code that saves further registers in its frame and then changes them, as most
    /// compilers' code does.
    FramePointerSaving {
        /// As in [`FramePointer`](Self::FramePointer).
        prologue: u32,
        /// As in [`FramePointer`](Self::FramePointer).
        signed: bool,
        /// Offset in the code from which on the registers are saved: behind the last instruction that saves one, and before the
        /// first that changes one.
        saved_from: u32,
        /// The registers and where they are saved, as in [`Row::saved`], without the frame pointer and the return address.
        saved: &'a [(u16, i32)],
    },
    /// A frame pointer that is valid at each instruction: for code that runs in a frame that other code has set up,
    /// such as interpreter handlers and parts of a function.
    FramePointerAlways {
        /// As in [`FramePointer`](Self::FramePointer).
        signed: bool,
    },
    /// The complete state at each offset where it changes, ascending.
    ///
    /// Before the first row, the state is that after a call: x86-64 CFA = rsp + 8, aarch64 CFA = sp, and nothing is
    /// saved. An empty list describes a leaf function without a frame.
    Rows(&'a [Row<'a>]),
    /// A ready `.eh_frame` section, which is copied unchanged: one CIE and one FDE for the whole code, with or
    /// without the terminator. Pointers in it must be relative to the position that the section will have.
    EhFrame(&'a [u8]),
}

impl Unwind<'_> {
    /// The usual prologue at the very start of the code.
    pub const FRAME_POINTER: Self = Self::FramePointer { prologue: 0, signed: false };
    /// The usual prologue behind a four-byte instruction that marks a branch target: `endbr64` or `bti`.
    pub const FRAME_POINTER_BEHIND_LANDING: Self =
        Self::FramePointer { prologue: 4, signed: false };
}

/// The state of the frame from an offset on, up to the next row.
///
/// Registers have the DWARF numbers of the machine's ABI: for x86-64 figure 3.36 of the System V ABI, for AArch64 section 4.1 of AADWARF64.
///
/// ```
/// use jit_code::Row;
///
/// // x86-64, behind `push rbp; mov rbp, rsp`: the CFA is rbp + 16, and the caller's rbp is below the return address.
/// const BODY: Row<'_> = Row::new(4, 6, 16).saved(&[(6, -16)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Row<'a> {
    /// Offset in the code of the first instruction for which the row is valid. The effect of an instruction that
    /// changes the frame begins at the next instruction.
    pub offset: u32,
    /// What is added to `cfa_register` to get the CFA, in bytes.
    pub cfa_offset: i32,
    /// The register that the CFA is computed from.
    pub cfa_register: u16,
    /// aarch64: the return address is signed, with the CFA as modifier (`paciasp`).
    pub signed: bool,
    /// The registers whose values for the caller are in memory, in any order: the number, and the distance of the
    /// location from the CFA in bytes (a multiple of 8, usually negative).
    ///
    /// The return address need not be listed if it is where the call has put it: at CFA - 8 on x86-64, in x30 on
    /// aarch64.
    pub saved: &'a [(u16, i32)],
}

impl<'a> Row<'a> {
    /// The state from `offset` on, in which the CFA is the value of `cfa_register` plus `cfa_offset`, and no register
    /// is saved. The register comes first, as in DWARF's `DW_CFA_def_cfa`.
    #[must_use]
    pub const fn new(offset: u32, cfa_register: u16, cfa_offset: i32) -> Self {
        Self { offset, cfa_offset, cfa_register, signed: false, saved: &[] }
    }

    /// Sets which registers' values for the caller are in memory, and where: see [`saved`](Self#structfield.saved).
    #[must_use]
    pub const fn saved(mut self, saved: &'a [(u16, i32)]) -> Self {
        self.saved = saved;
        self
    }

    /// Sets whether the return address is signed (aarch64): see [`signed`](Self#structfield.signed).
    #[must_use]
    pub const fn signed(mut self, signed: bool) -> Self {
        self.signed = signed;
        self
    }
}
