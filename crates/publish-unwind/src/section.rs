//! Descriptions of frames in memory that an unwinder knows.
#![allow(unsafe_code)]

use std::ptr;

use crate::entries::{Entry, Frames};
use crate::found::Found;
use crate::notes::Note;

/// A description of frames, behind its common part and before a word of zeros, which stays where it is: a walk that has
/// found it goes on reading it when the unwinder has opened its lock again.
#[derive(Debug)]
pub(crate) struct Description {
    /// Words, since unwinders read fields of 8 bytes.
    words: Box<[u64]>,
    /// Size of the common part.
    common: usize,
}

impl Description {
    /// `None` if it is too short to be one.
    pub(crate) fn new(entry: &Entry) -> Option<Self> {
        let common = entry.frames()?.common;
        let (chunks, _) = entry.bytes.as_chunks::<8>();
        let mut words = Vec::with_capacity(chunks.len().saturating_add(1));
        words.extend(chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
        words.push(0);
        Some(Self { words: words.into_boxed_slice(), common })
    }

    /// The code from `start` to `end`, and what is said of it.
    pub(crate) fn frames(&self, start: u64, end: u64) -> Frames<'_> {
        let size = self.words.len().saturating_sub(1).saturating_mul(8);
        // SAFETY: the bytes of all words but the zeros.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), size) };
        Frames { start, end, bytes, common: self.common }
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        self.words.as_ptr().cast::<u8>().wrapping_add(self.common)
    }
}

/// A description that is registered by itself; dropping it deregisters it.
#[derive(Debug)]
pub(crate) struct Single {
    found: Found,
    description: Description,
}

impl Single {
    pub(crate) fn register(found: Found, description: Description) -> Self {
        // SAFETY: one description with zeros behind it, which stays until this value is dropped.
        unsafe { found.register(description.pointer()) };
        Self { found, description }
    }

    pub(crate) fn description(&self) -> &Description {
        &self.description
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        // SAFETY: registered when this was made.
        unsafe { self.found.deregister(self.description.pointer()) };
    }
}

/// How many descriptions were ever listed.
#[cfg(test)]
pub(crate) static LISTED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// A list of descriptions that is registered; dropping it deregisters it.
#[derive(Debug)]
pub(crate) struct Table {
    found: Found,
    /// Ends with null.
    list: Box<[*const u8]>,
    /// Until this value is dropped.
    note: Option<Note>,
}

// SAFETY: the pointers are to memory that no thread changes; they are read by the unwinder, under its lock.
unsafe impl Send for Table {}

impl Table {
    /// Room for a list of so many.
    pub(crate) fn list(count: usize) -> Vec<*const u8> {
        Vec::with_capacity(count.saturating_add(1))
    }

    /// Registers descriptions; `None` if there are none.
    ///
    /// # Safety
    /// They stay until this value is dropped.
    pub(crate) unsafe fn register(found: Found, mut list: Vec<*const u8>) -> Option<Self> {
        if list.is_empty() {
            return None;
        }
        #[cfg(test)]
        LISTED.fetch_add(list.len(), std::sync::atomic::Ordering::Relaxed);
        list.push(ptr::null());
        let list = list.into_boxed_slice();
        let note = Note::new();
        // SAFETY: descriptions with zeros behind each, which stay, says the caller; so does the list, and the note.
        unsafe { found.register_table(list.as_ptr(), &note) };
        Some(Self { found, list, note: Some(note) })
    }

    /// Those that are registered.
    pub(crate) fn pointers(&self) -> &[*const u8] {
        self.list.split_last().map_or(&[], |(_, all)| all)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: registered when this was made.
        unsafe { self.found.deregister_table(self.list.as_ptr()) };
        if let Some(note) = self.note.take() {
            note.rest();
        }
    }
}
