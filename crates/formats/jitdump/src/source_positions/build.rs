//! Encodes source positions.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::iter;

use super::record::NONE;
use crate::endian::{Endian, to_u64};

/// Collects the positions of one code, and encodes them as a [`SourcePositions`](super::SourcePositions). It can be
/// used for one code after another.
#[derive(Clone, Debug, Default)]
pub struct SourcePositionsBuilder {
    rows: Vec<[u32; 2]>,
    positions: Vec<[u32; 7]>,
    /// The numbers of the positions.
    numbers: BTreeMap<[u32; 7], u32>,
    strings: BTreeMap<Vec<u8>, u32>,
    /// The strings, each with a NUL.
    text: Vec<u8>,
}

/// A position to add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewPosition<'a> {
    /// The number of the position of the call by which its function was inlined; `None` in the code itself.
    pub caller: Option<u32>,
    /// The function's name, without NUL.
    pub function: &'a [u8],
    /// The file, without NUL; empty if unknown.
    pub file: &'a [u8],
    /// The line at which the function begins, or 0 if unknown.
    pub function_line: u32,
    /// The column at which the function begins, or 0 if unknown.
    pub function_column: u32,
    /// Line from 1, or 0 if unknown.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

impl SourcePositionsBuilder {
    /// Removes everything, to begin with another code.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.positions.clear();
        self.numbers.clear();
        self.strings.clear();
        self.text.clear();
    }

    /// Adds a position and returns its number. A position that was added before keeps its number.
    pub fn position(&mut self, new: &NewPosition<'_>) -> u32 {
        let position = self.encoded(new);
        let next = number(self.positions.len());
        let number = *self.numbers.entry(position).or_insert(next);
        if number == next {
            self.positions.push(position);
        }
        number
    }

    /// Adds the position of a call, which distinguishes it from another call at the same place, and returns its number.
    pub(super) fn site(&mut self, new: &NewPosition<'_>) -> u32 {
        let position = self.encoded(new);
        let next = number(self.positions.len());
        self.positions.push(position);
        next
    }

    fn encoded(&mut self, new: &NewPosition<'_>) -> [u32; 7] {
        let function = self.string(new.function);
        let file = if new.file.is_empty() { NONE } else { self.string(new.file) };
        let NewPosition { function_line, function_column, line, column, .. } = *new;
        let caller = new.caller.unwrap_or(NONE);
        [caller, function, file, function_line, function_column, line, column]
    }

    /// From `offset` on, the code comes from this position; `None` for unknown. Call it in the order of the offsets.
    pub fn row(&mut self, offset: u32, position: Option<u32>) {
        self.rows.push([offset, position.unwrap_or(NONE)]);
    }

    /// Whether no row was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends what follows the header of the record of the code at `code_addr`.
    pub fn encode(&self, code_addr: u64, endian: Endian, to: &mut Vec<u8>) {
        let counts = [self.rows.len(), self.positions.len(), self.strings.len()].map(to_u64);
        for field in iter::once(code_addr).chain(counts) {
            to.extend_from_slice(&endian.put_u64(field));
        }
        let positions = self.positions.iter().flatten();
        for field in self.rows.iter().flatten().chain(positions) {
            to.extend_from_slice(&endian.put_u32(*field));
        }
        to.extend_from_slice(&self.text);
    }

    fn string(&mut self, string: &[u8]) -> u32 {
        // A NUL would end it.
        let string = string.split(|byte| *byte == 0).next().unwrap_or_default();
        if let Some(number) = self.strings.get(string) {
            return *number;
        }
        let number = number(self.strings.len());
        self.strings.insert(string.to_vec(), number);
        self.text.extend_from_slice(string);
        self.text.push(0);
        number
    }
}

/// A count as a number in the record, which has 32 bits.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(NONE)
}
