//! Keeps the work of a library out of the profile of the callgrind that runs the process.
//!
//! callgrind has one request for this, which inverts whether it counts what the thread does (`CALLGRIND_TOGGLE_COLLECT` of
//! callgrind.h); nothing tells the current state, which each thread and each signal handler has for itself. It is known only if
//! nobody else inverts it. So if any option that does is set, the work is counted where the program's own work is.
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

#[cfg(target_os = "linux")]
use crate::callgrind::counts_all;
use crate::signals::{SignalsHeld, hold_signals, without_cancellation};
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
/// Under callgrind, signals are held back, too (see [`hold_signals`]): a handler that leaves by a jump would leave the thread
/// uncounted.
///
/// Everything is counted if the user set `--collect-atstart` or `--toggle-collect`. A program that makes callgrind's request
/// itself, and calls this while it is not counted, has this work in its profile.
#[derive(Debug)]
#[must_use = "the thread is counted again when it is dropped"]
pub struct Uncounted(Option<SignalsHeld>);

/// Begins work that is not to be counted.
#[inline]
pub fn uncounted() -> Uncounted {
    Uncounted(if IS_COUNTED.load(Relaxed) == NO { None } else { begin() })
}

#[cold]
fn begin() -> Option<SignalsHeld> {
    if IS_COUNTED.load(Relaxed) == UNKNOWN {
        let _errno = without_cancellation();
        IS_COUNTED.store(if counts_all() { YES } else { NO }, Relaxed);
    }
    if IS_COUNTED.load(Relaxed) == NO {
        return None;
    }
    let signals = hold_signals();
    // It is off already, or the thread is ending and has no thread-local memory any more.
    if IS_OFF.try_with(|is_off| is_off.replace(true)) != Ok(false) {
        return None;
    }
    valgrind::toggle_collection();
    Some(signals)
}

impl Drop for Uncounted {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            end();
        }
    }
}

#[cold]
fn end() {
    if IS_OFF.try_with(|is_off| is_off.set(false)).is_ok() {
        valgrind::toggle_collection();
    }
}

/// callgrind is known for Linux.
#[cfg(not(target_os = "linux"))]
fn counts_all() -> bool {
    false
}
