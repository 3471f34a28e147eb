//! The thread that looks at files which are written through a mapping, of which no call tells.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::{guest, sys, watch};

/// How long between two looks: what was the same at two of them counts.
const PAUSE: std::ffi::c_long = 2_000_000;

/// The process that has such a thread.
static RUNS_IN: AtomicI32 = AtomicI32::new(0);

/// Starts it, if there is none. It ends when there is nothing to be looked at.
pub(crate) fn begin() {
    let process = sys::process_id();
    if RUNS_IN.swap(process, Relaxed) == process {
        return;
    }
    let run = || {
        loop {
            sys::sleep(PAUSE);
            if !guest::quietly(watch::poll) {
                break;
            }
        }
        RUNS_IN.store(0, Relaxed);
    };
    if in_process::spawn("jitscribe", run).is_err() {
        RUNS_IN.store(0, Relaxed);
    }
}
