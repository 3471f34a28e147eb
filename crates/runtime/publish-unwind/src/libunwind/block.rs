//! The codes of one range of the address space, and libunwind's entry for it.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};

use fallible::{Map, Refused, VecDeque};

use super::found::{Entry, Found};
use super::pool::{Place, Pool};
use super::rows::{LEN, Row, Rows};
use crate::entries::Frames;

/// Size in bytes. A step of a walk takes time for each stretch with code.
pub(super) const SIZE: u64 = 4 << 20;
/// How long a table is kept unchanged after its use: a walk may be reading it. A walk that takes longer finds nothing,
/// or the content of a newer table.
const REST: Duration = Duration::from_secs(1);

/// All positions in it are offsets from its first byte.
#[derive(Debug)]
pub(super) struct Stretch {
    base: u64,
    /// Registered with the first code.
    entry: &'static Entry,
    is_registered: bool,
    pool: Pool,
    rows: Option<Rows>,
    /// Tables that are not in use any more, the oldest first.
    over: VecDeque<(Instant, Rows)>,
    codes: Map<u32, Told>,
}

/// A code: its end, and its FDE.
#[derive(Clone, Copy, Debug)]
struct Told {
    end: u32,
    place: Place,
    /// The second half of its row.
    description: i32,
}

impl Stretch {
    /// `Err` if an allocation fails; `None` if there is no address space for it.
    pub(super) fn new(base: u64) -> Result<Option<Self>, Refused> {
        let Some(pool) = Pool::new() else { return Ok(None) };
        let entry = fallible::leaked(Entry::new(base, pool.address(), LEN))?;
        let codes = Map::new();
        let over = VecDeque::new();
        Ok(Some(Self { base, entry, is_registered: false, pool, rows: None, over, codes }))
    }

    /// Registers the part of a code in this stretch, where no other code is.
    pub(super) fn add(&mut self, found: &Found, frames: Frames<'_>) -> Result<(), Refused> {
        let (start, end) = self.within(frames.start, frames.end);
        let Some(place) = self.pool.put(frames.bytes) else { return Ok(()) };
        let told = Told { end, place, description: place.offset(frames.common) };
        if let Err((refused, _)) = self.codes.try_insert(start, told) {
            self.pool.take_back(place);
            return Err(refused);
        }
        let row = Row { start, description: told.description };
        if !self.rows.as_ref().is_some_and(|rows| rows.add(row, end)) && !self.renew() {
            self.codes.remove(&start);
            self.pool.take_back(place);
            return Ok(());
        }
        // After the table's last change. It never decreases, so a walk that reads it twice gets consistent results.
        self.entry.end_ip.fetch_max(self.base.saturating_add(u64::from(end)), Release);
        if !self.is_registered {
            self.is_registered = true;
            // SAFETY: it is never freed, nor is the memory of any table to which it refers.
            unsafe { found.register(self.entry) };
        }
        Ok(())
    }

    /// Removes all codes that overlap with this range. Returns whether there were any.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> bool {
        let (start, end) = self.within(start, end);
        let mut any = false;
        while let Some((&first, &told)) = self.codes.last_below(&end)
            && told.end > start
        {
            self.codes.remove(&first);
            if let Some(rows) = &self.rows {
                rows.remove(first);
            }
            self.pool.take_back(told.place);
            any = true;
        }
        any
    }

    fn within(&self, start: u64, end: u64) -> (u32, u32) {
        let within = |address: u64| address.saturating_sub(self.base).min(SIZE) as u32;
        (within(start), within(end))
    }

    /// Creates a new table of all codes; false if there is no memory.
    fn renew(&mut self) -> bool {
        let rested = self.over.front().is_some_and(|(since, _)| since.elapsed() >= REST);
        let oldest = if rested { self.over.pop_front() } else { None };
        let wiped = oldest.and_then(|(_, rows)| rows.wipe());
        let codes = self.codes.iter();
        let rows = codes.map(|(&start, told)| Row { start, description: told.description });
        let Some(new) = Rows::new(wiped, self.codes.len(), rows) else { return false };
        self.entry.table.store(new.address(), Release);
        if let Some(old) = self.rows.replace(new) {
            // A table that cannot be stored stays unchanged for ever, because walks may be in it.
            let _ = self.over.try_push_back((Instant::now(), old));
        }
        true
    }
}
