//! The table that walks search while it is being changed: an `.eh_frame_hdr` with absolute addresses of 64 bits.
//!
//! A walk takes the last row whose start is not behind the address that it looks for, or any row whose start is exactly this
//! address (`findFDE` in `EHHeaderParser.hpp`), and then checks that the address is within the code of the row's FDE. It uses
//! no lock, so:
//!
//! - a row in use is never moved;
//! - a row that is not in use has an FDE of no code, and a start that is within no code: usually the middle of the gap between
//!   two codes, so that code may be added on either side of it. The first row is before all code, the last one behind all;
//! - a row changes in two stores of eight bytes, and code is not in use while its row changes.
//!
//! When no row is free where one is needed, a new table is made.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use fallible::{Refused, Vec};
use unwind_info::{Machine, Unwind};

use crate::memory::map;
use crate::spare::Spare;

/// What is at the beginning: the FDE of no code, behind its CIE; zeros, which end `.eh_frame`; and the header.
const HEADER: usize = 256;
const ROWS: usize = HEADER + 16;
/// The place of the zeros.
const END: usize = HEADER - 8;
/// Before and behind all code.
const BEFORE: u64 = 0;
const BEHIND: u64 = u64::MAX;
const ROW: usize = 16;

/// The first byte of a code, and its FDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) fde: u64,
}

/// A table's memory stays mapped for ever, because a walk may be paused in it for as long.
#[derive(Debug)]
pub(super) struct Table {
    base: NonNull<u8>,
    /// Number of rows for which there is memory.
    capacity: usize,
    rows: usize,
}

// SAFETY: the memory that others read is only accessed with atomic loads and stores.
unsafe impl Send for Table {}

impl Table {
    /// A table of `count` codes, each with its end, in ascending order, with spare rows, in particular on both sides of the code
    /// at `next`. The memory is that of an old table if it is large enough. `None` without memory.
    pub(super) fn new(
        old: Option<Self>,
        count: usize,
        next: u64,
        codes: impl Iterator<Item = (Row, u64)> + Clone,
    ) -> Result<Option<Self>, Refused> {
        let more = (count / 2).saturating_add(64);
        let mut end = 0;
        let gaps = codes
            .clone()
            .map(|(row, its_end)| row.start.saturating_sub(std::mem::replace(&mut end, its_end)));
        let total = count.saturating_add(64);
        let spare = Spare::new(gaps, total);
        // For the codes, spare rows between them, those beside `next`, those behind all code, and that before all.
        let most =
            count.saturating_add(total).saturating_add(more.saturating_mul(3)).saturating_add(1);
        let table = match old.filter(|old| old.capacity >= most) {
            Some(old) => Some(old),
            None => Self::map(most)?,
        };
        let Some(mut table) = table else { return Ok(None) };
        let fde = table.nothing();
        table.store(0, Row { start: BEFORE, fde });
        let mut at = 1_usize;
        let mut fill = |row, count: usize| {
            for _ in 0..count {
                table.store(at.min(most), row);
                at = at.saturating_add(1);
            }
        };
        let (mut end, mut previous) = (BEFORE, BEFORE);
        for (row, its_end) in codes {
            let gap = row.start.saturating_sub(end);
            let is_next = previous == next || row.start == next;
            let rows = if is_next { spare.with(more).rows(gap) } else { spare.rows(gap) };
            fill(Row { start: end.midpoint(row.start), fde }, rows);
            fill(row, 1);
            (end, previous) = (its_end, row.start);
        }
        fill(Row { start: BEHIND, fde }, more);
        table.rows = at;
        table.write_header();
        Ok(Some(table))
    }

    /// New memory for this number of rows, and half as many more; `None` if the kernel has none.
    fn map(rows: usize) -> Result<Option<Self>, Refused> {
        let Some(machine) = Machine::host() else { return Ok(None) };
        // Of a code at address 0, where there is none.
        let mut nothing = Vec::with_capacity(HEADER);
        fallible::so_far()?;
        let frame = Unwind::FramePointerAlways { signed: false };
        let is_made = unwind_info::absolute(machine, 0, 1, &frame, nothing.inner_mut()).is_ok();
        if !is_made || nothing.len() > END {
            return Ok(None);
        }
        let capacity = rows.saturating_add(rows / 2);
        let size = capacity.saturating_mul(ROW).saturating_add(ROWS);
        let Some(base) = map(size) else { return Ok(None) };
        // SAFETY: it fits into the new memory, which nobody else knows.
        unsafe {
            base.copy_from_nonoverlapping(NonNull::from(nothing.as_slice()).cast(), nothing.len())
        };
        Ok(Some(Self { base, capacity, rows: 0 }))
    }

