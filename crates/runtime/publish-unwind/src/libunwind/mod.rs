//! libunwind (nongnu), which ignores registrations by `__register_frame`.
//!
//! It has a list of its own (`_U_dyn_register`), which every step of a walk searches from its beginning, without a lock.
//! `_U_dyn_cancel` removes an entry even if a walk is reading it: that walk does not find the entries behind it. So one
//! entry represents a whole range of the address space, and stays for ever. Changes are made in the table to which it
//! refers, with single stores: see `rows.rs`.

mod found;
mod pool;
mod rows;
mod stretch;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use fallible::{Map, Refused};

use crate::entries::Frames;
use found::Found;
use stretch::{SIZE, Stretch};

/// Larger code is left out.
const LARGEST: u64 = 1 << 30;

/// The registrations with this process's libunwind. There is only one, because entries for the same range would hide one
/// another.
#[derive(Debug)]
pub(crate) struct Libunwind {
    found: Found,
    stretches: Mutex<Map<u64, Stretch>>,
    /// Whether a fork left it locked by a thread that does not exist any more.
    is_lost: AtomicBool,
}

/// The library, if it is loaded by now. It is searched for when the list of shared objects has grown since the last time.
///
/// Call it without holding a lock: the loader may be waiting for one of ours.
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
    /// Registers a code, and replaces what was there.
    pub(crate) fn add(&self, frames: Frames<'_>) -> Result<(), Refused> {
        let (start, end) = (frames.start, frames.end);
        let Some(mut stretches) = self.lock() else { return Ok(()) };
        if self.remove(&mut stretches, start, end) {
            self.found.flush();
        }
        if end.saturating_sub(start) > LARGEST {
            return Ok(());
        }
        let mut base = start & !(SIZE - 1);
        while base < end {
            if !stretches.contains_key(&base)
                && let Some(stretch) = Stretch::new(base)?
            {
                // A stretch that cannot be stored is not known to anyone.
                stretches.try_insert(base, stretch).map_err(|(refused, _)| refused)?;
            }
            if let Some(stretch) = stretches.get_mut(&base) {
                stretch.add(&self.found, frames)?;
            }
            base = base.saturating_add(SIZE);
        }
        Ok(())
    }

    /// Removes all codes that overlap with this range.
    pub(crate) fn forget(&self, start: u64, end: u64) {
        if let Some(mut stretches) = self.lock()
            && self.remove(&mut stretches, start, end)
        {
            self.found.flush();
        }
    }

    fn remove(&self, stretches: &mut Map<u64, Stretch>, start: u64, end: u64) -> bool {
        let first = start & !(SIZE - 1);
        let mut any = false;
        for (_, stretch) in stretches.range_mut(first..end.max(first)) {
            any |= stretch.forget(start, end);
        }
        any
    }

    /// Call this in the child of a fork.
    pub(crate) fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.stretches.try_lock() {
            self.is_lost.store(true, Relaxed);
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Map<u64, Stretch>>> {
        if self.is_lost.load(Relaxed) {
            return None;
        }
        Some(self.stretches.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
