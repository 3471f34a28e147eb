//! The codes of one range of the address space, and libunwind's entry for it.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};

use fallible::{Map, Refused, VecDeque};

use super::functions::{Entry, Functions};
use super::pool::{Place, Pool};
use super::rows::{BEHIND, LEN, Rows};
use crate::entries::Frames;
use crate::rows::{Row, Rows as _};

/// Size in bytes. A step of a walk takes time for each block with code.
pub(super) const SIZE: u64 = 4 << 20;
/// How long a table is kept unchanged after its use: a walk may be reading it. A walk that takes longer finds nothing,
/// or the content of a newer table.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// All positions in it are offsets from its first byte.
#[derive(Debug)]
pub(super) struct Block {
    base: u64,
    /// Registered with the first code.
    entry: &'static Entry,
    is_registered: bool,
    pool: Pool,
    rows: Option<Rows>,
    /// Tables that are not in use any more, the oldest first.
    retired: VecDeque<(Instant, Rows)>,
    codes: Map<u32, RegisteredCode>,
}

/// A code: its end, and its FDE.
#[derive(Clone, Copy, Debug)]
struct RegisteredCode {
    end: u32,
    place: Place,
    /// The place of the FDE behind its CIE.
    fde: u32,
}

impl RegisteredCode {
    fn row(&self, start: u32) -> Row {
        Row { start: u64::from(start), fde: u64::from(self.fde) }
    }
}

impl Block {
    /// `Err` if an allocation fails; `None` if there is no address space for it.
    pub(super) fn new(base: u64) -> Result<Option<Self>, Refused> {
        let Some(pool) = Pool::new() else { return Ok(None) };
        let entry = fallible::leaked(Entry::new(base, pool.address(), LEN))?;
        let codes = Map::new();
        let retired = VecDeque::new();
        Ok(Some(Self { base, entry, is_registered: false, pool, rows: None, retired, codes }))
    }

    /// Registers the part of a code in this block, where no other code is.
    pub(super) fn add(&mut self, functions: &Functions, frames: Frames<'_>) -> Result<(), Refused> {
        let (start, end) = self.within(frames.start, frames.end);
        let Some(place) = self.pool.put(frames.bytes) else { return Ok(()) };
        let before = self.codes.last_below(&start).map_or(0, |(_, code)| u64::from(code.end));
        let behind = self.codes.first_from(&start).map_or(BEHIND, |(&start, _)| u64::from(start));
        let code_entry = RegisteredCode { end, place, fde: place.offset(frames.common) };
        if let Err((refused, _)) = self.codes.try_insert(start, code_entry) {
            self.pool.take_back(place);
            return Err(refused);
        }
        let code = (code_entry.row(start), u64::from(end));
        let has_row = self.rows.as_ref().is_some_and(|rows| rows.add(code, &(before..behind)));
        if !has_row && !self.renew(start) {
            self.codes.remove(&start);
            self.pool.take_back(place);
            return Ok(());
        }
        // After the table's last change. It never decreases, so a walk that reads it twice gets consistent results.
        self.entry.end_ip.fetch_max(self.base.saturating_add(u64::from(end)), Release);
        if !self.is_registered {
            self.is_registered = true;
            // SAFETY: it is never freed, nor is the memory of any table to which it refers.
            unsafe { functions.register(self.entry) };
        }
        Ok(())
    }

    /// Removes all codes that overlap with this range. Returns whether there were any.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> bool {
        let (start, end) = self.within(start, end);
        let mut any = false;
        while let Some((&first, &code_entry)) = self.codes.last_below(&end)
            && code_entry.end > start
        {
            self.codes.remove(&first);
            if let Some(rows) = &self.rows {
                rows.remove(u64::from(first));
            }
            self.pool.take_back(code_entry.place);
            any = true;
        }
        any
    }

    fn within(&self, start: u64, end: u64) -> (u32, u32) {
        let within = |address: u64| address.saturating_sub(self.base).min(SIZE) as u32;
        (within(start), within(end))
    }

    /// Makes a new table of all codes, with space for more beside `next`; false if there is no memory.
    fn renew(&mut self, next: u32) -> bool {
        let is_reusable =
            self.retired.front().is_some_and(|(since, _)| since.elapsed() >= GRACE_PERIOD);
        let oldest = if is_reusable { self.retired.pop_front() } else { None };
        let wiped = oldest.and_then(|(_, rows)| rows.wipe());
        let codes = self.codes.iter();
        let codes = codes.map(|(&start, code)| (code.row(start), u64::from(code.end)));
        let new = Rows::new(wiped, self.codes.len(), u64::from(next), codes);
        let Some(new) = new else { return false };
        self.entry.table.store(new.address(), Release);
        if let Some(old) = self.rows.replace(new) {
            // A table that cannot be stored stays unchanged for ever, because walks may be in it.
            let _ = self.retired.try_push_back((Instant::now(), old));
        }
        true
    }
}
