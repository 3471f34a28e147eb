//! Moved code: its group is written again, for another address.

use std::sync::atomic::Ordering::Relaxed;

use jitdump::RecordId;

use super::group::Stamp;
use super::layout::{FIRST_ITEM, TAIL, code, debug, load, unpair};
use super::{Log, LogEntry, Position};

impl Log {
    /// Announces the code at `position` again, at `address`. `None` if it is not known or dead, or if there is no
    /// space.
    pub(crate) fn move_to(
        &self,
        position: Position,
        index: u32,
        address: u64,
        bytes: Option<&[u8]>,
        tid: u32,
    ) -> Option<LogEntry> {
        let (at, old) = self.code_at(position, index)?;
        // While it is alive, its space is not reused.
        if old.at::<{ code::DIED }>().load(Relaxed) != 0 {
            return None;
        }
        let size = unpair(old.at::<{ code::GROUP_SIZE }>().load(Relaxed)).0 as usize;
        let from = old.at::<{ code::ADDRESS }>().load(Relaxed);
        let first = unpair(old.at::<0>().load(Relaxed)).1 as usize;
        let items = unpair(old.at::<TAIL>().load(Relaxed)).1 as usize;
        let words = self.mapping.many_words(at, size)?.get(FIRST_ITEM / 8..)?;
        let (head, behind) = (first.checked_sub(FIRST_ITEM)?, size.checked_sub(first)?);
        self.write_group(size, behind, items, address, tid, |buffer, stamp| {
            for (place, word) in buffer.as_chunks_mut().0.iter_mut().zip(words) {
                *place = word.load(Relaxed).to_ne_bytes();
            }
            // If the space is larger than the group, the padding is behind the tail of the first record.
            let behind = buffer.len().saturating_sub(behind);
            if behind > head {
                buffer.copy_within(head..head + (buffer.len() - behind), behind);
            }
            MovedGroup { from, to: address, bytes, stamp }.patch(buffer, behind);
        })
    }
}

struct MovedGroup<'a> {
    from: u64,
    to: u64,
    bytes: Option<&'a [u8]>,
    stamp: Stamp,
}

impl MovedGroup<'_> {
    /// Sets the new address in a group, from its first item on. `behind` is the offset of its other records.
    fn patch(&self, group: &mut [u8], behind: usize) {
        let size = (group.len() + FIRST_ITEM) as u32;
        put(group, code::DIED - FIRST_ITEM, &0_u64.to_ne_bytes());
        put(group, code::INDEX - FIRST_ITEM, &self.stamp.index.to_ne_bytes());
        put(group, code::GROUP_SIZE - FIRST_ITEM, &size.to_ne_bytes());
        put(group, code::TID - FIRST_ITEM, &self.stamp.tid.to_ne_bytes());
        let mut rest = group.get_mut(behind..).unwrap_or_default();
        while let (Some(id), Some(size)) = (get_u32(rest, 0), get_u32(rest, 4)) {
            let Some((record, behind)) = rest.split_at_mut_checked(size as usize) else { return };
            if record.len() <= code::TIME {
                return;
            }
            put(record, code::TIME, &self.stamp.time.to_ne_bytes());
            match RecordId(id) {
                RecordId::DEBUG_INFO => self.patch_lines(record),
                RecordId::LOAD => self.patch_load(record),
                _ => {}
            }
            rest = behind;
        }
    }

    fn patch_lines(&self, record: &mut [u8]) {
        put(record, debug::ADDRESS, &self.to.to_ne_bytes());
        let count = get_u64(record, debug::COUNT).unwrap_or(0);
        let mut entries = record.get_mut(debug::ENTRIES..).unwrap_or_default();
        for _ in 0..count {
            let Some(address) = get_u64(entries, 0) else { return };
            let address = address.wrapping_sub(self.from).wrapping_add(self.to);
            put(entries, 0, &address.to_ne_bytes());
            let name = entries.get(debug::ENTRY_FILE..).unwrap_or_default();
            let Some(length) = name.iter().position(|byte| *byte == 0) else { return };
            entries = entries.get_mut(debug::ENTRY_FILE + length + 1..).unwrap_or_default();
        }
    }

    fn patch_load(&self, record: &mut [u8]) {
        put(record, load::TID, &self.stamp.tid.to_ne_bytes());
        put(record, load::VMA, &self.to.to_ne_bytes());
        put(record, load::ADDRESS, &self.to.to_ne_bytes());
        put(record, load::INDEX, &self.stamp.index.to_ne_bytes());
        let size = get_u64(record, load::SIZE).unwrap_or(0);
        let name = record.get(load::NAME..).unwrap_or_default();
        let Some(length) = name.iter().position(|byte| *byte == 0) else { return };
        // Relocated code has different bytes; but if the size differs, it is not the same code.
        if let Some(bytes) = self.bytes.filter(|bytes| bytes.len() as u64 == size) {
            put(record, load::NAME + length + 1, bytes);
        }
    }
}

fn put(record: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = record.get_mut(at..).and_then(|rest| rest.get_mut(..bytes.len())) {
        place.copy_from_slice(bytes);
    }
}

fn get_u32(record: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?))
}

fn get_u64(record: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?))
}
