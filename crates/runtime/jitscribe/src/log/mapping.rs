//! Access to memory that this process writes and others read.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
#[cfg(target_os = "linux")]
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use super::memory::{self, Backing, Errno};
#[cfg(target_os = "linux")]
use crate::spin_lock::Guard;

/// Size of a cache line, the unit of prefetching.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// A shared mapping. The mapping of a log in use is never unmapped: any thread of the host may be writing to it at any
/// time, until the process ends.
///
/// Only the beginning has memory behind it; callers must not access the rest (see [`Self::have`]). Words are atomic:
/// other processes write the control words, and threads synchronise through the words that commit a group.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: only this value owns the mapping, which lives as long as it. All access through `&self` is atomic, or through
// `exclusive_bytes`, whose callers guarantee exclusive access.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `size` bytes of a backing. Nothing is read or written yet.
    pub(crate) fn new(backing: &Backing, size: usize) -> Result<Self, Errno> {
        Ok(Self { base: memory::map(backing, size)?, size })
    }

    /// Replaces the backing of the mapping, atomically for all threads.
    #[cfg(target_os = "linux")]
    pub(crate) fn replace(&self, backing: &Backing) -> Result<(), Errno> {
        // SAFETY: the range is this mapping's own. References into it hold no values that must not change: words are
        // atomic, and there are no `exclusive_bytes` while the child of a fork changes its log (callers hold all lanes).
        unsafe { memory::replace(self.base, self.size, backing) }
    }

    /// A second mapping of the first `size` bytes, if possible at a multiple of `align`.
    #[cfg(target_os = "linux")]
    pub(crate) fn again(
        &self,
        backing: &Backing,
        size: usize,
        align: usize,
    ) -> Result<Self, Errno> {
        self.pages(0, size)?;
        // SAFETY: this is a mapping of the backing, with at least this size.
        Ok(Self { base: unsafe { memory::map_again(backing, self.base, size, align) }?, size })
    }

    /// Writes `bytes` to whole pages from `at` on, which permanently have memory behind them then. No other thread may access
    /// these pages.
    #[cfg(target_os = "linux")]
    pub(crate) fn put(&self, backing: &Backing, at: usize, bytes: &[u8]) -> Result<(), Errno> {
        self.pages(at, bytes.len())?;
        // SAFETY: the pages are within the mapping, and the caller has them for itself.
        if unsafe { memory::write(backing, self.base, at, bytes) } {
            return Ok(());
        }
        self.have(backing, at, bytes.len())?;
        for (at, word) in (at..).step_by(8).zip(bytes.as_chunks().0) {
            self.word(at).store(u64::from_ne_bytes(*word), Relaxed);
        }
        Ok(())
    }

    /// Ensures that a range of whole pages permanently has memory behind it: a store to a shared mapping without memory
    /// raises a signal.
    pub(crate) fn have(&self, backing: &Backing, at: usize, length: usize) -> Result<(), Errno> {
        self.pages(at, length)?;
        // SAFETY: the pages are within the mapping.
        unsafe { memory::have(backing, self.base, self.size, at, length) }
    }

    fn pages(&self, at: usize, length: usize) -> Result<(), Errno> {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.size);
        fits.then_some(()).ok_or(Errno::NOMEM)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn address(&self) -> u64 {
        self.base.addr().get() as u64
    }

    /// The first `N` words from offset `at` on, which must be a multiple of 8 with enough space behind it in the
    /// mapping.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, at: usize) -> Words<'_, N> {
        let at = self.inside(at, 8 * N, 8);
        // SAFETY: as for `word`; an array of atomics has the same layout as that number of adjacent atomics.
        self.as_words(unsafe { self.base.add(at).cast().as_ref() })
    }

    /// All words in `size` bytes from offset `at` on, both multiples of 8; `None` if they are not all in the mapping.
    pub(crate) fn many_words(&self, at: usize, size: usize) -> Option<&[AtomicU64]> {
        let fits = at.checked_add(size).is_some_and(|end| end <= self.size);
        // SAFETY: as for `words`.
        (fits && (at | size).is_multiple_of(8)).then(|| unsafe {
            std::slice::from_raw_parts(self.base.add(at).cast().as_ptr(), size / 8)
        })
    }

    #[inline]
    fn as_words<'m, const N: usize>(&'m self, words: &'m [AtomicU64; N]) -> Words<'m, N> {
        Words {
            words,
            #[cfg(test)]
            mapping: self,
        }
    }

    /// The 64-bit word at offset `at`, which must be a multiple of 8 within the mapping.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        let at = self.inside(at, 8, 8);
        // SAFETY: `inside` ensures that it is 8 bytes within the mapping, aligned to 8; the mapping lives as long as it
        // is borrowed. Words are only written atomically, except those in `exclusive_bytes`, to which its user has exclusive
        // access.
        unsafe { AtomicU64::from_ptr(self.base.add(at).as_ptr().cast::<u64>()) }
    }

    /// The 32-bit word at offset `at`, which must be a multiple of 4 within the mapping.
    pub(crate) fn half(&self, at: usize) -> &AtomicU32 {
        let at = self.inside(at, 4, 4);
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(self.base.add(at).as_ptr().cast::<u32>()) }
    }

    /// The byte at offset `at`.
    pub(crate) fn byte(&self, at: usize) -> &AtomicU8 {
        let at = self.inside(at, 1, 1);
        // SAFETY: as for `word`.
        unsafe { AtomicU8::from_ptr(self.base.add(at).as_ptr()) }
    }

    /// The space of `size` bytes at `at`, which must be a multiple of 8, for writing: its first `N` words, and the bytes
    /// behind them. `None` if they are not all in the mapping.
    ///
    /// # Safety
    /// Until the slice is gone, nothing else in this process may access its bytes, not even atomically. They must have
    /// memory behind them.
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for being alone")]
    #[inline]
    pub(crate) unsafe fn exclusive_bytes<const N: usize>(
        &self,
        at: usize,
        size: usize,
    ) -> Option<(Words<'_, N>, &mut [u8])> {
        let fits = at.checked_add(size).is_some_and(|end| end <= self.size);
        let length = size.checked_sub(8 * N)?;
        if !fits || !at.is_multiple_of(8) {
            self.outside(at);
            return None;
        }
        // SAFETY: from `at` on, there are `size` bytes within the mapping, as just checked. The words take the first 8 *
        // N, aligned as `at` is. The bytes do not overlap with them; any byte is a valid u8; the caller has exclusive
        // access to them. For the words, see `words`.
        let (words, bytes) = unsafe {
            let base = self.base.add(at);
            let bytes = base.add(8 * N).as_ptr();
            (base.cast().as_ref(), std::slice::from_raw_parts_mut(bytes, length))
        };
        Some((self.as_words(words), bytes))
    }

    /// Prefetches `size` bytes from `at` on, which need not be in the mapping: space that will be written soon. Without
    /// this, the next user of the lane would wait for memory.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize, size: usize) {
        #[cfg(target_arch = "x86_64")]
        for line in (at..at + size).step_by(CACHE_LINE) {
            let line = self.base.as_ptr().wrapping_add(line);
            // SAFETY: it is a hint: nothing is read or written, whatever the address.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(line.cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (at, size);
    }

    /// `at` if it is aligned and `length` bytes are there; else 0. A wrong offset is a bug in this crate, and even then
    /// the host must not crash.
    #[inline]
    fn inside(&self, at: usize, length: usize, align: usize) -> usize {
        #[cfg(test)]
        observe::call(self);
        let fits = at.checked_add(length).is_some_and(|end| end <= self.size);
        if fits && at.is_multiple_of(align) { at } else { self.outside(at) }
    }

    #[cold]
    #[inline(never)]
    fn outside(&self, at: usize) -> usize {
        debug_assert!(false, "{at} of {}", self.size);
        0
    }
}

