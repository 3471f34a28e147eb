//! A function table that the system knows.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, Release},
};

use windows_sys::Win32::System::Diagnostics::Debug::{
    IMAGE_RUNTIME_FUNCTION_ENTRY, RtlAddFunctionTable, RtlAddGrowableFunctionTable,
    RtlDeleteFunctionTable, RtlDeleteGrowableFunctionTable, RtlGrowFunctionTable,
};

/// RUNTIME_FUNCTION: distances from where the table's range begins. Others read it while it is changed: at each step it is
/// right, or of nothing. One of nothing ends where it begins.
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

    /// Becomes that of a function, or of nothing elsewhere. It was of nothing, and its neighbours lie on the same sides of both
    /// places.
    pub(crate) fn set(&self, begin: u32, end: u32, info: u32) {
        self.info.store(info, Release);
        self.begin.store(begin, Release);
        self.end.store(end, Release);
    }

    /// Is of nothing from now on.
    pub(crate) fn clear(&self) {
        self.end.store(self.begin(), Release);
    }
}

#[derive(Debug)]
enum Registered {
    Growable(*mut c_void),
    /// For as many entries as there were.
    Plain,
    /// Nobody knows of it.
    Not,
}

/// Functions that ascend, for a range of addresses.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Box<[Entry]>,
    used: usize,
    /// Where functions may lie: a plain table's range is from its first to its last.
    reach: Range<u32>,
    registered: Registered,
}

// SAFETY: the handle may be used from any thread; by whom, this value's owner sees to.
unsafe impl Send for Table {}

impl Table {
    /// Tells the system of the first `used` entries, which ascend, for `range`, from whose beginning they count.
    pub(crate) fn register(
        entries: Box<[Entry]>,
        used: usize,
        range: &Range<u64>,
        may_grow: bool,
    ) -> Self {
        let used = used.min(entries.len());
        let mut table = Self { entries, used, reach: 0..u32::MAX, registered: Registered::Not };
        let (first, most) = (table.first(), table.entries.len() as u32);
        let mut handle = ptr::null_mut();
        let (begin, end) = (range.start as usize, range.end as usize);
        // SAFETY: so many entries, of which all is written by atomics, and which stay until this value is dropped, and
        // a second longer (see `rest.rs`).
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

    /// Whether a function from one distance to another can be in the table.
    pub(crate) fn reaches(&self, begin: u32, end: u32) -> bool {
        self.reach.start <= begin && end <= self.reach.end
    }

    /// Adds one behind the last. `None` if that cannot be.
    pub(crate) fn push(&mut self, begin: u32, end: u32, info: u32) -> Option<()> {
        let Registered::Growable(handle) = self.registered else { return None };
        self.entries.get(self.used)?.set(begin, end, info);
        self.used = self.used.checked_add(1)?;
        // SAFETY: registered, and there are as many.
        unsafe { RtlGrowFunctionTable(handle, self.used as u32) };
        Some(())
    }

    /// The system forgets it. What is returned may still be read for a moment.
    pub(crate) fn unregister(mut self) -> Box<[Entry]> {
        self.forget();
        std::mem::take(&mut self.entries)
    }

    fn forget(&mut self) {
        match std::mem::replace(&mut self.registered, Registered::Not) {
            // SAFETY: registered, and not deleted before.
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
