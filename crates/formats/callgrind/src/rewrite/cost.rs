//! Costs, calls and jumps of unknown code, as they are read.

use std::rc::Rc;

/// Self cost of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub address: u64,
    pub line: u64,
    /// Index of its first cost.
    pub values: usize,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub address: u64,
    pub line: u64,
    pub callee: Callee,
    pub target: u64,
    pub target_line: u64,
    pub count: u64,
    /// Index of its first inclusive cost.
    pub values: usize,
}

/// The target of a call.
#[derive(Debug, Clone)]
pub(crate) enum Callee {
    /// The context with this number.
    Unknown(usize),
    /// A function that callgrind knew.
    Known { object: Rc<[u8]>, file: Rc<[u8]>, name: Rc<[u8]> },
}

/// A jump that was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    pub address: u64,
    pub line: u64,
    pub target: u64,
    pub taken: u64,
    /// How often it was executed, if it is conditional.
    pub executed: Option<u64>,
}
