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
use crate::signal_mask::{self, Mask};
#[cfg(target_os = "linux")]
use crate::signals::FAULTS;
use crate::signals::without_cancellation;
use crate::valgrind;

/// callgrind is never found.
#[cfg(not(target_os = "linux"))]
type Mask = u64;

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

/// Begins work that is not to be counted.
#[inline]
pub fn uncounted() -> Uncounted {
    Uncounted(if IS_COUNTED.load(Relaxed) == NO { None } else { begin() }, PhantomData)
}

/// As few instructions as possible, because those up to the request are counted.
#[cold]
fn begin() -> Option<Mask> {
    if IS_COUNTED.load(Relaxed) == UNKNOWN {
        return begin_first();
    }
    let begin = |is_off: &Cell<bool>| {
        // If it is off already, nothing is to be done.
        if is_off.get() {
            return None;
        }
        let before = hold()?;
        is_off.set(true);
        valgrind::toggle_collection();
        Some(before)
    };
    // Nor is anything to be done if the thread is ending, and has no thread-local memory any more.
    IS_OFF.try_with(begin).ok().flatten()
}

#[cold]
fn begin_first() -> Option<Mask> {
    let counts_all = {
        let _errno = without_cancellation();
        counts_all()
    };
    IS_COUNTED.store(if counts_all { YES } else { NO }, Relaxed);
    if counts_all { begin() } else { None }
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
/// the system refuses.
#[cfg(target_os = "linux")]
#[inline(always)]
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
    signal_mask::hold(&HELD)
}

#[cfg(target_os = "linux")]
#[inline(always)]
fn release(before: Mask) {
    signal_mask::set(&before);
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
