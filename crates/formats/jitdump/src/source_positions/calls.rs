//! The inlined calls that source positions imply.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use super::record::{PositionRow, ROW_SIZE, SourcePosition, SourcePositions, string};
use crate::endian::to_usize;

/// Calls that are nested deeper are left out: no compiler inlines so deep, and each level costs time for each row.
const DEEPEST: usize = 127;

/// How many ranges are computed for each row and each position on average; the ranges of calls for which there are more
/// are incomplete. A call with a range of its own for each row needs a contrived record.
const RANGES: usize = 16;

/// The number of a position's call is not known yet.
const UNKNOWN: u32 = u32::MAX;
/// The position is in the code itself.
const OUTERMOST: u32 = u32::MAX - 1;

/// A call that was inlined.
#[derive(Clone, Debug)]
pub(crate) struct ComputedCall<'a> {
    /// Number of the call into whose body this one was inlined; less than its own.
    pub(crate) parent: Option<u32>,
    /// The function that was called.
    pub(crate) name: &'a [u8],
    /// The file, line and column of the call.
    pub(crate) file: &'a [u8],
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// Offsets of its code, ascending.
    pub(crate) ranges: Vec<Range<u32>>,
}

impl<'a> SourcePositions<'a> {
    /// The inlined calls of a code of this size, each after the one that it was inlined into. Positions of one function
    /// with one caller belong to one call. Empty if an allocation is refused.
    pub(crate) fn calls(&self, size: u64) -> Vec<ComputedCall<'a>> {
        self.try_calls(u32::try_from(size).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    fn try_calls(&self, size: u32) -> Option<Vec<ComputedCall<'a>>> {
        let mut rows = Vec::new();
        let row_count = self.rows.rest.len().checked_div(to_usize(ROW_SIZE))?;
        rows.try_reserve_exact(row_count).ok()?;
        rows.extend(self.rows().filter(|row| row.offset < size));
        // A stable sort: of several rows at one offset, the last one applies.
        if !rows.is_sorted_by_key(|row: &PositionRow| row.offset) {
            rows.sort_by_key(|row| row.offset);
        }
        let mut calls = Calls::new(self)?;
        let mut left = row_count.saturating_add(to_usize(self.count())).saturating_mul(RANGES);
        let ends = rows.iter().skip(1).map(|row| row.offset).chain([size]);
        for (row, end) in rows.iter().zip(ends).filter(|(row, end)| row.offset < *end) {
            let mut next = calls.of_position(row.position)?;
            while let Some(call) = next.and_then(|call| calls.list.get_mut(to_usize(call.into()))) {
                let last = call.ranges.last_mut();
                match last.filter(|last| last.end == row.offset) {
                    Some(last) => last.end = end,
                    None if left == 0 => {}
                    None => {
                        left = left.saturating_sub(1);
                        call.ranges.try_reserve(1).ok()?;
                        call.ranges.push(row.offset..end);
                    }
                }
                next = call.parent;
            }
        }
        Some(calls.list)
    }
}

/// Numbers calls in the order in which they are first needed.
struct Calls<'s, 'a> {
    positions: &'s SourcePositions<'a>,
    strings: Vec<&'a [u8]>,
    list: Vec<ComputedCall<'a>>,
    /// By call: how deep it is nested.
    depths: Vec<usize>,
    /// By position.
    of_positions: Vec<u32>,
    /// By the position of the call, and the function that is called.
    numbers: BTreeMap<(u32, u32, u32, u32), u32>,
}

impl<'s, 'a> Calls<'s, 'a> {
    fn new(positions: &'s SourcePositions<'a>) -> Option<Self> {
        let count = to_usize(positions.count());
        let mut of_positions = Vec::new();
        of_positions.try_reserve_exact(count).ok()?;
        of_positions.resize(count, UNKNOWN);
        Some(Self {
            positions,
            strings: positions.strings(),
            list: Vec::new(),
            depths: Vec::new(),
            of_positions,
            numbers: BTreeMap::new(),
        })
    }

    /// The call to which a position belongs; `Some(None)` for the code itself, `None` if an allocation is refused.
    fn of_position(&mut self, number: u32) -> Option<Option<u32>> {
        // From the position to the first caller whose call is known. A position that is its own caller, directly or
        // through others, ends at the limit.
        let mut chain: Vec<(u32, SourcePosition)> = Vec::new();
        let (mut known, mut next) = (OUTERMOST, Some(number));
        while let Some(number) = next.filter(|_| chain.len() <= DEEPEST) {
            match self.of_positions.get(to_usize(number.into())) {
                Some(&UNKNOWN) => {}
                Some(&call) => {
                    known = call;
                    break;
                }
                None => break,
            }
            let Some(position) = self.positions.position(number) else { break };
            chain.try_reserve(1).ok()?;
            chain.push((number, position));
            next = position.caller;
        }
        for (number, position) in chain.into_iter().rev() {
            known = self.call(known, &position)?;
            if let Some(place) = self.of_positions.get_mut(to_usize(number.into())) {
                *place = known;
            }
        }
        Some((known != OUTERMOST).then_some(known))
    }

    /// The number of the call to which `position` belongs, given that of its caller.
    fn call(&mut self, parent: u32, position: &SourcePosition) -> Option<u32> {
        let caller =
            position.caller.and_then(|caller| Some((caller, self.positions.position(caller)?)));
        let Some((number, at)) = caller else { return Some(OUTERMOST) };
        let depth =
            self.depths.get(to_usize(parent.into())).map_or(0, |depth| depth.saturating_add(1));
        if depth >= DEEPEST {
            return Some(parent);
        }
        let SourcePosition { function, function_line, function_column, .. } = *position;
        let next = u32::try_from(self.list.len()).ok()?;
        let key = (number, function, function_line, function_column);
        let call = *self.numbers.entry(key).or_insert(next);
        if call == next {
            self.list.try_reserve(1).ok()?;
            self.depths.try_reserve(1).ok()?;
            self.depths.push(depth);
            self.list.push(ComputedCall {
                parent: (parent != OUTERMOST).then_some(parent),
                name: string(&self.strings, Some(function)),
                file: string(&self.strings, at.file),
                line: at.line,
                column: at.column,
                ranges: Vec::new(),
            });
        }
        Some(call)
    }
}
