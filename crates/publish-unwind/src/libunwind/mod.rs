//! libunwind (nongnu), which looks at no registration of `__register_frame`.
//!
//! It has a list of its own (`_U_dyn_register`), which every step of a walk goes through from its beginning, with no lock,
//! and whose entries `_U_dyn_cancel` takes out under the feet of a walk that stands on one: that walk finds none of the
//! entries behind. So one entry stands for a whole stretch of address space, it stays for ever, and what changes is the
//! table that it leads to, by single stores: see `rows.rs`.

mod found;
mod pool;
mod rows;
mod stretch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use crate::entries::Frames;
use found::Found;
use stretch::{SIZE, Stretch};

/// Code larger than this is left out.
const LARGEST: u64 = 1 << 30;

/// What this process's libunwind knows. There is one, as entries for the same stretch would hide one another.
#[derive(Debug)]
pub(crate) struct Libunwind {
    found: Found,
    stretches: Mutex<BTreeMap<u64, Stretch>>,
    /// A fork left it in the hands of a thread that is no more.
    is_lost: AtomicBool,
}

/// The library, if it is there by now. It is looked for when the list of shared objects has grown since the last time.
///
/// To be called with no lock held: the loader may be waiting for one that is ours.
pub(crate) fn look() -> Option<&'static Libunwind> {
    static FOUND: OnceLock<Libunwind> = OnceLock::new();
    static OBJECTS: AtomicU64 = AtomicU64::new(0);
    let found = FOUND.get();
    if found.is_some() {
        return found;
    }
    let objects = found::objects();
    if OBJECTS.swap(objects, Relaxed) == objects {
        return None;
    }
    let found = Found::look()?;
    Some(FOUND.get_or_init(|| Libunwind {
        found,
        stretches: Mutex::default(),
        is_lost: AtomicBool::new(false),
    }))
}

impl Libunwind {
    /// Tells of a code, instead of what was there.
    pub(crate) fn add(&self, frames: Frames<'_>) {
        let (start, end) = (frames.start, frames.end);
        let Some(mut stretches) = self.lock() else { return };
        if self.remove(&mut stretches, start, end) {
            self.found.flush();
        }
        if end.saturating_sub(start) > LARGEST {
            return;
        }
        let mut base = start & !(SIZE - 1);
        while base < end {
            if let std::collections::btree_map::Entry::Vacant(place) = stretches.entry(base)
                && let Some(stretch) = Stretch::new(base)
            {
                place.insert(stretch);
            }
            if let Some(stretch) = stretches.get_mut(&base) {
                stretch.add(&self.found, frames);
            }
            base = base.saturating_add(SIZE);
        }
    }

    /// Forgets what lies here, wholly or not.
    pub(crate) fn forget(&self, start: u64, end: u64) {
        if let Some(mut stretches) = self.lock()
            && self.remove(&mut stretches, start, end)
        {
            self.found.flush();
        }
    }

    fn remove(&self, stretches: &mut BTreeMap<u64, Stretch>, start: u64, end: u64) -> bool {
        let first = start & !(SIZE - 1);
        let mut any = false;
        for (_, stretch) in stretches.range_mut(first..end.max(first)) {
            any |= stretch.forget(start, end);
        }
        any
    }

    /// In the child of a fork.
    pub(crate) fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.stretches.try_lock() {
            self.is_lost.store(true, Relaxed);
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, BTreeMap<u64, Stretch>>> {
        if self.is_lost.load(Relaxed) {
            return None;
        }
        Some(self.stretches.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
