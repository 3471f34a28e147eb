//! A list of FDEs that is registered as one.
#![allow(unsafe_code)]

use std::ptr;

use fallible::{Refused, Vec};

use crate::functions::Functions;
use crate::notes::Note;

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
