//! The table that a walk searches while it is being changed.
//!
//! A row contains the start of a code and the place of its FDE, with 32 bits each. A walk takes the last row that is not behind
//! the address it looks for (`lookup` in `Gfind_proc_info-lsb.c`), and then reads the place of the FDE in it. A change is one store
//! of eight bytes. See `rows.rs` of the crate for the rest.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use crate::memory::map;
use crate::rows::{Code, Plan, Row, Rows as TableRows};

/// Number of rows of every table. If there are fewer codes, those at the front are never touched: they read as zeros.
pub(super) const LEN: usize = 1 << 19;
/// libunwind reads one row behind the last.
const BYTES: usize = (LEN + 512) * 8;
/// Behind all code.
pub(super) const BEHIND: u64 = i32::MAX as u64;

/// A table's memory stays mapped for ever, because a walk may be paused in it for as long. A table that is not in use any more is
/// [reused](Self::wipe).
#[derive(Debug)]
pub(super) struct Rows(NonNull<AtomicU64>);

// SAFETY: the memory is only accessed with atomic loads and stores.
unsafe impl Send for Rows {}

impl Rows {
    /// A table of `count` codes in ascending order, with space for more beside the code at `next`, in the memory of a wiped table or
    /// in new memory. `None` if there is no memory, or if there are too many codes.
    pub(super) fn new(
        wiped: Option<Self>,
        count: usize,
        next: u64,
        codes: impl Iterator<Item = Code> + Clone,
    ) -> Option<Self> {
        let plan = Plan::new(count, LEN, next, codes.clone())?;
        let rows = match wiped {
            Some(wiped) => wiped,
            None => Self(map(BYTES)?.cast()),
        };
        let used = plan.rows(codes.clone(), BEHIND, |_, _, _| ());
        let first = LEN.saturating_sub(used);
        plan.rows(codes, BEHIND, |at, row, _| rows.set(first.saturating_add(at), row));
        Some(rows)
    }

    pub(super) fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    fn load(&self, at: usize) -> (u64, u64) {
        let word = self.word(at).load(Relaxed);
        (word & u64::from(u32::MAX), word >> 32)
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

impl TableRows for Rows {
    const ANY: bool = false;

    fn len(&self) -> usize {
        LEN
    }

    fn start(&self, at: usize) -> u64 {
        self.load(at).0
    }

    fn is_free(&self, at: usize) -> bool {
        at < LEN - 1 && self.load(at).1 == 0
    }

    fn move_to(&self, at: usize, start: u64) {
        self.set(at, Row { start, fde: 0 });
    }

    fn set(&self, at: usize, row: Row) {
        self.word(at).store(row.fde << 32 | row.start, Release);
    }

    fn clear(&self, at: usize) {
        self.move_to(at, self.start(at));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{BEHIND, LEN, Row, Rows, TableRows as _};

    /// Searches like libunwind, and checks that the row's code contains the address.
    fn look(rows: &Rows, at: u64, size: u64) -> Option<u64> {
        let (start, fde) = rows.load(rows.search(at + 1).checked_sub(1)?);
        (fde != 0 && at < start + size).then_some(start)
    }

    fn made(codes: &BTreeMap<u64, u64>, next: u64, size: u64) -> Rows {
        let rows = codes.iter().map(|(&start, &fde)| (Row { start, fde }, start + size));
        Rows::new(None, codes.len(), next, rows).unwrap()
    }

    /// The gap around a place.
    fn gap(codes: &BTreeMap<u64, u64>, at: u64, size: u64) -> std::ops::Range<u64> {
        let before = codes.range(..at).next_back().map_or(0, |(start, _)| start + size);
        before..codes.range(at..).next().map_or(BEHIND, |(start, _)| *start)
    }

    #[test]
    fn a_wiped_table_has_no_code_until_it_is_reused() {
        let codes = |count: u64| (0..count).map(|n| (Row { start: 32 * n, fde: 8 }, 32 * n + 32));
        let rows = Rows::new(None, 1000, 0, codes(1000)).unwrap();
        assert_eq!(look(&rows, 33, 32), Some(32));
        let rows = rows.wipe().unwrap();
        assert!((0..LEN).all(|at| rows.load(at) == (0, 0)));
        let rows = Rows::new(Some(rows), 2, 0, codes(2)).unwrap();
        assert_eq!([33, 63, 64].map(|at| look(&rows, at, 32)), [Some(32), Some(32), None]);
    }

    #[test]
    fn rows_are_found_between_add_and_remove() {
        let mut codes = BTreeMap::<u64, u64>::new();
        let mut rows = made(&codes, 0, 16);
        let (mut seed, mut count) = (1_u64, 0);
        for round in 1..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Of 16 bytes each, at addresses that are not multiples of 16.
            let start = (seed >> 40) % 20_000;
            let retired: Vec<u64> = codes
                .range(start.saturating_sub(15)..start + 16)
                .map(|(&start, _)| start)
                .collect();
            for other in retired {
                codes.remove(&other);
                rows.remove(other);
            }
            if round % 3 > 0 {
                let gap = gap(&codes, start, 16);
                codes.insert(start, round);
                if !rows.add((Row { start, fde: round }, start + 16), &gap) {
                    rows = made(&codes, start, 16);
                    count += 1;
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
        assert!(count < 400, "{count}");
        assert!((0..LEN).map(|at| rows.start(at)).is_sorted());
    }

    type Order = fn(u64) -> u64;

    /// In a block of 4 MiB: as many codes as fit there with 32 bytes each, in any order, and not with a new table for each.
    #[test]
    fn a_full_block_is_rarely_renewed() {
        const COUNT: u64 = 131_072;
        let orders: [(&str, Order); 4] = [
            ("ascending", |number| number),
            ("descending", |number| COUNT - 1 - number),
            ("scattered", |number| number * 7919 % COUNT),
            ("eight places", |number| number % 8 * (COUNT / 8) + number / 8),
        ];
        for (name, order) in orders {
            let mut codes = BTreeMap::<u64, u64>::new();
            let mut rows = made(&codes, 0, 17);
            let mut copied = 0;
            for number in 0..COUNT {
                let start = 32 * order(number);
                let gap = gap(&codes, start, 17);
                codes.insert(start, number + 1);
                if !rows.add((Row { start, fde: number + 1 }, start + 17), &gap) {
                    rows = made(&codes, start, 17);
                    copied += codes.len();
                }
            }
            assert!(copied < 20 * COUNT as usize, "{name}: {copied}");
            assert!((0..COUNT).all(|number| look(&rows, 32 * number, 17) == Some(32 * number)));
        }
    }
}
