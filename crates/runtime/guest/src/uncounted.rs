//! Keeps the work of a library out of the profile of the callgrind that runs the process.
//!
//! callgrind has one request for this, which inverts whether it counts what the thread does (`CALLGRIND_TOGGLE_COLLECT` of
//! callgrind.h); nothing tells the current state, which each thread and each signal handler has for itself. It is known only if
//! nothing else inverts it. So if any option that does is set, the work is counted where the program's own work is.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

#[cfg(target_os = "linux")]
use crate::callgrind::counts_all;
#[cfg(target_os = "linux")]
use crate::signals::FAULTS;
use crate::signals::without_cancellation;
use crate::valgrind;

/// Whether callgrind counts everything that threads do, unless this module tells it otherwise.
static IS_COUNTED: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

thread_local! {
    /// Whether this thread is not counted at present.
    static IS_OFF: Cell<bool> = const { Cell::new(false) };
}

/// While this value exists, the callgrind that runs the process, if any, does not count what this thread does. Calls are still in
/// the profile, with no cost. Without callgrind, this takes a few instructions.
///
/// Under callgrind, signals are held back, too, as by [`hold_signals`](crate::hold_signals): a handler that leaves by a jump would leave the thread
/// uncounted.
///
/// Everything is counted if the user set `--collect-atstart` or `--toggle-collect`. A program that makes callgrind's request
/// itself, and calls this while it is not counted, has this work in its profile.
#[derive(Debug)]
#[must_use = "the thread is counted again when it is dropped"]
pub struct Uncounted(Option<Mask>, PhantomData<*const ()>);

/// A set of signals, as the kernel has it.
type Mask = u64;

/// Begins work that is not to be counted.
#[inline]
pub fn uncounted() -> Uncounted {
    Uncounted(if IS_COUNTED.load(Relaxed) == NO { None } else { begin() }, PhantomData)
}

#[cold]
fn begin() -> Option<Mask> {
    if IS_COUNTED.load(Relaxed) == UNKNOWN {
        let _errno = without_cancellation();
        IS_COUNTED.store(if counts_all() { YES } else { NO }, Relaxed);
    }
    if IS_COUNTED.load(Relaxed) == NO {
        return None;
    }
    // If it is off already, nothing is to be done; nor if the thread is ending, and has no thread-local memory any more.
    if IS_OFF.try_with(Cell::get) != Ok(false) {
        return None;
    }
    let before = hold()?;
    let _ = IS_OFF.try_with(|is_off| is_off.set(true));
    valgrind::toggle_collection();
    Some(before)
}

impl Drop for Uncounted {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            end(before);
        }
    }
}

#[cold]
fn end(before: Mask) {
    let _ = IS_OFF.try_with(|is_off| is_off.set(false));
    valgrind::toggle_collection();
    release(before);
}

/// Holds back all signals but those of [`FAULTS`] and the C library's own, and returns those that were held back before. `None` if
/// the system refuses. The system call is made directly, because the instructions up to the request are counted.
#[cfg(target_os = "linux")]
fn hold() -> Option<Mask> {
    /// glibc and musl use the first ones of the real-time signals, to cancel threads among others.
    const RESERVED: Mask = 0b111 << 31;
    const HELD: Mask = {
        let (mut held, mut at) = (!RESERVED, 0);
        while at < FAULTS.len() {
            held &= !(1 << (FAULTS[at] - 1));
            at += 1;
        }
        held
    };
    let mut before = 0;
    set_mask(libc::SIG_BLOCK, &HELD, Some(&mut before)).then_some(before)
}

#[cfg(target_os = "linux")]
fn release(before: Mask) {
    set_mask(libc::SIG_SETMASK, &before, None);
}

#[cfg(target_os = "linux")]
fn set_mask(how: libc::c_int, new: &Mask, before: Option<&mut Mask>) -> bool {
    let before = before.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: `errno` of this thread. It changes if the call fails.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: a set to read, and none or one to write, of this size. Only the thread's signals change.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            std::ptr::from_ref(new),
            before,
            size_of::<Mask>(),
        )
    };
    if failed != 0 {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
    failed == 0
}

/// callgrind is never found.
#[cfg(not(target_os = "linux"))]
fn hold() -> Option<Mask> {
    None
}

#[cfg(not(target_os = "linux"))]
fn release(_: Mask) {}

/// callgrind is known for Linux.
#[cfg(not(target_os = "linux"))]
fn counts_all() -> bool {
    false
}