    /// The FDE of no code.
    fn nothing(&self) -> u64 {
        // SAFETY: the CIE's length, which was written when the table was made, and does not change.
        let length = unsafe { self.base.cast::<u32>().read() };
        self.address().saturating_add(u64::from(length)).saturating_add(4)
    }

    /// The header: version, three encodings, and the fields in them.
    fn write_header(&self) {
        const UDATA8: u8 = 4;
        const UDATA4: u8 = 3;
        let frames = self.address().saturating_add(END as u64).to_ne_bytes();
        let count = u32::try_from(self.rows).unwrap_or(u32::MAX).to_ne_bytes();
        let mut bytes = [0; 16];
        let parts = [1, UDATA8, UDATA4, UDATA8].into_iter().chain(frames).chain(count);
        for (to, byte) in bytes.iter_mut().zip(parts) {
            *to = byte;
        }
        let (first, second) = bytes.split_at(8);
        for (at, half) in [first, second].into_iter().enumerate() {
            let word = half.first_chunk().map_or(0, |half| u64::from_ne_bytes(*half));
            self.word(HEADER / 8 + at).store(word, Release);
        }
    }

    fn address(&self) -> u64 {
        self.base.as_ptr().expose_provenance() as u64
    }

    /// The address and the size of `.eh_frame_hdr`.
    pub(super) fn header(&self) -> (u64, u64) {
        let size = self.rows.saturating_mul(ROW).saturating_add(ROWS - HEADER);
        (self.address().saturating_add(HEADER as u64), size as u64)
    }

    /// Adds a code of which no part is in the table, given its end and the gap between the codes beside it; false if there is no
    /// row for it.
    pub(super) fn add(&self, row: Row, end: u64, gap: Range<u64>) -> bool {
        let first = self.search(row.start);
        let behind = self.search(end);
        let Some(last) = behind.checked_sub(1).filter(|last| *last >= first) else {
            // No row is within it.
            let place = if self.is_free(first) { first } else { first.saturating_sub(1) };
            if !self.is_free(place) {
                return false;
            }
            self.store(place, row);
            return true;
        };
        // One row within it becomes its own. The others must leave, to the larger side.
        let (left, right) = (row.start.saturating_sub(gap.start), gap.end.saturating_sub(end));
        if right > 0 && right >= left {
            let start = end.midpoint(gap.end).min(self.load(behind).start);
            for at in (first.saturating_add(1)..behind).rev() {
                self.word(place(at)).store(start, Release);
            }
            self.store(first, row);
        } else if left > 0 {
            let before = self.load(first.saturating_sub(1)).start;
            let start = gap.start.midpoint(row.start).max(before);
            for at in first..last {
                self.word(place(at)).store(start, Release);
            }
            self.store(last, row);
        } else {
            // There is no gap left. They all become its rows, until it is removed.
            (first..behind).for_each(|at| self.store(at, row));
        }
        true
    }

    /// Removes a code.
    pub(super) fn remove(&self, start: u64) {
        let nothing = self.nothing();
        let mut at = self.search(start);
        while at.saturating_add(1) < self.rows && self.load(at).start == start {
            self.word(place(at).saturating_add(1)).store(nothing, Release);
            at = at.saturating_add(1);
        }
    }

    /// Whether a row, other than the first and the last one, is not in use.
    fn is_free(&self, at: usize) -> bool {
        at > 0 && at.saturating_add(1) < self.rows && self.load(at).fde == self.nothing()
    }

