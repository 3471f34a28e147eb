//! Call stacks.

use crate::id::{CodeId, FrameId, FunctionId, ModuleId, StackId};

/// An address in a code, or a call that was inlined at it. All frames at one address that were inlined into each other have the same `code`,
/// `module` and `address`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// The code at the address; `None` if it is not known.
    pub code: Option<CodeId>,
    /// The file that the address is in. `None` if there is none.
    pub module: Option<ModuleId>,
    /// The address of the instruction in the module's own terms or, without a module, in the process. Of a caller, it is within the call.
    pub address: u64,
    /// How many calls were inlined around this one; 0 for the function that the code was made of.
    pub depth: u32,
    /// The line from 1: of the instruction or, in an outer frame, of the inlined call. 0 if it is not known.
    pub line: u32,
    /// The column from 1; 0 if it is not known.
    pub column: u32,
}

impl Frame {
    /// A frame of which only the function is known.
    #[must_use]
    pub const fn new(function: FunctionId) -> Self {
        Self { function, code: None, module: None, address: 0, depth: 0, line: 0, column: 0 }
    }

    /// Whether the function was inlined.
    #[must_use]
    pub const fn is_inlined(&self) -> bool {
        self.depth > 0
    }
}

/// A frame and the stack of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The caller, which has a smaller number; `None` at the bottom.
    pub parent: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
}
