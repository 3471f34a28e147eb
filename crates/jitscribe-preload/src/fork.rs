//! Whose process this is: the one that began to watch, the child of a fork, or one that only borrows its memory.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::{guest, sys, watch};

/// The process that watches, or 0.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The word that a fork clears.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The process that is about to fork has the latch for it.
static IS_HELD: AtomicBool = AtomicBool::new(false);

const KNOWN: u32 = 1;
const ADOPTING: u32 = 2;

/// Whose memory is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This process's own.
    Own,
    /// That of the parent of a vfork, or a copy that another thread is making its own.
    Anothers,
    /// A copy of its parent's, until now.
    Inherited,
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// Asks to be told of forks. Those that the C library knows nothing of are found out afterwards.
pub(crate) fn ask_to_be_told() {
    // SAFETY: functions without arguments, which are there as long as the process: the library is never unloaded.
    unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// Whose memory this is. A process that begins to watch becomes its owner.
pub(crate) fn whose() -> Whose {
    let process = sys::process_id();
    let owner = PROCESS.load(Acquire);
    if owner == process {
        return Whose::Own;
    }
    if owner == 0 {
        if PROCESS.compare_exchange(0, process, AcqRel, Relaxed).is_ok()
            && let Some(word) = sys::word_that_forks_clear()
        {
            word.store(KNOWN, Relaxed);
            WORD.store(std::ptr::from_ref(word).cast_mut(), Release);
        }
        return if PROCESS.load(Acquire) == process { Whose::Own } else { Whose::Anothers };
    }
    match word() {
        Some(word) if word.compare_exchange(0, ADOPTING, AcqRel, Relaxed).is_ok() => {
            Whose::Inherited
        }
        _ => Whose::Anothers,
    }
}

/// The process that watches, which is this one where [`whose`] has said so.
pub(crate) fn owner() -> i32 {
    PROCESS.load(Relaxed)
}

/// Whether this is the child of a fork that has not made its memory its own.
pub(crate) fn is_copy() -> bool {
    word().is_some_and(|word| word.load(Acquire) == 0)
}

/// Whether this process has watched before, and its memory is its own.
pub(crate) fn is_own() -> bool {
    PROCESS.load(Acquire) == sys::process_id()
}

/// Whether this process borrows the memory of one that watches, as a child of vfork does.
pub(crate) fn is_borrowed() -> bool {
    !is_own() && word().is_none_or(|word| word.load(Acquire) != 0)
}

/// This process goes on with what it inherited.
pub(crate) fn adopted() {
    PROCESS.store(sys::process_id(), Release);
    if let Some(word) = word() {
        word.store(KNOWN, Release);
    }
}

fn word() -> Option<&'static AtomicU32> {
    // SAFETY: null, or the word that was made, which is never given back.
    unsafe { WORD.load(Acquire).as_ref() }
}

/// Nobody is in the middle of anything when the child's memory is made.
extern "C" fn prepare() {
    // What another thread, which forks as well, has written there stays.
    if PROCESS.load(Relaxed) != 0 && guest::quietly(watch::hold_for_fork) {
        IS_HELD.store(true, Relaxed);
    }
}

extern "C" fn parent() {
    if IS_HELD.swap(false, Relaxed) {
        guest::quietly(watch::release_after_fork);
    }
}

extern "C" fn child() {
    if PROCESS.load(Relaxed) == 0 {
        return;
    }
    if IS_HELD.swap(false, Relaxed) {
        watch::reset_latch();
    }
    guest::quietly(watch::note_fork);
}
