//! The memory of the debugged process.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;

use code_log::Source;

use crate::abi::{SUCCESS, TargetRead};

/// Pages can be read as a whole or not at all. No known system has smaller ones.
const PAGE: u64 = 4096;

/// The memory of a live process or of a core file, read through gdb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory(TargetRead);

impl Memory {
    /// # Safety
    /// `read` is gdb's: it writes `size` bytes to the given buffer, or fails. The value is used only during gdb's call.
    pub(crate) unsafe fn new(read: TargetRead) -> Self {
        Self(read)
    }

    /// Fills `buffer`. Returns whether all of it could be read.
    pub(crate) fn read(self, address: u64, buffer: &mut [u8]) -> bool {
        // SAFETY: guaranteed by the caller of `new`; `buffer` has this size.
        c_int::try_from(buffer.len()).is_ok_and(
            |size| unsafe { (self.0)(address, buffer.as_mut_ptr().cast(), size) } == SUCCESS,
        )
    }

    pub(crate) fn word(self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }
}

/// Memory from an address on, as a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryRange {
    pub(crate) memory: Memory,
    pub(crate) start: u64,
    pub(crate) size: u64,
}

impl Source for MemoryRange {
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(at)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let Some(buffer) = buffer.get_mut(..count) else { return Ok(0) };
        let Some(address) = self.start.checked_add(at) else { return Ok(0) };
        if self.memory.read(address, buffer) {
            return Ok(count);
        }
        // A core file contains only the memory that was in use; the rest reads as the end.
        let mut done = 0_usize;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let from = address.saturating_add(done as u64);
            let page = PAGE.saturating_sub(from % PAGE) as usize;
            let count = rest.len().min(page);
            if !rest.get_mut(..count).is_some_and(|page| self.memory.read(from, page)) {
                break;
            }
            done = done.saturating_add(count);
        }
        Ok(done)
    }

    /// The process is stopped while gdb calls.
    fn may_change(&self) -> bool {
        false
    }
}
