//! A table in the file: its entries, and the disk space behind them.

use crate::file::File;
use crate::slots::{Slot, Slots};

/// Disk space is allocated in steps of this size.
const STEP: usize = 64 << 10;

/// A table that has disk space for the part in use.
#[derive(Debug)]
pub(crate) struct Area {
    slots: Slots,
    disk_space: DiskSpace,
}

impl Area {
    /// A table in `range` of the file, with entries of multiples of `unit`.
    pub(crate) fn new(range: &std::ops::Range<usize>, unit: usize) -> Self {
        Self {
            slots: Slots::new(range.start, range.end, unit),
            disk_space: DiskSpace { to: range.start, end: range.end, step: STEP },
        }
    }

    /// Allocates an entry that can be written to.
    pub(crate) fn take(&mut self, file: &File, size: usize) -> Option<Slot> {
        let slot = self.slots.take(size)?;
        // Four more bytes, for the zeros that end a section.
        if !self.disk_space.reserve_to(file, slot.end().saturating_add(4)) {
            self.slots.release(slot);
            return None;
        }
        Some(slot)
    }

    pub(crate) fn release(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    /// The end of everything that was ever used.
    pub(crate) fn end(&self) -> usize {
        self.slots.next()
    }
}

/// How far a part of the file has disk space.
#[derive(Debug)]
pub(crate) struct DiskSpace {
    pub(crate) to: usize,
    pub(crate) end: usize,
    pub(crate) step: usize,
}

impl DiskSpace {
    /// Ensures that there is disk space up to `end`.
    pub(crate) fn reserve_to(&mut self, file: &File, end: usize) -> bool {
        if end <= self.to {
            return true;
        }
        // The next part may belong to another table.
        let generous = end.next_multiple_of(self.step).min(self.end).max(end);
        let all = [generous, end]
            .into_iter()
            .find(|to| file.back(self.to, to.saturating_sub(self.to)).is_ok());
        if let Some(to) = all {
            self.to = to;
        }
        all.is_some()
    }
}
