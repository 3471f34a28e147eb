//! Memory that this process writes and others read: how it is touched.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use super::memory::{self, Backing, Errno};

/// What memory is fetched by.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// A shared mapping. That of a log in use is never given back: a thread of the host may be in the middle of
/// writing to it at any time, up to the process's end.
///
/// Only a part from the beginning on has memory behind it; callers keep to that (see
/// [`Self::have`]). Words are atomic: other processes write the control
/// words, and threads meet at the words that commit a group.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping belongs to nobody but this value and stays as long. All access through `&self` is
// by atomics, or by `room`, whose callers vouch for being alone.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `size` bytes of a backing. Nothing is read or written yet.
    pub(crate) fn new(backing: &Backing, size: usize) -> Result<Self, Errno> {
        Ok(Self { base: memory::map(backing, size)?, size })
    }

    /// Puts another backing in the place of what is mapped, at once for all threads.
    #[cfg(unix)]
    pub(crate) fn replace(&self, backing: &Backing) -> Result<(), Errno> {
        // SAFETY: the range is this mapping's own. References into it hold no values that could change
        // under them: words are atomic, and `room` is handed out to nobody while a fork's child
        // changes its log (callers of this hold all lanes).
        unsafe { memory::replace(self.base, self.size, backing) }
    }

    /// Sees to it that there is memory behind a range of whole pages, for ever: a store to a shared mapping without is a
    /// signal.
    pub(crate) fn have(&self, backing: &Backing, at: usize, length: usize) -> Result<(), Errno> {
        self.pages(at, length)?;
        // SAFETY: they lie in the mapping.
        unsafe { memory::have(backing, self.base, at, length) }
    }

    /// Has what [`Self::have`] gave made at once.
    pub(crate) fn populate(&self, at: usize, length: usize) -> Result<(), Errno> {
        self.pages(at, length)?;
        // SAFETY: they lie in the mapping.
        unsafe { memory::populate(self.base, at, length) }
    }

    fn pages(&self, at: usize, length: usize) -> Result<(), Errno> {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.size);
        fits.then_some(()).ok_or(Errno::NOMEM)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    #[cfg(feature = "gdb")]
    pub(crate) fn address(&self) -> u64 {
        self.base.addr().get() as u64
    }

    /// The first `N` words from offset `at` on, which must be a multiple of 8 so far within the mapping.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, at: usize) -> Words<'_, N> {
        let at = self.inside(at, 8 * N, 8);
        // SAFETY: as for `word`; an array of atomics is as the same number of them one behind the other.
        self.as_words(unsafe { self.base.add(at).cast().as_ref() })
    }

    /// All words of `size` bytes from offset `at` on, both multiples of 8; `None` if they are not all inside.
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
        // SAFETY: `inside` made it 8 bytes within the mapping, aligned to 8, and the mapping stays as
        // long as it is borrowed. Words are written by atomics alone, but for those in a `room`, whose user is alone.
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

    /// The room of `size` bytes at `at`, which must be a multiple of 8, for writing: its first `N` words, and the
    /// bytes behind them. `None` if they are not all inside.
    ///
    /// # Safety
    /// Until the slice is gone, no one else of this process may touch its bytes, not even by
    /// atomics. They must have memory behind them.
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for being alone")]
    #[inline]
    pub(crate) unsafe fn room<const N: usize>(
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
        // SAFETY: from `at` on there are `size` bytes within the mapping, as just checked, of which the words take
        // the first 8 * N, aligned as `at` is. The bytes are no part of them; any byte is a valid u8; the
        // caller is alone with them. For the words, see `words`.
        let (words, bytes) = unsafe {
            let base = self.base.add(at);
            let bytes = base.add(8 * N).as_ptr();
            (base.cast().as_ref(), std::slice::from_raw_parts_mut(bytes, length))
        };
        Some((self.as_words(words), bytes))
    }

    /// Has the processor fetch `size` bytes from `at` on, which need not be inside: room that is about to be written.
    /// Without, whoever takes a lane waits for the memory that the announcement before wrote to.
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

    /// `at` if it is aligned and there are `length` bytes; else 0. A wrong offset is a defect of this crate, and
    /// even then it is not to bring the host down.
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

/// Words that stand together, of which one look has shown that they are inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'m, const N: usize> {
    words: &'m [AtomicU64; N],
    #[cfg(test)]
    mapping: &'m Mapping,
}

impl<'m, const N: usize> Words<'m, N> {
    /// The word that stands `OFFSET` bytes behind the first.
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
        // SAFETY: the range is this mapping's own, and nobody borrows it any more.
        unsafe { memory::give_back(self.base, self.size) };
    }
}

/// Tests look at the log before each access to one of its words: whoever is killed there leaves it so.
#[cfg(test)]
pub(crate) mod observe {
    use std::cell::RefCell;

    use super::Mapping;

    type Observer = Box<dyn FnMut(&[u8])>;

    thread_local! {
        static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    }

    /// Until `action` is done, `observer` gets the log's bytes before each access by this thread.
    pub(crate) fn during(observer: impl FnMut(&[u8]) + 'static, action: impl FnOnce()) {
        OBSERVER.set(Some(Box::new(observer)));
        action();
        OBSERVER.set(None);
    }

    pub(super) fn call(mapping: &Mapping) {
        // Taken out, lest it observes itself.
        let Some(mut observer) = OBSERVER.take() else { return };
        // SAFETY: the mapping is as large, all of it has memory behind it as the file was made so large for
        // the test, and no other thread of the test writes to it.
        observer(unsafe { std::slice::from_raw_parts(mapping.base.as_ptr(), mapping.size) });
        OBSERVER.set(Some(observer));
    }
}
