//! Whose memory this process uses: its own, a copy of its parent's, or that of the parent of a vfork.

use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::sys;

/// The process that watches, or 0.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The word that a fork clears.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

const OWNED: u32 = 1;
const ADOPTING: u32 = 2;

/// Whose memory this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This process's own.
    ThisProcess,
    /// That of the parent of a vfork, or a copy that another thread is adopting.
    OtherProcess,
    /// A copy of the parent's memory, not yet adopted.
    Inherited,
}

/// Whose memory this is. A process that begins to watch becomes its owner.
pub(crate) fn current() -> Owner {
    let process = sys::process_id();
    let owner = PROCESS.load(Acquire);
    if owner == process {
        return Owner::ThisProcess;
    }
    if owner == 0 {
        if PROCESS.compare_exchange(0, process, AcqRel, Relaxed).is_ok()
            && let Some(word) = sys::wipe_on_fork_word()
        {
            word.store(OWNED, Relaxed);
            WORD.store(std::ptr::from_ref(word).cast_mut(), Release);
        }
        return if PROCESS.load(Acquire) == process {
            Owner::ThisProcess
        } else {
            Owner::OtherProcess
        };
    }
    match word() {
        Some(word) if word.compare_exchange(0, ADOPTING, AcqRel, Relaxed).is_ok() => {
            Owner::Inherited
        }
        _ => Owner::OtherProcess,
    }
}

/// The process that watches: this one, if [`current`] returned that it is.
pub(crate) fn process() -> i32 {
    PROCESS.load(Relaxed)
}

/// Whether any process has begun to watch.
pub(crate) fn is_known() -> bool {
    PROCESS.load(Relaxed) != 0
}

/// Whether this is the child of a fork that has not yet adopted its memory.
pub(crate) fn is_copy() -> bool {
    word().is_some_and(|word| word.load(Acquire) == 0)
}

/// Whether this process has watched before, and its memory is its own.
pub(crate) fn is_own() -> bool {
    PROCESS.load(Acquire) == sys::process_id()
}

/// Whether this process borrows the memory of one that watches, like the child of a vfork.
pub(crate) fn is_borrowed() -> bool {
    !is_own() && word().is_none_or(|word| word.load(Acquire) != 0)
}

/// Makes this process the owner of the memory that it inherited.
pub(crate) fn adopted() {
    PROCESS.store(sys::process_id(), Release);
    if let Some(word) = word() {
        word.store(OWNED, Release);
    }
}

fn word() -> Option<&'static AtomicU32> {
    // SAFETY: null, or the word that was made, which is never given back.
    unsafe { WORD.load(Acquire).as_ref() }
}
