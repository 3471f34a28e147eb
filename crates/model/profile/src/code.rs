//! Pieces of machine code.

use std::ops::Range;

use crate::id::{FunctionId, ModuleId, ProcessId, StringId};

/// A piece of machine code: one compilation of a jitted function, or a function in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Code {
    /// The function that it was made of.
    pub function: FunctionId,
    /// Its symbol, as perf shows it: mangled, with marks of the tier.
    pub symbol: StringId,
    /// The tier of the compiler; empty if there is only one, or none is known.
    pub tier: StringId,
    /// Which compilation of the function it is in its process, in the order of time, from 1; 0 for code in files.
    pub generation: u32,
    /// The process that compiled it. `None` for code in files.
    pub process: Option<ProcessId>,
    /// Its address in the process; 0 for code in files, which may be mapped anywhere.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was loaded; `None` if that was before the recording, or is not known.
    pub loaded: Option<u64>,
    /// When it was unloaded or replaced; `None` if it was there at the end.
    pub gone: Option<u64>,
    /// The file that has its bytes, lines and symbols. `None` if there is none.
    pub module: Option<ModuleId>,
    /// Its address in the module's own terms (that of its symbol).
    pub module_address: u64,
}

impl Code {
    /// A code of which only the function and the size are known.
    #[must_use]
    pub const fn new(function: FunctionId, size: u64) -> Self {
        Self {
            function,
            symbol: StringId::EMPTY,
            tier: StringId::EMPTY,
            generation: 0,
            process: None,
            address: 0,
            size,
            loaded: None,
            gone: None,
            module: None,
            module_address: 0,
        }
    }

    /// Its addresses in the module's own terms.
    #[must_use]
    pub fn in_module(&self) -> Range<u64> {
        self.module_address..self.module_address.saturating_add(self.size)
    }
}
