//! How much of a dump's current record is still to be written: a stream writes a record in several parts, and most of them
//! complete nothing that could be announced.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jitdump::{RECORD_HEADER_SIZE, RecordId};

/// What is known about the record that a stream writes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Unfinished(AtomicUsize);

/// What is known after a write: the number of bytes that the record lacks, times 2, plus [`IS_ANNOUNCED_LATER`]. So twice the size
/// of a write that need not be read is less than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacking(usize);

/// The file need not be read when the record is complete.
const IS_ANNOUNCED_LATER: usize = 1;
/// The last record is complete, and the next one has not begun.
const BETWEEN: Lacking = Lacking(IS_ANNOUNCED_LATER);
/// The file must be read after each write.
const UNKNOWN: Lacking = Lacking(0);
/// Larger records are not followed: by so much at most, reading is too late if a writer does something that is not noticed.
const LARGEST: u32 = 1 << 16;

impl Unfinished {
    /// The file must be read after each write.
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(UNKNOWN.0))
    }

    /// Everything that was written has been read, and ends with a record if `is_between`.
    pub(crate) fn was_read(&self, is_between: bool) {
        self.set(if is_between { BETWEEN } else { UNKNOWN });
    }

    /// Something changed the file, or the place at which the stream writes.
    pub(crate) fn forget(&self) {
        self.set(UNKNOWN);
    }

    /// What is known after the next so many bytes of the record are written. `None` if it has not begun, or if the file must be read then.
    #[inline(always)]
    pub(crate) fn within(&self, size: usize) -> Option<Lacking> {
        Lacking(self.0.load(Relaxed)).less(size)
    }

    /// The same if the bytes begin a record. `head` is called for the first 8 of them if there are as many as a record's header has.
    #[inline(always)]
    pub(crate) fn at_beginning(
        &self,
        size: usize,
        head: impl FnOnce() -> Option<[u8; 8]>,
    ) -> Option<Lacking> {
        if Lacking(self.0.load(Relaxed)) != BETWEEN || size < RECORD_HEADER_SIZE as usize {
            return None;
        }
        Lacking::of_record(head()?)?.less(size)
    }

    /// Sets what either returned.
    #[inline(always)]
    pub(crate) fn set(&self, lacking: Lacking) {
        self.0.store(lacking.0, Relaxed);
    }
}

impl Lacking {
    #[inline(always)]
    fn less(self, size: usize) -> Option<Self> {
        // No size is so large that a bit is lost.
        let written = size << 1;
        if written < self.0 { Some(Self(self.0 - written)) } else { None }
    }

    /// What a record lacks that begins with these bytes of its header, which has the byte order of this machine.
    #[inline(always)]
    fn of_record(head: [u8; 8]) -> Option<Self> {
        let head = u64::from_ne_bytes(head);
        let words = [head as u32, (head >> 32) as u32];
        let [id, size] = if cfg!(target_endian = "little") { words } else { [words[1], words[0]] };
        let id = RecordId(id);
        if !id.is_known() || size < id.min_size() || size > LARGEST {
            return None;
        }
        // What precedes a code is announced with the code.
        let is_announced_later = id == RecordId::DEBUG_INFO || id == RecordId::UNWINDING_INFO;
        let flag = if is_announced_later { IS_ANNOUNCED_LATER } else { 0 };
        Some(Self((size as usize) << 1 | flag))
    }
}
