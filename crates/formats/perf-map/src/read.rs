//! The reader: from bytes to entries, in the order of the file.

use crate::line::{self, Line};
use crate::{Cause, Error};

/// One code, as described by a line of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Offset of the line's first byte in the file.
    pub offset: u64,
    /// Number of the line, from 1. Later lines are newer.
    pub line: u64,
    /// Address of the code's first byte.
    pub address: u64,
    /// Size of the code in bytes. Zero is kept as read; such an entry covers no address.
    pub size: u64,
    /// The name as written, without the blanks around it. It may be empty, is not
    /// always UTF-8, and may contain control characters.
    pub name: &'a [u8],
}

impl Entry<'_> {
    /// The address behind the code's last byte. [`entries`] yields no entry for which this saturates.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Reads a perf map. See [`Entries`].
#[must_use]
pub fn entries(bytes: &[u8]) -> Entries<'_> {
    Entries { lines: Lines::new(bytes) }
}

/// The entries of a perf map in the order of the file.
///
/// A line that cannot be read yields an [`Error`], and reading continues with the next line. Blank lines are skipped.
/// A last line without a newline is read as it is: the file may still be being written, so its name may be truncated.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    lines: Lines<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(line) = self.lines.next()?.parsed else { continue };
            return Some(line.map(|(entry, _)| entry));
        }
    }
}

/// The lines of a file with their positions.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    offset: u64,
    line: u64,
}

/// A line with its position. `parsed` is `None` for a blank line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedLine<'a> {
    pub offset: u64,
    pub line: u64,
    /// Whether a newline ended it.
    pub terminated: bool,
    pub parsed: Option<Result<(Entry<'a>, Line<'a>), Error>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Lines { rest: bytes, offset: 0, line: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = PlacedLine<'a>;

    fn next(&mut self) -> Option<PlacedLine<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let newline = self.rest.iter().position(|&byte| byte == b'\n');
        let (text, rest) = match newline.and_then(|at| self.rest.split_at_checked(at)) {
            Some((text, rest)) => (text, rest.strip_prefix(b"\n").unwrap_or(rest)),
            None => (self.rest, &[][..]),
        };
        let offset = self.offset;
        // `usize` has at most 64 bits, and no sum exceeds the length of a slice.
        let consumed = self.rest.len().saturating_sub(rest.len());
        self.offset = offset.saturating_add(u64::try_from(consumed).unwrap_or(u64::MAX));
        self.line = self.line.saturating_add(1);
        self.rest = rest;

        let line = self.line;
        let place = |cause: Cause| Error { offset, line, cause };
        let parsed = line::parse(text).map(|result| match result {
            Ok(fields) => {
                let address = fields.address.value;
                let (size, name) = (fields.size.value, line::trim_end(fields.padded_name));
                Ok((Entry { offset, line, address, size, name }, fields))
            }
            Err(cause) => Err(place(cause)),
        });
        Some(PlacedLine { offset, line, terminated: newline.is_some(), parsed })
    }
}
