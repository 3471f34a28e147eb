//! The source lines of one code, normalized.

use core::ops::Range;

use crate::debug_info::{DebugEntry, EntryName};
use crate::extension::LineRows;
use crate::garbled::NearEntries;
use crate::quirks::Quirks;
use crate::source_positions::PositionLines;

/// A line: from `address` on, the code comes from `line` of `file`, until the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry<'a> {
    /// Address of the first byte, absolute, within the code.
    pub address: u64,
    /// The source file as the writer named it: any bytes.
    pub file: &'a [u8],
    /// Line from 1, or 0: from here on the code comes from no source line.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

/// How to interpret the addresses of a dump's debug entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addressing {
    pub(crate) bias: u64,
    pub(crate) thumb: bool,
}

impl Addressing {
    pub(crate) fn of(quirks: &Quirks) -> Self {
        Self { bias: quirks.debug_addr_bias, thumb: quirks.thumb }
    }

    pub(crate) fn code(self, address: u64) -> u64 {
        if self.thumb { address & !1 } else { address }
    }

    fn entry(self, address: u64) -> Option<u64> {
        Some(self.code(address.checked_sub(self.bias)?))
    }
}

/// The source of the lines.
#[derive(Clone, Debug)]
pub(crate) enum LineSource<'a> {
    /// A DEBUG_INFO record.
    Entries(NearEntries<'a>),
    /// A line table of the code at this address.
    Table(u64, LineRows<'a>),
    /// The source positions of the code at this address.
    Positions(u64, PositionLines<'a>),
}

impl<'a> LineSource<'a> {
    fn next(&mut self) -> Option<DebugEntry<'a>> {
        match self {
            Self::Entries(entries) => entries.next(),
            Self::Table(address, rows) => rows.next().map(|row| DebugEntry {
                addr: address.saturating_add(row.offset.into()),
                line: row.line,
                discrim: row.column,
                name: EntryName::Path(row.file),
            }),
            Self::Positions(address, lines) => lines.next().map(|line| DebugEntry {
                addr: address.saturating_add(line.offset.into()),
                line: line.line,
                discrim: line.column,
                name: EntryName::Path(line.file),
            }),
        }
    }
}

/// The lines of a code, decoded lazily; see [`CodeLoad::lines`].
///
/// [`CodeLoad::lines`]: crate::CodeLoad::lines
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    source: Option<LineSource<'a>>,
    addressing: Addressing,
    range: Range<u64>,
    /// File of the previous entry, to which "same file" refers.
    file: &'a [u8],
    /// The last entry before the code; it applies where the code begins.
    before: Option<LineEntry<'a>>,
    /// An entry that must be returned after `before`.
    after: Option<LineEntry<'a>>,
    last: Option<LineEntry<'a>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(
        source: Option<LineSource<'a>>,
        addressing: Addressing,
        range: Range<u64>,
    ) -> Self {
        Self { source, addressing, range, file: &[], before: None, after: None, last: None }
    }

    /// Processes one entry and returns the next line, if the entry produces one.
    fn take(&mut self, entry: DebugEntry<'a>) -> Option<LineEntry<'a>> {
        if let EntryName::Path(path) = entry.name {
            self.file = path;
        }
        let address = self.addressing.entry(entry.addr)?;
        let blank = entry.line == 0 && self.file.is_empty();
        let mut line =
            LineEntry { address, file: self.file, line: entry.line, column: entry.discrim };
        if address < self.range.start {
            if self.last.is_none() {
                line.address = self.range.start;
                self.before = (!blank && !self.range.is_empty()).then_some(line);
            }
            return None;
        }
        if address >= self.range.end {
            return None;
        }
        let before = self.before.take().filter(|_| address > self.range.start);
        if blank {
            // It ends the line before it. If there is none, it has no effect.
            let ended = before.or(self.last).filter(|ended| ended.line != 0);
            let Some(ended) = ended else { return before };
            line.file = ended.file;
            line.column = 0;
        }
        if before.is_some() {
            self.after = Some(line);
            return before;
        }
        Some(line)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = LineEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.after.take().or_else(|| {
            while let Some(entry) = self.source.as_mut()?.next() {
                if let Some(line) = self.take(entry) {
                    return Some(line);
                }
            }
            self.source = None;
            self.before.take()
        })?;
        self.last = Some(line);
        Some(line)
    }
}
