//! A table as large as the log may get, of which only the part in use takes memory.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr::NonNull;

use super::memory::{self, Errno};

/// Values that begin as zeros, in private memory that the kernel makes when they are touched first: making the table
/// takes as long for a large one as for a small one. The child of a fork has a copy.
#[derive(Debug)]
pub(crate) struct Table<T: Zeroable> {
    base: NonNull<T>,
    count: usize,
}

/// What may begin as zeros, and needs no end.
///
/// # Safety
/// All bytes 0 are a value, which is not to be dropped, and no page is aligned less than it.
pub(crate) unsafe trait Zeroable {}

// SAFETY: the memory belongs to nobody but this value; with it go the values.
unsafe impl<T: Zeroable + Send> Send for Table<T> {}
// SAFETY: all that is to be had of it are shared references to the values.
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
        // SAFETY: so many values have room in the mapping, which is aligned to a page and stays as long as this is
        // borrowed; the kernel's zeros are values, by `Zeroable`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

impl<T: Zeroable> Drop for Table<T> {
    fn drop(&mut self) {
        if let Ok(size) = Self::size(self.count) {
            // SAFETY: the range is this table's own, and nobody borrows it any more.
            unsafe { memory::give_back(self.base.cast(), size) };
        }
    }
}
