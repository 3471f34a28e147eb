//! What a part says of one context whose function callgrind did not know.

use std::rc::Rc;

use crate::known::Owner;
use crate::name::Context;

/// A context, and all lines of it.
#[derive(Debug)]
pub(crate) struct Collected {
    /// What its name says.
    pub context: Context,
    /// Its name, object and file, as the profile has them.
    pub name: Rc<[u8]>,
    pub object: Rc<[u8]>,
    pub file: Rc<[u8]>,
    /// Who is at the address where it is entered.
    pub owner: Option<Owner>,
    /// How often it was called.
    pub entries: u64,
    /// Whether somebody else than its own function calls it.
    pub is_called_from_elsewhere: bool,
    pub costs: Vec<Cost>,
    pub calls: Vec<Call>,
    pub jumps: Vec<Jump>,
    /// The costs, one behind another.
    pub values: Vec<u64>,
}

/// Self cost of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub address: u64,
    pub line: u64,
    /// Where its costs begin.
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
    /// Where its inclusive costs begin.
    pub values: usize,
}

/// Who is called.
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
    /// How often it was come to, if it is conditional.
    pub executed: Option<u64>,
}

impl Collected {
    /// The costs that begin at `at`, an entry an event.
    pub fn values(&self, at: usize, events: usize) -> &[u64] {
        self.values.get(at..at.saturating_add(events)).unwrap_or_default()
    }

    /// Whether it is entered where its function is.
    pub fn begins_function(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.start == self.context.address)
    }
}
