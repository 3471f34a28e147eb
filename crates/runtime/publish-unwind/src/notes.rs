//! Memory for libgcc's data about a registration up to version 12, its `struct object`.
//!
//! A walk that has found an FDE reads the `struct object` of its registration again after it has released libgcc's lock, for the
//! encoding of addresses (`_Unwind_Find_FDE` in `unwind-dw2-fde.c`). `__deregister_frame` frees the `struct object`, and another
//! thread's walk then aborts the process. So we provide this memory, and keep it unchanged after deregistration for longer than
//! a thread needs for its next ten instructions.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fallible::{Refused, VecDeque};

/// More than libgcc uses, which is six or seven words.
const WORDS: usize = 12;
/// How long memory is kept unchanged after deregistration.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Memory for one `struct object`, which is never returned to the allocator.
#[derive(Debug)]
pub(crate) struct Note(NonNull<[usize; WORDS]>);

// SAFETY: only libgcc accesses the memory: under its lock, or to read what does not change.
unsafe impl Send for Note {}

/// Notes of ended registrations, the oldest first. Never wait for the lock: after a fork it may stay locked for ever.
static RETIRED: Mutex<VecDeque<(Instant, Note)>> = Mutex::new(VecDeque::new());

impl Note {
    pub(crate) fn new() -> Result<Self, Refused> {
        if let Ok(mut retired) = RETIRED.try_lock()
            && retired.front().is_some_and(|(since, _)| since.elapsed() >= GRACE_PERIOD)
            && let Some((_, note)) = retired.pop_front()
        {
            return Ok(note);
        }
        fallible::leaked([0; WORDS]).map(|words| Self(NonNull::from(words)))
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// Keeps the note after its registration has ended.
    pub(crate) fn retire(self) {
        if let Ok(mut retired) = RETIRED.try_lock() {
            // A note that cannot be stored is never reused.
            let _ = retired.try_push_back((Instant::now(), self));
        }
    }
}
