//! The table that walks search while it is being changed: an `.eh_frame_hdr` with absolute addresses of 64 bits.
//!
//! A walk takes the last row whose start is not behind the address that it looks for, or any row whose start is exactly this
//! address (`findFDE` in `EHHeaderParser.hpp`), and then checks that the address is within the code of the row's FDE. See
//! `rows.rs` for how it is changed.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use fallible::{Refused, Vec};
use unwind_info::{Machine, Unwind};

use crate::memory::map;
use crate::rows::{Code, Plan, Row, Rows};

/// What is at the beginning: the FDE of no code, behind its CIE; zeros, which end `.eh_frame`; and the header.
const HEADER: usize = 256;
const ROWS: usize = HEADER + 16;
/// The place of the zeros.
const END: usize = HEADER - 8;
/// Behind all code.
const BEHIND: u64 = u64::MAX;
const ROW: usize = 16;

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
    /// A table of `count` codes in ascending order, with space for more beside the code at `next`. The memory is that of an old
    /// table if it is large enough. `None` without memory.
    pub(super) fn new(
        old: Option<Self>,
        count: usize,
        next: u64,
        codes: impl Iterator<Item = Code> + Clone,
    ) -> Result<Option<Self>, Refused> {
        let Some(plan) = Plan::new(count, usize::MAX, next, codes.clone()) else { return Ok(None) };
        let rows = plan.rows(codes.clone(), BEHIND, |_, _, _| ());
        let table = match old.filter(|old| old.capacity >= rows) {
            Some(old) => Some(old),
            None => Self::map(rows)?,
        };
        let Some(mut table) = table else { return Ok(None) };
        table.rows = rows;
        plan.rows(codes, BEHIND, |at, row, is_used| {
            table.set(at, row);
            if !is_used {
                table.clear(at);
            }
        });
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
        // SAFETY: it fits into the new memory, whose address no other code has.
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

    fn fde(&self, at: usize) -> u64 {
        self.word(place(at).saturating_add(1)).load(Relaxed)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let last = self.capacity.saturating_mul(2).saturating_add(ROWS / 8).saturating_sub(1);
        // SAFETY: a word of the mapping, which is aligned, and lives as long as this value.
        unsafe { self.base.cast::<AtomicU64>().add(at.min(last)).as_ref() }
    }
}

impl Rows for Table {
    const ANY: bool = true;

    fn len(&self) -> usize {
        self.rows
    }

    fn start(&self, at: usize) -> u64 {
        self.word(place(at)).load(Relaxed)
    }

    fn is_free(&self, at: usize) -> bool {
        at.saturating_add(1) < self.rows && self.fde(at) == self.nothing()
    }

    fn move_to(&self, at: usize, start: u64) {
        self.word(place(at)).store(start, Release);
    }

    /// The start first: an FDE is found only for the addresses of its code.
    fn set(&self, at: usize, row: Row) {
        self.word(place(at)).store(row.start, Release);
        self.word(place(at).saturating_add(1)).store(row.fde, Release);
    }

    fn clear(&self, at: usize) {
        self.word(place(at).saturating_add(1)).store(self.nothing(), Release);
    }
}

/// The first word of a row.
fn place(row: usize) -> usize {
    row.saturating_mul(2).saturating_add(ROWS / 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{BEHIND, Row, Rows, Table};

    /// Searches like LLVM's libunwind: any row with exactly this start, or the last one that starts before.
    fn look(table: &Table, address: u64) -> u64 {
        let (mut low, mut len) = (0, table.rows);
        while len > 1 {
            let middle = low + len / 2;
            let start = table.start(middle);
            if start == address {
                return table.fde(middle);
            } else if start < address {
                low = middle;
                len -= len / 2;
            } else {
                len /= 2;
            }
        }
        table.fde(low)
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
                if !table.add((Row { start, fde: round }, start + 16), &(before..behind)) {
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
        let starts: Vec<u64> = (0..table.rows).map(|at| table.start(at)).collect();
        assert!(starts.is_sorted());
        assert_eq!(starts.last(), Some(&BEHIND));
    }

    type Order = fn(u64) -> u64;

    /// Ascending, descending, scattered, and several places that grow in turns: what is written for each code stays below a
    /// constant.
    #[test]
    fn tables_are_rarely_made_in_any_order() {
        const COUNT: u64 = 30_000;
        let orders: [(&str, Order); 5] = [
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
                if !table.add((Row { start, fde: number }, start + 17), &(before..behind)) {
                    let rows = codes.iter().map(|(&start, &fde)| (Row { start, fde }, start + 17));
                    table = Table::new(Some(table), codes.len(), start, rows).unwrap().unwrap();
                    written += table.rows;
                }
            }
            assert!(written < 100 * COUNT as usize, "{name}: {written}");
        }
    }
}
