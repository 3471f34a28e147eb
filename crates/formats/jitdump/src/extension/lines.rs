//! The payload of a LINES item: a line table.

use alloc::vec::Vec;
use core::iter::FusedIterator;

use crate::endian::{Fields, to_usize};

/// Size of what precedes the rows: number of rows (u32), number of files (u32).
pub const HEADER_SIZE: usize = 8;

/// Size of a row: offset from the start of the code, line, column, file (u32 each).
pub const ROW_SIZE: usize = 16;

/// A line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTable<'a> {
    rows: Fields<'a>,
    files: u32,
    names: &'a [u8],
}

impl<'a> LineTable<'a> {
    pub(crate) fn parse(mut fields: Fields<'a>) -> Option<Self> {
        let (count, files) = (fields.u32()?, fields.u32()?);
        let rows = fields.take(u64::from(count).saturating_mul(16))?;
        Some(Self { rows: Fields::new(rows, fields.endian), files, names: fields.rest })
    }

    /// Its rows in the order of the table, which ascends by offset.
    #[must_use]
    pub fn rows(&self) -> LineRows<'a> {
        let names = self.names.split_inclusive(|byte| *byte == 0);
        let files =
            names.take(to_usize(self.files.into())).filter_map(|name| name.strip_suffix(b"\0"));
        let mut found = Vec::new();
        for file in files {
            // A library that reads its own log must not abort its process when memory is exhausted. The rows have no
            // files then.
            if found.try_reserve(1).is_err() {
                found = Vec::new();
                break;
            }
            found.push(file);
        }
        LineRows { rows: self.rows, files: found }
    }

    /// Whether every row refers to an existing file, all files' names are present, and the rows ascend.
    pub(crate) fn is_well_formed(&self) -> bool {
        let rows = self.rows();
        let all = u32::try_from(rows.files.len()) == Ok(self.files);
        let mut previous = 0;
        let mut fields = self.rows;
        let mut fits = || {
            let (offset, _, _, file) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
            let ascends = core::mem::replace(&mut previous, offset) <= offset;
            Some(ascends && file < self.files)
        };
        all && core::iter::from_fn(&mut fits).all(|fits| fits)
    }
}

/// A row: from `offset` on, up to the next row, the code comes from `line` of `file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow<'a> {
    /// Offset from the start of the code.
    pub offset: u32,
    /// The file as the writer named it: any bytes. Empty if the table has no such file.
    pub file: &'a [u8],
    /// Line from 1, or 0: the code comes from no line.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

/// The rows of a [`LineTable`].
#[derive(Clone, Debug)]
pub struct LineRows<'a> {
    rows: Fields<'a>,
    /// Only the files whose names are present, whatever number the table claims.
    files: Vec<&'a [u8]>,
}

impl<'a> Iterator for LineRows<'a> {
    type Item = LineRow<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, line) = (self.rows.u32()?, self.rows.u32()?);
        let (column, file) = (self.rows.u32()?, self.rows.u32()?);
        let file = self.files.get(to_usize(file.into())).copied().unwrap_or(&[]);
        Some(LineRow { offset, file, line, column })
    }
}

impl FusedIterator for LineRows<'_> {}
