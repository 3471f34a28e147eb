//! Who reads unwind tables.

/// Who reads unwind tables, which makes a difference for a frame pointer without a list of saved registers
/// ([`FramePointer`](crate::Unwind::FramePointer), [`FramePointerAlways`](crate::Unwind::FramePointerAlways)). It does not say
/// whether the code changes other registers that a call must preserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// An unwinder, after which a caller goes on with the registers that were found. The code is taken to change none: LLVM's
    /// libunwind would set an undefined register to 0 (`getSavedRegister` in `DwarfInstructions.hpp`).
    Unwinder,
    /// A debugger, which shows the registers of callers. Behind the prologue, they are undefined: otherwise it would show what the
    /// code has in them as the variables of its callers.
    Debugger,
}
