//! FDEs in memory that are registered with an unwinder.
#![allow(unsafe_code)]

use std::ptr;

use fallible::{Refused, Vec};

use crate::entries::{Entry, Frames};
use crate::functions::Functions;
use crate::notes::Note;

/// An FDE, behind its CIE and before a word of zeros. It does not move: a walk that has found it continues to read it
/// after the unwinder has released its lock.
#[derive(Debug)]
pub(crate) struct Description {
    /// Words, because unwinders read fields of 8 bytes.
    words: Vec<u64>,
    /// Size of the CIE.
    common: usize,
}

impl Description {
    /// `None` if it is too short to be one.
    pub(crate) fn new(entry: &Entry) -> Result<Option<Self>, Refused> {
        let Some(frames) = entry.frames() else { return Ok(None) };
        let common = frames.common;
        let (chunks, _) = entry.bytes.as_chunks::<8>();
        let mut words = Vec::new();
        words.try_reserve_exact(chunks.len().saturating_add(1))?;
        words.extend(chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
        words.push(0);
        Ok(Some(Self { words, common }))
    }

    /// The same at another place.
    pub(crate) fn copy(&self) -> Result<Self, Refused> {
        let mut words = Vec::new();
        words.try_reserve_exact(self.words.len())?;
        words.extend_from_slice(&self.words);
        Ok(Self { words, common: self.common })
    }

    /// The code from `start` to `end`, and its CFI.
    pub(crate) fn frames(&self, start: u64, end: u64) -> Frames<'_> {
        let size = self.words.len().saturating_sub(1).saturating_mul(8);
        // SAFETY: the bytes of all words except the zeros.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), size) };
        Frames { start, end, bytes, common: self.common }
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.words.as_ptr().cast::<u8>().wrapping_add(self.common)
    }
}

/// An FDE that is registered by itself; dropping it deregisters it.
#[derive(Debug)]
pub(crate) struct Single {
    functions: Functions,
    description: Description,
}

impl Single {
    pub(crate) fn register(functions: Functions, description: Description) -> Self {
        // SAFETY: one FDE with zeros behind it, which stays until this value is dropped.
        unsafe { functions.register(description.pointer()) };
        Self { functions, description }
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        // SAFETY: it was registered when this value was created.
        unsafe { self.functions.deregister(self.description.pointer()) };
    }
}

/// Number of FDEs that were ever listed.
#[cfg(test)]
pub(crate) static LISTED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// A registered list of FDEs; dropping it deregisters it.
#[derive(Debug)]
pub(crate) struct Table {
    functions: Functions,
    /// Ends with null.
    list: Vec<*const u8>,
    /// `None` only while this value is being dropped.
    note: Option<Note>,
}

// SAFETY: the pointers are to memory that no thread changes; the unwinder reads them under its lock.
unsafe impl Send for Table {}

impl Table {
    /// An empty list with space for `count` pointers.
    pub(crate) fn list(count: usize) -> Result<Vec<*const u8>, Refused> {
        let mut list = Vec::new();
        list.try_reserve_exact(count.saturating_add(1))?;
        Ok(list)
    }

    /// Registers FDEs; `None` if there are none.
    ///
    /// # Safety
    /// They stay until this value is dropped.
    pub(crate) unsafe fn register(
        functions: Functions,
        mut list: Vec<*const u8>,
    ) -> Result<Option<Self>, Refused> {
        if list.is_empty() {
            return Ok(None);
        }
        #[cfg(test)]
        LISTED.fetch_add(list.len(), std::sync::atomic::Ordering::Relaxed);
        list.try_push(ptr::null())?;
        let note = Note::new()?;
        // SAFETY: FDEs with zeros behind each, which stay, as the caller guarantees; so do the list and the note.
        unsafe { functions.register_table(list.as_ptr(), &note) };
        Ok(Some(Self { functions, list, note: Some(note) }))
    }

    /// The registered FDEs.
    pub(crate) fn pointers(&self) -> &[*const u8] {
        self.list.split_last().map_or(&[], |(_, all)| all)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: it was registered when this value was created.
        unsafe { self.functions.deregister_table(self.list.as_ptr()) };
        if let Some(note) = self.note.take() {
            note.retire();
        }
    }
}
