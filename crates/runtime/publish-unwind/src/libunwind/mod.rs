//! libunwind (nongnu), which ignores registrations by `__register_frame`.
//!
//! It has a list of its own (`_U_dyn_register`), which every step of a walk searches from its beginning, without a lock.
//! `_U_dyn_cancel` removes an entry even if a walk is reading it: that walk does not find the entries behind it. So one
//! entry represents a whole range of the address space, and stays for ever. Changes are made in the table to which it
//! refers, with single stores: see `rows.rs`.

mod block;
mod functions;
mod pool;
mod rows;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use fallible::{Map, Refused};

use crate::entries::Frames;
use block::{Block, SIZE};
use functions::Functions;

/// Larger code is left out.
const LARGEST: u64 = 1 << 30;

/// The registrations with this process's libunwind. There is only one, because entries for the same range would hide one
/// another.
#[derive(Debug)]
pub(crate) struct Libunwind {
    functions: Functions,
    blocks: Mutex<Map<u64, Block>>,
    /// Whether a fork left it locked by a thread that does not exist any more.
    is_lost: AtomicBool,
}

/// The library, if it is loaded by now. It is searched for when the list of shared objects has grown since the last time.
///
/// Call it without holding a lock: the loader may be waiting for one of ours.
pub(crate) fn look() -> Option<&'static Libunwind> {
    static LIBUNWIND: OnceLock<Libunwind> = OnceLock::new();
    static OBJECTS: AtomicU64 = AtomicU64::new(0);
    let libunwind = LIBUNWIND.get();
    if libunwind.is_some() {
        return libunwind;
    }
    let objects = functions::objects();
    if OBJECTS.swap(objects, Relaxed) == objects {
        return None;
    }
    let functions = Functions::look()?;
    Some(LIBUNWIND.get_or_init(|| Libunwind {
        functions,
        blocks: Mutex::default(),
        is_lost: AtomicBool::new(false),
    }))
}

impl Libunwind {
    /// Registers a code, and replaces what was there.
    pub(crate) fn add(&self, frames: Frames<'_>) -> Result<(), Refused> {
        let (start, end) = (frames.start, frames.end);
        let Some(mut blocks) = self.lock() else { return Ok(()) };
        if self.remove(&mut blocks, start, end) {
            self.functions.flush();
        }
        if end.saturating_sub(start) > LARGEST {
            return Ok(());
        }
        let mut base = start & !(SIZE - 1);
        while base < end {
            if !blocks.contains_key(&base)
                && let Some(block) = Block::new(base)?
            {
                // A block that cannot be stored is not known to anyone.
                blocks.try_insert(base, block).map_err(|(refused, _)| refused)?;
            }
            if let Some(block) = blocks.get_mut(&base) {
                block.add(&self.functions, frames)?;
            }
            base = base.saturating_add(SIZE);
        }
        Ok(())
    }

    /// Removes all codes that overlap with this range.
    pub(crate) fn forget(&self, start: u64, end: u64) {
        if let Some(mut blocks) = self.lock()
            && self.remove(&mut blocks, start, end)
        {
            self.functions.flush();
        }
    }

    fn remove(&self, blocks: &mut Map<u64, Block>, start: u64, end: u64) -> bool {
        let first = start & !(SIZE - 1);
        let mut any = false;
        for (_, block) in blocks.range_mut(first..end.max(first)) {
            any |= block.forget(start, end);
        }
        any
    }

    /// Call this in the child of a fork.
    pub(crate) fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.blocks.try_lock() {
            self.is_lost.store(true, Relaxed);
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Map<u64, Block>>> {
        if self.is_lost.load(Relaxed) {
            return None;
        }
        Some(self.blocks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
