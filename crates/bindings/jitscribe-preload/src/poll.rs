//! The thread that polls files which are written through a mapping, without any call that could be
//! interposed.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::sys;

/// Time between two polls, in nanoseconds: content that is the same in both is valid.
const PAUSE: std::ffi::c_long = 2_000_000;

/// The process that has such a thread.
static RUNS_IN: AtomicI32 = AtomicI32::new(0);

/// Starts the thread, if there is none. It calls `poll` until that returns that there is nothing to poll.
pub(crate) fn begin(poll: fn() -> bool) {
    let process = sys::process_id();
    if RUNS_IN.swap(process, Relaxed) == process {
        return;
    }
    let run = move || {
        loop {
            sys::sleep(PAUSE);
            if !poll() {
                break;
            }
        }
        RUNS_IN.store(0, Relaxed);
    };
    if ::guest::spawn("jitscribe", run).is_err() {
        RUNS_IN.store(0, Relaxed);
    }
}
