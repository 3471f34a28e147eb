//! The part of a context that belongs to one function.

use super::cost::{Call, Cost, Jump};
use crate::code_map::Owner;

/// The part of a context that belongs to one function.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The function; `None` for unknown code that was only executed, not entered.
    pub owner: Option<Owner>,
    /// Self costs, sorted by address, each address once.
    pub rows: Vec<Cost>,
    /// The costs of the rows, consecutively.
    pub values: Vec<u64>,
    /// Calls, with their costs.
    pub calls: Vec<(Call, Vec<u64>)>,
    /// Jumps that remain jumps.
    pub jumps: Vec<Jump>,
    /// Jumps to the beginning of a function.
    pub entries: Vec<Entry>,
}

impl Piece {
    /// The costs of a row, one per event.
    pub fn values(&self, row: &Cost, events: usize) -> &[u64] {
        self.values.get(row.values..row.values.saturating_add(events)).unwrap_or_default()
    }
}

/// A jump that is treated as a call.
#[derive(Debug)]
pub(crate) struct Entry {
    pub address: u64,
    pub line: u64,
    /// The piece that is entered.
    pub to: usize,
    pub target: u64,
    pub count: u64,
    pub inclusive: Vec<u64>,
}
