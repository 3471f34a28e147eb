//! The table that a walk searches while it is being changed.
//!
//! A row contains the start of a code and the place of its FDE, with 32 bits each. Rows are ordered by start. A walk takes the
//! last row that is not behind the address it looks for (`lookup` in `Gfind_proc_info-lsb.c`), and then reads the place of the
//! FDE in it. It uses no lock, so:
//!
//! - a change is one store of eight bytes;
//! - the row of a code is never moved, nor given to another code while this one is alive: a walk may have found it a moment ago;
//! - between rows with code there are rows without: they may have any start between those of their neighbours, but none that is
//!   within a code, or this code would not be found.
//!
//! When no row is free where one is needed, a new table is made, with spare rows everywhere, and replaces the old one with one
//! store. The more codes there are, the more rarely this happens.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use crate::memory::map;

/// Number of rows of every table. If there are fewer codes, those at the front are never touched: they read as zeros.
pub(super) const LEN: usize = 1 << 17;
/// libunwind reads one row behind the last.
const BYTES: usize = (LEN + 512) * 8;
/// Number of rows without code before each row in a new table, if there is space.
const SPARE: usize = 3;
/// Behind all code.
const LAST: Row = Row { start: i32::MAX as u32, description: 0 };

/// A row; one without an FDE has no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u32,
    pub(super) description: i32,
}

/// A table's memory stays mapped for ever, because a walk may be paused in it for as long. A table that is not in use any more is
/// [reused](Self::wipe).
#[derive(Debug)]
pub(super) struct Rows(NonNull<AtomicU64>);

// SAFETY: the memory is only accessed with atomic loads and stores.
unsafe impl Send for Rows {}

impl Rows {
    /// A table of `count` codes, in ascending order, in the memory of a wiped table or in new memory. `None` if there is no
    /// memory, or if there are too many codes.
    pub(super) fn new(
        wiped: Option<Self>,
        count: usize,
        codes: impl DoubleEndedIterator<Item = Row>,
    ) -> Option<Self> {
        let behind = (count / 2).saturating_add(16);
        let left = LEN.checked_sub(behind)?;
        let spare = (left.checked_div(count.max(1))?).min(SPARE + 1).checked_sub(1)?;
        let rows = match wiped {
            Some(wiped) => wiped,
            None => Self(map(BYTES)?.cast()),
        };
        let mut at = LEN;
        let mut put = |row| {
            at = at.saturating_sub(1);
            rows.store(at, row);
        };
        (0..behind).for_each(|_| put(LAST));
        for row in codes.rev() {
            put(row);
            (0..spare).for_each(|_| put(Row { description: 0, ..row }));
        }
        Some(rows)
    }

    pub(super) fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    /// Adds a code that does not overlap with others; false if there is no row for it.
    pub(super) fn add(&self, row: Row, end: u32) -> bool {
        let behind = self.search(|start| start <= row.start);
        let place = match behind.checked_sub(1) {
            Some(before) if self.load(before).description == 0 => before,
            // The very last row is reserved for what is behind all code.
            _ if behind < LEN - 1 && self.load(behind).description == 0 => behind,
            _ => return false,
        };
        // No row without code may be within it.
        let free = self.search(|start| start < end);
        let next = self.load(free).start;
        for at in (place.saturating_add(1)..free).rev() {
            self.store(at, Row { start: next, description: 0 });
        }
        self.store(place, row);
        true
    }

    /// Removes a code.
    pub(super) fn remove(&self, start: u32) {
        if let Some(at) = self.search(|other| other <= start).checked_sub(1)
            && self.load(at).start == start
        {
            self.store(at, Row { start, description: 0 });
        }
    }

    /// Number of rows at the beginning for which this is true.
    fn search(&self, is_before: impl Fn(u32) -> bool) -> usize {
        let (mut low, mut high) = (0, LEN);
        while low < high {
            let middle = (low + high) / 2;
            if is_before(self.load(middle).start) { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn load(&self, at: usize) -> Row {
        let word = self.word(at).load(Relaxed);
        Row { start: word as u32, description: (word >> 32) as i32 }
    }

    fn store(&self, at: usize, row: Row) {
        let word = u64::from(row.description as u32) << 32 | u64::from(row.start);
        self.word(at).store(word, Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: a word of the mapping, which is aligned, and lives as long as this value.
        unsafe { self.0.add(at.min(LEN)).as_ref() }
    }

    /// Frees the pages, but not the addresses: a walk that is still there finds no code.
    pub(super) fn wipe(self) -> Option<Self> {
        // SAFETY: the mapping of this value, of private memory, which reads as zeros from now on. Others only read it with atomic
        // loads.
        let done = unsafe { libc::madvise(self.0.as_ptr().cast(), BYTES, libc::MADV_DONTNEED) };
        (done == 0).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{LEN, Row, Rows};

    /// Searches like libunwind, and checks that the row's code contains the address.
    fn look(rows: &Rows, at: u32, size: u32) -> Option<u32> {
        let row = rows.load(rows.search(|start| start <= at).checked_sub(1)?);
        (row.description != 0 && at < row.start + size).then_some(row.start)
    }

    #[test]
    fn a_wiped_table_has_no_code_until_it_is_reused() {
        let codes = |count: u32| (0..count).map(|n| Row { start: 32 * n, description: 8 });
        let rows = Rows::new(None, 1000, codes(1000)).unwrap();
        assert_eq!(look(&rows, 33, 32), Some(32));
        let rows = rows.wipe().unwrap();
        assert!((0..LEN).all(|at| rows.load(at) == Row { start: 0, description: 0 }));
        let rows = Rows::new(Some(rows), 2, codes(2)).unwrap();
        assert_eq!([33, 63, 64].map(|at| look(&rows, at, 32)), [Some(32), Some(32), None]);
    }

    #[test]
    fn rows_are_found_between_add_and_remove() {
        use std::collections::BTreeMap;
        let mut codes = BTreeMap::<u32, i32>::new();
        let fresh = |codes: &BTreeMap<u32, i32>| {
            let rows = codes.iter().map(|(&start, &description)| Row { start, description });
            Rows::new(None, codes.len(), rows).unwrap()
        };
        let mut rows = fresh(&codes);
        let (mut seed, mut made) = (1_u64, 0);
        for round in 0..20_000_u32 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Of 16 bytes each, at addresses that are not multiples of 16.
            let start = (seed >> 40) as u32 % 20_000;
            let retired: Vec<u32> = codes
                .range(start.saturating_sub(15)..start + 16)
                .map(|(&start, _)| start)
                .collect();
            for other in retired {
                codes.remove(&other);
                rows.remove(other);
            }
            if round % 3 > 0 {
                codes.insert(start, round as i32 + 1);
                let row = Row { start, description: round as i32 + 1 };
                if !rows.add(row, start + 16) {
                    rows = fresh(&codes);
                    made += 1;
                }
            }
            if round % 97 == 0 {
                for at in 0..20_020 {
                    let truth = codes.range(..=at).next_back().map(|(&start, _)| start);
                    let truth = truth.filter(|start| at < start + 16);
                    assert_eq!(look(&rows, at, 16), truth, "{round} {at}");
                }
            }
        }
        assert!(made < 400, "{made}");
        let starts: Vec<u32> = (0..=LEN).map(|at| rows.load(at).start).collect();
        assert!(starts[..LEN].is_sorted());
    }
}