/// A place for a mapping that exists for a part of the time. All access is under the same lock.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub(crate) struct MappingSlot {
    base: AtomicPtr<u8>,
    size: AtomicUsize,
}

#[cfg(target_os = "linux")]
impl MappingSlot {
    /// Calls `look` with the mapping, which stays in the slot: a child that is forked during the call has it too.
    pub(crate) fn with<T>(&self, _lock: &Guard<'_>, look: impl FnOnce(&Mapping) -> T) -> Option<T> {
        self.with_own_lock(look)
    }

    /// [`Self::with`] for a signal handler that interrupted this thread while it has the lock, whose guard it cannot name.
    pub(crate) fn with_own_lock<T>(&self, look: impl FnOnce(&Mapping) -> T) -> Option<T> {
        let base = NonNull::new(self.base.load(Acquire))?;
        let mapping = ManuallyDrop::new(Mapping { base, size: self.size.load(Relaxed) });
        Some(look(&mapping))
    }

    pub(crate) fn take(&self, _lock: &Guard<'_>) -> Option<Mapping> {
        self.take_out()
    }

    pub(crate) fn put(&self, _lock: &Guard<'_>, mapping: Mapping) {
        drop(self.take_out());
        let mapping = ManuallyDrop::new(mapping);
        self.size.store(mapping.size, Relaxed);
        self.base.store(mapping.base.as_ptr(), Release);
    }

    fn take_out(&self) -> Option<Mapping> {
        let base = NonNull::new(self.base.swap(std::ptr::null_mut(), Acquire))?;
        Some(Mapping { base, size: self.size.load(Relaxed) })
    }
}

#[cfg(target_os = "linux")]
impl Drop for MappingSlot {
    fn drop(&mut self) {
        drop(self.take_out());
    }
}

/// Adjacent words, checked together to be in the mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'m, const N: usize> {
    words: &'m [AtomicU64; N],
    #[cfg(test)]
    mapping: &'m Mapping,
}

impl<'m, const N: usize> Words<'m, N> {
    /// The word `OFFSET` bytes behind the first.
    #[inline]
    pub(crate) fn at<const OFFSET: usize>(self) -> &'m AtomicU64 {
        const { assert!(OFFSET.is_multiple_of(8) && OFFSET / 8 < N) };
        #[cfg(test)]
        observe::call(self.mapping);
        &self.words[OFFSET / 8]
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping's own, and is not borrowed any more.
        unsafe { memory::give_back(self.base, self.size) };
    }
}

/// Lets tests inspect the log before each access to one of its words: a process killed there would leave it so.
#[cfg(test)]
pub(crate) mod observe {
    use std::cell::RefCell;

    use super::Mapping;

    type Observer = Box<dyn FnMut(&[u8])>;

    thread_local! {
        static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    }

    /// While `action` runs, `observer` gets the log's bytes before each access by this thread.
    pub(crate) fn during(observer: impl FnMut(&[u8]) + 'static, action: impl FnOnce()) {
        OBSERVER.set(Some(Box::new(observer)));
        action();
        OBSERVER.set(None);
    }

    pub(super) fn call(mapping: &Mapping) {
        // Taken out, so that it does not observe itself.
        let Some(mut observer) = OBSERVER.take() else { return };
        // SAFETY: the mapping has this size, all of it has memory behind it because the file was made large enough for
        // the test, and no other thread of the test writes to it.
        observer(unsafe { std::slice::from_raw_parts(mapping.base.as_ptr(), mapping.size) });
        OBSERVER.set(Some(observer));
    }
}
