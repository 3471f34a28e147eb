//! A table as large as the log may get, of which only the part in use takes memory.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::NonNull;

use super::memory::{self, Errno};

/// Values that are initially zero, in private memory that the kernel allocates when it is first touched: creating a
/// large table is as fast as creating a small one. The child of a fork has a copy.
#[derive(Debug)]
pub(crate) struct Table<T: Zeroable> {
    base: NonNull<T>,
    count: usize,
}

/// A type whose values may be initially zero, and need no destructor.
///
/// # Safety
/// All zero bytes are a valid value, which needs no drop, and its alignment is at most that of a page.
pub(crate) unsafe trait Zeroable {}

// SAFETY: only this value owns the memory, and with it the values.
unsafe impl<T: Zeroable + Send> Send for Table<T> {}
// SAFETY: it only gives out shared references to the values.
unsafe impl<T: Zeroable + Sync> Sync for Table<T> {}

impl<T: Zeroable> Table<T> {
    pub(crate) fn new(count: usize) -> Result<Self, Errno> {
        Ok(Self { base: memory::zeros(Self::size(count)?)?.cast(), count })
    }

    fn size(count: usize) -> Result<usize, Errno> {
        count.max(1).checked_mul(size_of::<T>().max(1)).ok_or(Errno::NOMEM)
    }
}

impl<T: Zeroable> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has space for this many values, is aligned to a page, and lives as long as this is
        // borrowed. The kernel's zeros are valid values, by `Zeroable`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

impl<T: Zeroable> Drop for Table<T> {
    fn drop(&mut self) {
        if let Ok(size) = Self::size(self.count) {
            // SAFETY: the range is this table's own, and is not borrowed any more.
            unsafe { memory::give_back(self.base.cast(), size) };
        }
    }
}
