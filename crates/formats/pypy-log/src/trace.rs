//! What was compiled.

use std::ops::Range;
use std::sync::Arc;

use crate::Place;

/// A piece of machine code that the compiler made of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// When it was made, in the log's clock.
    pub time: u64,
    /// What it is.
    pub kind: TraceKind,
    /// The addresses of its machine code, with the code for guards that fail. Not empty.
    pub range: Range<u64>,
    /// Where in the program it begins, if that is known.
    pub place: Option<Arc<Place>>,
    /// What its code was made from, in the order of the operations. Addresses do not descend.
    pub positions: Vec<Position>,
}

/// What a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A loop, or what leads into one.
    Loop,
    /// What runs when a guard of other code fails.
    Bridge,
}

/// Where code begins that was made from a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The address; the next position's may be the same.
    pub address: u64,
    /// How many calls were inlined around it. The code of a bridge may begin within such calls, and return from them.
    pub depth: u32,
    /// The function and line.
    pub place: Arc<Place>,
}
