//! Codes of one stretch of address space, and libunwind's entry for it.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};

use super::found::{Entry, Found};
use super::pool::{Place, Pool};
use super::rows::{LEN, Row, Rows};
use crate::entries::Frames;

/// Bytes of address space. A walk's step takes time for each stretch with code.
pub(super) const SIZE: u64 = 4 << 20;
/// For so long, a table that is in use no more is left as it is: a walk may be reading it. One that takes longer finds
/// nothing, or what a newer table says.
const REST: Duration = Duration::from_secs(1);

/// Everything in it is told as a distance from its first byte.
#[derive(Debug)]
pub(super) struct Stretch {
    base: u64,
    /// Registered with the first code.
    entry: &'static Entry,
    is_registered: bool,
    pool: Pool,
    rows: Option<Rows>,
    /// Tables that are in use no more, the oldest first.
    over: VecDeque<(Instant, Rows)>,
    codes: BTreeMap<u32, Told>,
}

/// A code: where it ends, and its description.
#[derive(Clone, Copy, Debug)]
struct Told {
    end: u32,
    place: Place,
    /// The second part of its row.
    description: i32,
}

impl Stretch {
    /// `None` without memory.
    pub(super) fn new(base: u64) -> Option<Self> {
        let pool = Pool::new()?;
        let entry = Box::leak(Box::new(Entry::new(base, pool.address(), LEN)));
        let codes = BTreeMap::new();
        let over = VecDeque::new();
        Some(Self { base, entry, is_registered: false, pool, rows: None, over, codes })
    }

    /// Tells of the part of a code that lies here, where no other does.
    pub(super) fn add(&mut self, found: &Found, frames: Frames<'_>) {
        let (start, end) = self.within(frames.start, frames.end);
        let Some(place) = self.pool.put(frames.bytes) else { return };
        let told = Told { end, place, description: place.offset(frames.common) };
        self.codes.insert(start, told);
        let row = Row { start, description: told.description };
        if !self.rows.as_ref().is_some_and(|rows| rows.add(row, end)) && !self.renew() {
            self.codes.remove(&start);
            return self.pool.take_back(place);
        }
        // Behind the table's last change. It never becomes less, so that whoever compares with it twice is right.
        self.entry.end_ip.fetch_max(self.base.saturating_add(u64::from(end)), Release);
        if !self.is_registered {
            self.is_registered = true;
            // SAFETY: it is never freed, nor is the memory of any table that it leads to.
            unsafe { found.register(self.entry) };
        }
    }

    /// Forgets what lies here, wholly or not; whether there was any.
    pub(super) fn forget(&mut self, start: u64, end: u64) -> bool {
        let (start, end) = self.within(start, end);
        let mut any = false;
        while let Some((&first, &told)) = self.codes.range(..end).next_back()
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

    /// Makes a table of all codes; false without memory.
    fn renew(&mut self) -> bool {
        let rested = self.over.front().is_some_and(|(since, _)| since.elapsed() >= REST);
        let oldest = if rested { self.over.pop_front() } else { None };
        let wiped = oldest.and_then(|(_, rows)| rows.wipe());
        let codes = self.codes.iter();
        let rows = codes.map(|(&start, told)| Row { start, description: told.description });
        let Some(new) = Rows::new(wiped, rows) else { return false };
        self.entry.table.store(new.address(), Release);
        if let Some(old) = self.rows.replace(new) {
            self.over.push_back((Instant::now(), old));
        }
        true
    }
}
