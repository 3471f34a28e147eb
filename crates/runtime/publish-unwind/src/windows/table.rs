//! A function table that is registered with the system.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};

use fallible::Vec;
use windows_sys::Win32::System::Diagnostics::Debug::{
    IMAGE_RUNTIME_FUNCTION_ENTRY, RtlAddFunctionTable, RtlAddGrowableFunctionTable,
    RtlDeleteFunctionTable, RtlDeleteGrowableFunctionTable, RtlGrowFunctionTable,
};

/// RUNTIME_FUNCTION: offsets from the start of the table's range. Others read it while it is changed: at each step it is
/// correct, or free. The end of a free entry equals its beginning.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Entry {
    begin: AtomicU32,
    end: AtomicU32,
    info: AtomicU32,
}

const _: () = assert!(size_of::<Entry>() == size_of::<IMAGE_RUNTIME_FUNCTION_ENTRY>());

/// A function, or a piece of one, by addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) info: u64,
}

impl Entry {
    pub(crate) fn begin(&self) -> u32 {
        self.begin.load(Relaxed)
    }

    pub(crate) fn end(&self) -> u32 {
        self.end.load(Relaxed)
    }

    pub(crate) fn info(&self) -> u32 {
        self.info.load(Relaxed)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.begin() == self.end()
    }

    /// Makes a free entry that of a function, or moves it. Its neighbours must be on the same sides of both places.
    pub(crate) fn set(&self, begin: u32, end: u32, info: u32) {
        self.info.store(info, Release);
        self.begin.store(begin, Release);
        self.end.store(end, Release);
    }

    /// Frees the entry.
    pub(crate) fn clear(&self) {
        self.end.store(self.begin(), Release);
    }
}

#[derive(Debug)]
enum Registered {
    Growable(*mut c_void),
    /// With a fixed number of entries.
    Plain,
    /// Not registered.
    Not,
}

/// Ascending functions for a range of addresses.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    used: usize,
    /// The offsets between which functions may be: a plain table's range is from its first to its last function.
    reach: Range<u32>,
    registered: Registered,
}

// SAFETY: any thread may use the handle; the owner of this value controls which.
unsafe impl Send for Table {}

impl Table {
    /// Registers the first `used` entries, which ascend, for `range`, to whose start their offsets are relative.
    pub(crate) fn register(
        entries: Vec<Entry>,
        used: usize,
        range: &Range<u64>,
        may_grow: bool,
    ) -> Self {
        let used = used.min(entries.len());
        let mut table = Self { entries, used, reach: 0..u32::MAX, registered: Registered::Not };
        let (first, most) = (table.first(), table.entries.len() as u32);
        let mut handle = ptr::null_mut();
        let (begin, end) = (range.start as usize, range.end as usize);
        // SAFETY: the array has this many entries, is only written atomically, and stays until this value is dropped, and a
        // second longer (see `retired.rs`).
        let is_growable = may_grow
            && unsafe {
                RtlAddGrowableFunctionTable(&raw mut handle, first, used as u32, most, begin, end)
            } == 0;
        if is_growable {
            table.registered = Registered::Growable(handle);
            return table;
        }
        // SAFETY: as above.
        if unsafe { RtlAddFunctionTable(first, used as u32, range.start) } {
            table.registered = Registered::Plain;
            let entries = table.entries();
            table.reach =
                entries.first().map_or(0, Entry::begin)..entries.last().map_or(0, Entry::end);
        }
        table
    }

    fn first(&self) -> *const IMAGE_RUNTIME_FUNCTION_ENTRY {
        self.entries.as_ptr().cast()
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        self.entries.get(..self.used).unwrap_or_default()
    }

    /// Whether a function between these offsets can be in the table.
    pub(crate) fn reaches(&self, begin: u32, end: u32) -> bool {
        self.reach.start <= begin && end <= self.reach.end
    }

    /// Appends a function. `None` if that is not possible.
    pub(crate) fn push(&mut self, begin: u32, end: u32, info: u32) -> Option<()> {
        let Registered::Growable(handle) = self.registered else { return None };
        self.entries.get(self.used)?.set(begin, end, info);
        self.used = self.used.checked_add(1)?;
        // SAFETY: it is registered, and has this many entries.
        unsafe { RtlGrowFunctionTable(handle, self.used as u32) };
        Some(())
    }

    /// Unregisters the table. The result may still be read for a moment.
    pub(crate) fn unregister(mut self) -> Vec<Entry> {
        self.forget();
        std::mem::take(&mut self.entries)
    }

    fn forget(&mut self) {
        match std::mem::replace(&mut self.registered, Registered::Not) {
            // SAFETY: it is registered, and was not deleted before.
            Registered::Growable(handle) => unsafe { RtlDeleteGrowableFunctionTable(handle) },
            Registered::Plain => {
                // SAFETY: as above.
                unsafe { RtlDeleteFunctionTable(self.first()) };
            }
            Registered::Not => {}
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.forget();
    }
}
