//! The payload of an INLINED item: the calls inlined into a code.

use alloc::vec;
use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::Range;

use super::tag::NO_PARENT;
use crate::endian::{Endian, Fields};
use crate::source_positions::ComputedCall;

/// Size of what precedes the calls: number of calls (u32), total number of ranges (u32).
pub const HEADER_SIZE: usize = 8;

/// Size of a call: parent, line, column, number of ranges (u32 each).
pub const CALL_SIZE: usize = 16;

/// Size of a range: start and end as offsets from the start of the code (u32 each).
pub const RANGE_SIZE: usize = 8;

/// An inlined call.
#[derive(Clone, Debug)]
pub struct InlinedCall<'a> {
    /// Number of the call into whose body this one was inlined. It counts the calls of the code from 0 and is less
    /// than this call's own number. `None`: inlined into the code itself.
    pub parent: Option<u32>,
    /// The function that was called.
    pub name: &'a [u8],
    /// The file that contains the call.
    pub file: &'a [u8],
    /// Line of the call from 1, or 0 if unknown.
    pub line: u32,
    /// Column of the call from 1, or 0 if unknown.
    pub column: u32,
    /// Where its code is.
    pub ranges: InlinedRanges<'a>,
}

/// The calls inlined into a code, in the order of the item: a caller before the calls inlined into it. Ends at the
/// first call that is incomplete, or that does not come after its parent.
#[derive(Clone, Debug)]
pub struct InlinedCalls<'a> {
    calls: Fields<'a>,
    ranges: Fields<'a>,
    names: Fields<'a>,
    /// Number of the next call.
    index: u32,
    /// File of the previous call.
    file: &'a [u8],
    base: u64,
    size: u64,
    is_whole: bool,
    /// Calls that are not from an item.
    computed: vec::IntoIter<ComputedCall<'a>>,
}

impl<'a> InlinedCalls<'a> {
    /// Calls computed from other records, in a code at `base`.
    pub(crate) fn computed(calls: Vec<ComputedCall<'a>>, base: u64) -> Self {
        Self { computed: calls.into_iter(), base, ..Self::none() }
    }

    pub(crate) fn parse(mut fields: Fields<'a>) -> Option<Self> {
        let (calls, ranges) = (fields.u32()?, fields.u32()?);
        let endian = fields.endian;
        let calls = fields.take(u64::from(calls).saturating_mul(16))?;
        let ranges = fields.take(u64::from(ranges).saturating_mul(8))?;
        Some(Self {
            calls: Fields::new(calls, endian),
            ranges: Fields::new(ranges, endian),
            names: fields,
            index: 0,
            file: &[],
            base: 0,
            size: u64::MAX,
            is_whole: true,
            computed: Vec::new().into_iter(),
        })
    }

    /// An empty list of calls.
    pub(crate) fn none() -> Self {
        let empty = Fields::new(&[], Endian::NATIVE);
        Self {
            calls: empty,
            ranges: empty,
            names: empty,
            index: 0,
            file: &[],
            base: 0,
            size: 0,
            is_whole: true,
            computed: Vec::new().into_iter(),
        }
    }

    /// The calls with ranges as addresses in a code at `base`, clipped to its end.
    pub(crate) fn of_code(self, base: u64, size: u64) -> Self {
        Self { base, size, ..self }
    }

    /// Whether everything read so far was well-formed.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn call(&mut self) -> Option<InlinedCall<'a>> {
        let (parent, line) = (self.calls.u32()?, self.calls.u32()?);
        let (column, ranges) = (self.calls.u32()?, self.calls.u32()?);
        let parent = (parent != NO_PARENT).then_some(parent);
        if parent.is_some_and(|parent| parent >= self.index) {
            return None;
        }
        let endian = self.ranges.endian;
        let ranges = self.ranges.take(u64::from(ranges).saturating_mul(8))?;
        let name = self.names.c_str()?;
        let file = self.names.c_str()?;
        if !file.is_empty() {
            self.file = file;
        }
        self.index = self.index.checked_add(1)?;
        let (base, size) = (self.base, self.size);
        let ranges = Ranges::Item(Fields::new(ranges, endian));
        let ranges = InlinedRanges { ranges, base, size };
        Some(InlinedCall { parent, name, file: self.file, line, column, ranges })
    }
}

impl<'a> Iterator for InlinedCalls<'a> {
    type Item = InlinedCall<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(ComputedCall { parent, name, file, line, column, ranges }) =
            self.computed.next()
        {
            let ranges = Ranges::Computed(ranges.into_iter());
            let ranges = InlinedRanges { ranges, base: self.base, size: u64::MAX };
            return Some(InlinedCall { parent, name, file, line, column, ranges });
        }
        if self.calls.rest.is_empty() {
            return None;
        }
        let call = self.call();
        if call.is_none() {
            self.is_whole = false;
            self.calls.rest = &[];
        }
        call
    }
}

impl FusedIterator for InlinedCalls<'_> {}

/// Where the code of an inlined call is. Empty ranges are skipped.
///
/// From [`Item::body`](super::Item::body) they are offsets from the start of the code; from
/// [`CodeLoad::inlined`](crate::CodeLoad::inlined) they are addresses within it.
#[derive(Clone, Debug)]
pub struct InlinedRanges<'a> {
    ranges: Ranges<'a>,
    base: u64,
    size: u64,
}

#[derive(Clone, Debug)]
enum Ranges<'a> {
    /// Those of an item.
    Item(Fields<'a>),
    /// Those of a call that is not from an item.
    Computed(vec::IntoIter<Range<u32>>),
}

impl Ranges<'_> {
    fn next(&mut self) -> Option<Range<u32>> {
        match self {
            Self::Item(fields) => Some(fields.u32()?..fields.u32()?),
            Self::Computed(ranges) => ranges.next(),
        }
    }
}

impl Iterator for InlinedRanges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let range = self.ranges.next()?;
            let (start, end) = (u64::from(range.start), u64::from(range.end));
            // A code may claim to be at the end of the address space.
            let end = self.base.saturating_add(end.min(self.size));
            let range = self.base.saturating_add(start)..end;
            if !range.is_empty() {
                return Some(range);
            }
        }
    }
}

impl FusedIterator for InlinedRanges<'_> {}