    /// The first row that starts at this address or behind it: there is one, as the last one is behind all code.
    fn search(&self, address: u64) -> usize {
        let (mut low, mut high) = (0, self.rows.saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            if self.load(middle).start < address {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    fn load(&self, at: usize) -> Row {
        let at = place(at);
        let word = |at| self.word(at).load(Relaxed);
        Row { start: word(at), fde: word(at.saturating_add(1)) }
    }

    fn store(&self, at: usize, row: Row) {
        let at = place(at);
        self.word(at).store(row.start, Release);
        self.word(at.saturating_add(1)).store(row.fde, Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let last = self.capacity.saturating_mul(2).saturating_add(ROWS / 8).saturating_sub(1);
        // SAFETY: a word of the mapping, which is aligned, and lives as long as this value.
        unsafe { self.base.cast::<AtomicU64>().add(at.min(last)).as_ref() }
    }
}

/// The first word of a row.
fn place(row: usize) -> usize {
    row.saturating_mul(2).saturating_add(ROWS / 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{BEHIND, Row, Table};

    /// Searches like LLVM's libunwind: any row with exactly this start, or the last one that starts before.
    fn look(table: &Table, address: u64) -> u64 {
        let (mut low, mut len) = (0, table.rows);
        while len > 1 {
            let middle = low + len / 2;
            let start = table.load(middle).start;
            if start == address {
                return table.load(middle).fde;
            } else if start < address {
                low = middle;
                len -= len / 2;
            } else {
                len /= 2;
            }
        }
        table.load(low).fde
    }

    #[test]
    fn rows_are_found_between_add_and_remove() {
        // Codes of 16 bytes by their start, with the number of their round in place of an FDE.
        let (mut codes, mut starts) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
        let renewed = |old, codes: &BTreeMap<u64, u64>, next| {
            let rows = codes.iter().map(|(&start, &fde)| (Row { start, fde }, start + 16));
            Table::new(old, codes.len(), next, rows).unwrap().unwrap()
        };
        let mut table = renewed(None, &codes, 0);
        let (mut seed, mut made) = (1_u64, 0);
        for round in 1..20_000_u64 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let start = (seed >> 40) % 20_000 + 1000;
            let retired: Vec<u64> =
                codes.range(start - 15..start + 16).map(|(&start, _)| start).collect();
            for other in retired {
                codes.remove(&other);
                table.remove(other);
            }
            if round % 3 > 0 {
                let before = codes.range(..start).next_back().map_or(0, |(start, _)| start + 16);
                let behind = codes.range(start..).next().map_or(BEHIND, |(start, _)| *start);
                codes.insert(start, round);
                starts.insert(round, start);
                if !table.add(Row { start, fde: round }, start + 16, before..behind) {
                    table = renewed(Some(table), &codes, start);
                    made += 1;
                }
            }
            if round % 97 == 0 {
                for address in 0..22_000 {
                    let truth = codes.range(..=address).next_back();
                    let truth = truth.filter(|(start, _)| address < **start + 16);
                    // As the FDE says whether the address is in its code.
                    let found = look(&table, address);
                    let is_in = starts
                        .get(&found)
                        .is_some_and(|start| (*start..*start + 16).contains(&address));
                    let found = is_in.then_some(found);
                    assert_eq!(found.as_ref(), truth.map(|(_, round)| round), "{round} {address}");
                }
            }
        }
        assert!(made < 400, "{made}");
        let starts: Vec<u64> = (0..table.rows).map(|at| table.load(at).start).collect();
        assert!(starts.is_sorted());
        assert_eq!(starts.last(), Some(&BEHIND));
    }

    /// Ascending, descending, scattered, and several places that grow in turns: what is written for each code stays below a
    /// constant.
    #[test]
    fn tables_are_rarely_made_in_any_order() {
        const COUNT: u64 = 30_000;
        let orders: [(&str, fn(u64) -> u64); 5] = [
            ("ascending", |number| number),
            ("descending", |number| COUNT - number),
            ("scattered", |number| number * 7919 % COUNT),
            ("eight places", |number| number % 8 * COUNT + number / 8),
            ("pages", |number| number / 600 * 7919 % 1000 * 8192 + number % 600),
        ];
        for (name, order) in orders {
            let mut codes = BTreeMap::<u64, u64>::new();
            let mut table = Table::new(None, 0, 0, std::iter::empty()).unwrap().unwrap();
            let mut written = 0;
            for number in 0..COUNT {
                let start = (1 << 40) + 32 * order(number);
                let before = codes.range(..start).next_back().map_or(0, |(start, _)| start + 17);
                let behind = codes.range(start..).next().map_or(BEHIND, |(start, _)| *start);
                codes.insert(start, number);
                if !table.add(Row { start, fde: number }, start + 17, before..behind) {
                    let rows = codes.iter().map(|(&start, &fde)| (Row { start, fde }, start + 17));
                    table = Table::new(Some(table), codes.len(), start, rows).unwrap().unwrap();
                    written += table.rows;
                }
            }
            assert!(written < 100 * COUNT as usize, "{name}: {written}");
        }
    }
}
