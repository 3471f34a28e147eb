//! The lines that source positions imply.

use alloc::vec::Vec;
use core::iter::FusedIterator;

use super::record::{SourcePosition, SourcePositions, string};
use crate::endian::Fields;

/// The rows of a [`SourcePositions`] as lines.
#[derive(Clone, Debug)]
pub(crate) struct PositionLines<'a> {
    positions: SourcePositions<'a>,
    strings: Vec<&'a [u8]>,
    rows: Fields<'a>,
}

/// A line of the function that is innermost at `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositionLine<'a> {
    pub(crate) offset: u32,
    pub(crate) file: &'a [u8],
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl<'a> PositionLines<'a> {
    pub(crate) fn new(positions: SourcePositions<'a>) -> Self {
        Self { positions, strings: positions.strings(), rows: positions.rows }
    }
}

impl<'a> Iterator for PositionLines<'a> {
    type Item = PositionLine<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, position) = (self.rows.u32()?, self.rows.u32()?);
        let Some(position) = self.positions.position(position) else {
            return Some(PositionLine { offset, file: &[], line: 0, column: 0 });
        };
        let SourcePosition { file, line, column, .. } = position;
        Some(PositionLine { offset, file: string(&self.strings, file), line, column })
    }
}

impl FusedIterator for PositionLines<'_> {}
