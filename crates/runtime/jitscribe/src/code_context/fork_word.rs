//! A word that the kernel clears in the child of a fork.
#![allow(unsafe_code)]

use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire},
};

use crate::log::ForkPage;

/// A new process: what this module has is the parent's.
pub(super) const CLEARED: u32 = 0;
/// A thread is changing that.
pub(super) const CLAIMING: u32 = 1;
/// What this module has is this process's.
pub(super) const CLAIMED: u32 = 2;

/// The word of the first scribe that has a page for it, which lives as long as the process.
#[derive(Debug)]
pub(super) struct ForkWord(AtomicPtr<AtomicU32>);

impl ForkWord {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    pub(super) fn get(&self) -> Option<&'static AtomicU32> {
        // SAFETY: it is null, or was stored below from a reference that is valid for ever. Nothing writes through the pointer but
        // by way of the atomic.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// The word; that of `page` if there is none yet.
    pub(super) fn get_or_set(&self, page: Option<&'static ForkPage>) -> Option<&'static AtomicU32> {
        if let Some(page) = page.filter(|_| self.get().is_none()) {
            let word = std::ptr::from_ref(page.second_word()).cast_mut();
            let _ = self.0.compare_exchange(std::ptr::null_mut(), word, AcqRel, Acquire);
        }
        self.get()
    }
}
