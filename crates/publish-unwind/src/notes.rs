//! Memory for what libgcc up to 12 notes of a registration, its `struct object`.
//!
//! A walk that has found a description looks once more at the note of its registration when it has opened libgcc's lock
//! again, to see how addresses are written there (`_Unwind_Find_FDE` in `unwind-dw2-fde.c`). `__deregister_frame` frees
//! the note, and another thread's walk then aborts the process. So the notes are ours, and one whose registration is over
//! stays as it is for longer than a thread takes for its next ten instructions.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// More than libgcc uses: six or seven words.
const WORDS: usize = 12;
/// For so long, what is over is left as it is.
const REST: Duration = Duration::from_secs(1);

/// Room for one note, which is never given back to the allocator.
#[derive(Debug)]
pub(crate) struct Note(NonNull<[usize; WORDS]>);

// SAFETY: memory that libgcc alone touches, under its lock, or to read what stays as it is.
unsafe impl Send for Note {}

/// Notes of registrations that are over, the oldest first. The lock is never waited for: after a fork it may be closed for ever.
static OVER: Mutex<VecDeque<(Instant, Note)>> = Mutex::new(VecDeque::new());

impl Note {
    pub(crate) fn new() -> Self {
        if let Ok(mut over) = OVER.try_lock()
            && over.front().is_some_and(|(since, _)| since.elapsed() >= REST)
            && let Some((_, note)) = over.pop_front()
        {
            return note;
        }
        Self(NonNull::from(Box::leak(Box::new([0; WORDS]))))
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// Its registration is over.
    pub(crate) fn rest(self) {
        if let Ok(mut over) = OVER.try_lock() {
            over.push_back((Instant::now(), self));
        }
    }
}
