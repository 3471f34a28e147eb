//! Sorted tables of codes that walks search without a lock while they are being changed.
//!
//! A row has the start of a code, and its FDE. Between the rows of codes there are rows that are not in use, so that a row in use
//! is never moved: a walk may have found it a moment ago. Such a row has an FDE of no code, and a start within no code: usually in
//! the middle of the gap between two codes, so that code may be added on either side of it. Code is not in use while its row
//! changes.
//!
//! When no row is free where one is needed, the owner makes a new table, which the [`Plan`] describes. The more codes there are,
//! the more rarely this happens.

use std::ops::Range;

use crate::spare::Spare;

/// A row in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: u64,
    pub(crate) fde: u64,
}

/// A code: its row, and its end.
pub(crate) type Code = (Row, u64);

/// A table. Its last row is behind all code, and never in use.
pub(crate) trait Rows {
    /// Whether walks take any row that has exactly the address that they look for, else the last one.
    const ANY: bool;

    fn len(&self) -> usize;

    fn start(&self, at: usize) -> u64;

    /// Whether a row may be used. The last one may not.
    fn is_free(&self, at: usize) -> bool;

    /// Changes the start of a row that is not in use.
    fn move_to(&self, at: usize, start: u64);

    /// Uses a row.
    fn set(&self, at: usize, row: Row);

    /// Ends the use of a row, whose start stays.
    fn clear(&self, at: usize);

    /// The first row that starts at this address or behind it, or the last row.
    fn search(&self, address: u64) -> usize {
        let (mut low, mut high) = (0, self.len().saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle) < address {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Adds a code of which no part is in the table, given the gap between the codes beside it; false if there is no row for it.
    fn add(&self, (row, end): Code, gap: &Range<u64>) -> bool {
        let first = self.search(if Self::ANY { row.start } else { row.start.saturating_add(1) });
        let behind = self.search(end);
        let Some(last) = behind.checked_sub(1).filter(|last| *last >= first) else {
            // No row is within it.
            let before = first.checked_sub(1);
            let place = if self.is_free(first) { Some(first) } else { before };
            let place = place.filter(|place| self.is_free(*place));
            return place.inspect(|place| self.set(*place, row)).is_some();
        };
        // One row within it becomes its own. The others must leave, to the larger side.
        let (left, right) = (row.start.saturating_sub(gap.start), gap.end.saturating_sub(end));
        if right > 0 && right >= left {
            let start = end.midpoint(gap.end).min(self.start(behind));
            for at in (first.saturating_add(1)..behind).rev() {
                self.move_to(at, start);
            }
            self.set(first, row);
        } else if left > 0 {
            let before = first.checked_sub(1).map_or(0, |before| self.start(before));
            let start = gap.start.midpoint(row.start).max(before);
            (first..last).for_each(|at| self.move_to(at, start));
            self.set(last, row);
        } else {
            // There is no gap left. They all become its rows, until it is removed.
            (first..behind).for_each(|at| self.set(at, row));
        }
        true
    }

    /// Removes a code.
    fn remove(&self, start: u64) {
        let behind = self.search(start.saturating_add(1));
        for at in (0..behind).rev() {
            if self.start(at) != start || self.is_free(at) {
                return;
            }
            self.clear(at);
        }
    }
}

/// Where a new table has rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    spare: Spare,
    /// Number of rows behind all code, and beside the code at `next`, if there is space.
    more: usize,
    next: u64,
}

impl Plan {
    /// A plan for at most so many rows; `None` if there are too many codes. They are in ascending order. More code probably comes
    /// beside that at `next`.
    pub(crate) fn new(
        count: usize,
        most: usize,
        next: u64,
        codes: impl Iterator<Item = Code>,
    ) -> Option<Self> {
        let left = most.checked_sub(count)?;
        let more = (count / 2).saturating_add(64).min(left / 5);
        if more == 0 {
            return None;
        }
        let mut end = 0;
        let gaps = codes
            .map(|(row, its_end)| row.start.saturating_sub(std::mem::replace(&mut end, its_end)));
        let spare = Spare::new(gaps, count.saturating_add(64).min(left / 5));
        Some(Self { spare, more, next })
    }

    /// Calls this for each row, in order: with true if it is in use. The last one is behind all code, at `last`. Returns the number
    /// of rows.
    pub(crate) fn rows(
        self,
        codes: impl Iterator<Item = Code>,
        last: u64,
        mut put: impl FnMut(usize, Row, bool),
    ) -> usize {
        let mut at = 0_usize;
        let mut fill = |start, fde: Option<u64>, count: usize| {
            for _ in 0..count {
                put(at, Row { start, fde: fde.unwrap_or(0) }, fde.is_some());
                at = at.saturating_add(1);
            }
        };
        let (mut end, mut previous) = (0, 0);
        for (row, its_end) in codes {
            let gap = row.start.saturating_sub(end);
            let is_beside = previous == self.next || row.start == self.next;
            let spare = if is_beside { self.spare.with(self.more) } else { self.spare };
            fill(end.midpoint(row.start), None, spare.rows(gap));
            fill(row.start, Some(row.fde), 1);
            (end, previous) = (its_end, row.start);
        }
        fill(last, None, self.more);
        at
    }
}
