//! Slots for code in the code memory.

use crate::error::Error;
use crate::memory::{Memory, MemoryKind};

/// Slots start and end on multiples of this, as the code's own alignment wants.
const ALIGNMENT: usize = 64;
/// What unused bytes are: a breakpoint, so that nothing runs on unseen.
const TRAP: u8 = 0xcc;

/// A range of the arena that one code at a time may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// The code memory and who has which part of it.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Memory,
    /// Where nobody ever was.
    next: usize,
    /// The free slots, the last freed last.
    free: Vec<Slot>,
}

impl Arena {
    pub(crate) fn new(kind: MemoryKind, size: usize) -> Result<Self, Error> {
        let size = size.next_multiple_of(rustix::param::page_size());
        Ok(Self { memory: Memory::new(kind, size)?, next: 0, free: Vec::new() })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Where a byte of the arena runs.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        (self.memory.address() + offset) as u64
    }

    /// Finds room. A slot that was freed is taken again, the last freed first, even by a code that
    /// does not fill it: then the next code has its predecessor's very address.
    pub(crate) fn allocate(&mut self, size: usize) -> Result<Slot, Error> {
        let size = size.next_multiple_of(ALIGNMENT);
        if let Some(found) = self.free.iter().rposition(|slot| slot.size >= size) {
            return Ok(self.free.remove(found));
        }
        let slot = Slot { offset: self.next, size };
        if size > self.memory.size() - self.next {
            return Err(Error::ArenaFull { size });
        }
        self.next += size;
        Ok(slot)
    }

    /// Fills slots, each with its parts at the given offsets in it and traps in between.
    pub(crate) fn fill<'a>(
        &mut self,
        slots: impl IntoIterator<Item = (Slot, [(usize, &'a [u8]); 3])>,
    ) -> Result<(), Error> {
        self.memory.write(|memory| {
            for (slot, parts) in slots {
                let place = &mut memory[slot.offset..slot.offset + slot.size];
                place.fill(TRAP);
                for (offset, bytes) in parts {
                    place[offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
        })
    }

    /// Copies a slot's content to another that is at least as large.
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) -> Result<(), Error> {
        let copy = |memory: &mut [u8]| {
            memory.copy_within(from.offset..from.offset + from.size, to.offset);
        };
        self.memory.write(copy)
    }

    /// Gives a slot back and lets whoever still runs into it trap.
    pub(crate) fn release(&mut self, slot: Slot) -> Result<(), Error> {
        self.memory.write(|memory| memory[slot.offset..slot.offset + slot.size].fill(TRAP))?;
        self.free.push(slot);
        Ok(())
    }
}
