//! The record: rows, positions and strings.

use alloc::vec::Vec;

use crate::endian::{Endian, Fields, to_u64, to_usize};

/// Size of a row: code offset (u32), number of the position (u32).
pub(super) const ROW_SIZE: u64 = 8;

/// Size of a position: caller, function, file, line and column of the function, line, column (32 bits each).
const POSITION_SIZE: u64 = 28;

/// In place of the number of a position or a file: there is none.
pub(super) const NONE: u32 = u32::MAX;

/// The source positions of a code whose LOAD follows. Everything is decoded lazily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePositions<'a> {
    /// Address of the code, as in its LOAD.
    pub code_addr: u64,
    pub(super) rows: Fields<'a>,
    positions: Fields<'a>,
    strings: Fields<'a>,
    string_count: u64,
}

/// A row: from `offset` on, up to the next row, the code comes from this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRow {
    /// Offset from the start of the code.
    pub offset: u32,
    /// The number of the position. Other numbers than those of the record's positions stand for unknown.
    pub position: u32,
}

/// A source position. Positions of the code itself have no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// The number of the position of the call by which its function was inlined; `None` in the code itself.
    pub caller: Option<u32>,
    /// The number of the string with the function's name.
    pub function: u32,
    /// The number of the string with the file, if known.
    pub file: Option<u32>,
    /// The line at which the function begins, or 0 if unknown.
    pub function_line: u32,
    /// The column at which the function begins, or 0 if unknown.
    pub function_column: u32,
    /// Line from 1, or 0 if unknown.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

impl<'a> SourcePositions<'a> {
    /// Parses what follows a record's header, in the byte order of its dump. `None` if the tables do not fit into it.
    #[must_use]
    pub fn parse(payload: &'a [u8], endian: Endian) -> Option<Self> {
        let mut fields = Fields::new(payload, endian);
        let (code_addr, rows, positions) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let string_count = fields.u64()?;
        let rows = fields.take(rows.checked_mul(ROW_SIZE)?)?;
        let positions = fields.take(positions.checked_mul(POSITION_SIZE)?)?;
        Some(Self {
            code_addr,
            rows: Fields::new(rows, endian),
            positions: Fields::new(positions, endian),
            strings: fields,
            string_count,
        })
    }

    /// Number of bytes in its tables.
    pub(crate) fn len(&self) -> usize {
        [self.rows, self.positions, self.strings]
            .iter()
            .fold(0, |sum, part| part.rest.len().saturating_add(sum))
    }

    /// Whether it has neither lines nor inlined calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.rest.is_empty() || self.positions.rest.is_empty()
    }

    /// The rows in the order of the record, which should ascend by offset.
    pub fn rows(&self) -> impl Iterator<Item = PositionRow> + Clone + 'a {
        let mut fields = self.rows;
        core::iter::from_fn(move || {
            Some(PositionRow { offset: fields.u32()?, position: fields.u32()? })
        })
    }

    /// The position with this number.
    #[must_use]
    pub fn position(&self, number: u32) -> Option<SourcePosition> {
        let at = u64::from(number).checked_mul(POSITION_SIZE)?;
        let mut fields = self.positions;
        fields.take(at)?;
        let some = |number: u32| (number != NONE).then_some(number);
        Some(SourcePosition {
            caller: some(fields.u32()?),
            function: fields.u32()?,
            file: some(fields.u32()?),
            function_line: fields.u32()?,
            function_column: fields.u32()?,
            line: fields.u32()?,
            column: fields.u32()?,
        })
    }

    /// Number of positions.
    pub(super) fn count(&self) -> u64 {
        to_u64(self.positions.rest.len()).checked_div(POSITION_SIZE).unwrap_or(0)
    }

    /// Its strings, as far as they are complete: whatever number the record claims. Empty if the allocation is refused.
    #[must_use]
    pub fn strings(&self) -> Vec<&'a [u8]> {
        let (mut fields, mut found) = (self.strings, Vec::new());
        while to_u64(found.len()) < self.string_count {
            let Some(string) = fields.c_str() else { break };
            // A library that reads its own log must not abort its process when memory is exhausted.
            if found.try_reserve(1).is_err() {
                return Vec::new();
            }
            found.push(string);
        }
        found
    }
}

/// The string with this number; empty if there is none.
pub(super) fn string<'a>(strings: &[&'a [u8]], number: Option<u32>) -> &'a [u8] {
    let number = number.map(|number| to_usize(number.into()));
    number.and_then(|number| strings.get(number)).copied().unwrap_or_default()
}
