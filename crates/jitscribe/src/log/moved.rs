//! Code that moved: its group once more, for another address.

use std::sync::atomic::Ordering::Relaxed;

use jitdump::RecordId;

use super::group::Stamp;
use super::layout::{FIRST_ITEM, TAIL, code, unpair};
use super::{Log, Position};
use crate::clock;

// Offsets in records that follow the first of a group.
const TIME: usize = 8;
const DEBUG_ADDRESS: usize = 16;
const DEBUG_COUNT: usize = 24;
const ENTRY_FIELDS: usize = 16;
const LOAD_TID: usize = 20;
const LOAD_VMA: usize = 24;
const LOAD_ADDRESS: usize = 32;
const LOAD_SIZE: usize = 40;
const LOAD_INDEX: usize = 48;
const LOAD_NAME: usize = 56;

impl Log {
    /// Announces the code at `position` again, at `address`. `None` if it is not known, or there is no room.
    pub(crate) fn move_to(
        &self,
        position: Position,
        index: u32,
        address: u64,
        bytes: Option<&[u8]>,
        tid: u32,
    ) -> Option<Position> {
        let old_at = position.get() as usize * 8;
        if !self.is_code(position, index) {
            return None;
        }
        let size = self.mapping.half(old_at + code::GROUP_SIZE).load(Relaxed) as usize;
        // A copy, for a chunk of the old code may be used anew as soon as the lane asks for room.
        let mut group = vec![0; size];
        for (place, at) in group.chunks_exact_mut(8).zip((old_at..).step_by(8)) {
            place.copy_from_slice(&self.mapping.word(at).load(Relaxed).to_ne_bytes());
        }
        let old_address = self.mapping.word(old_at + code::ADDRESS).load(Relaxed);
        let first = unpair(self.mapping.word(old_at).load(Relaxed)).1 as usize;

        let lane = self.lanes.enter();
        let (at, room) = match self.take_room(&lane, size) {
            Some(room) => room,
            None => {
                drop(lane);
                self.left_out();
                return None;
            }
        };
        // What the room is larger than the group is padding, behind the tail of the first record.
        let padding = room - size;
        let stamp = Stamp {
            time: clock::now(),
            pid: self.pid.load(Relaxed),
            tid,
            index: lane.next_index(),
        };
        Moved { from: old_address, to: address, bytes, stamp }.patch(&mut group, first, room);
        // SAFETY: as in `Log::load`.
        #[allow(unsafe_code)]
        let place = unsafe { self.mapping.room(at + FIRST_ITEM, room - FIRST_ITEM) };
        if let (Some(items), Some(records)) = (group.get(FIRST_ITEM..first), group.get(first..))
            && let Some((head, rest)) = place.split_at_mut_checked(items.len())
            && let Some(rest) = rest.get_mut(padding..)
        {
            head.copy_from_slice(items);
            rest.copy_from_slice(records);
        }
        let tail = u64::from_ne_bytes(group.get(TAIL..FIRST_ITEM)?.try_into().ok()?);
        self.commit(at, first + padding, tail, stamp.time, address);
        super::position(at)
    }
}

struct Moved<'a> {
    from: u64,
    to: u64,
    bytes: Option<&'a [u8]>,
    stamp: Stamp,
}

impl Moved<'_> {
    /// Puts the new place into the records of a group whose first one has `first` bytes.
    fn patch(&self, group: &mut [u8], first: usize, room: usize) {
        put(group, code::DIED, &0_u64.to_ne_bytes());
        put(group, code::INDEX, &self.stamp.index.to_ne_bytes());
        put(group, code::GROUP_SIZE, &(room as u32).to_ne_bytes());
        put(group, code::TID, &self.stamp.tid.to_ne_bytes());
        let mut rest = group.get_mut(first..).unwrap_or_default();
        while let (Some(id), Some(size)) = (get_u32(rest, 0), get_u32(rest, 4)) {
            let Some((record, behind)) = rest.split_at_mut_checked(size as usize) else { return };
            if record.len() < LOAD_TID {
                return;
            }
            put(record, TIME, &self.stamp.time.to_ne_bytes());
            match RecordId(id) {
                RecordId::DEBUG_INFO => self.patch_lines(record),
                RecordId::LOAD => self.patch_load(record),
                _ => {}
            }
            rest = behind;
        }
    }

    fn patch_lines(&self, record: &mut [u8]) {
        put(record, DEBUG_ADDRESS, &self.to.to_ne_bytes());
        let count = get_u64(record, DEBUG_COUNT).unwrap_or(0);
        let mut entries = record.get_mut(TAIL..).unwrap_or_default();
        for _ in 0..count {
            let Some(address) = get_u64(entries, 0) else { return };
            let address = address.wrapping_sub(self.from).wrapping_add(self.to);
            put(entries, 0, &address.to_ne_bytes());
            let name = entries.get(ENTRY_FIELDS..).unwrap_or_default();
            let Some(length) = name.iter().position(|byte| *byte == 0) else { return };
            entries = entries.get_mut(ENTRY_FIELDS + length + 1..).unwrap_or_default();
        }
    }

    fn patch_load(&self, record: &mut [u8]) {
        put(record, LOAD_TID, &self.stamp.tid.to_ne_bytes());
        put(record, LOAD_VMA, &self.to.to_ne_bytes());
        put(record, LOAD_ADDRESS, &self.to.to_ne_bytes());
        put(record, LOAD_INDEX, &self.stamp.index.to_ne_bytes());
        let size = get_u64(record, LOAD_SIZE).unwrap_or(0);
        let name = record.get(LOAD_NAME..).unwrap_or_default();
        let Some(length) = name.iter().position(|byte| *byte == 0) else { return };
        // Relocated code differs from what it was; code of another size is not the same code.
        if let Some(bytes) = self.bytes.filter(|bytes| bytes.len() as u64 == size) {
            put(record, LOAD_NAME + length + 1, bytes);
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
