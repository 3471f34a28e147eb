//! The processes that are being recorded, as workers that read them again and again need them.

use std::io;

use super::scope::Scope;
use crate::foreign::helper_pid;
use crate::process::children;

/// The maximum number of descendants that are listed.
const LISTED: usize = 1024;

/// The recorded processes that run now.
pub fn recorded_now(scope: &Scope) -> Vec<u32> {
    let own = std::process::id();
    match scope {
        // What perf runs, but neither perf nor the helper with its workers.
        Scope::None => {
            let helper = helper_pid();
            let mut perf = children(own).unwrap_or_default();
            perf.retain(|&pid| Some(pid) != helper);
            let mut family = descendants(perf.clone());
            family.retain(|pid| !perf.contains(pid));
            family
        }
        Scope::Processes(pids) => descendants(pids.clone()),
        Scope::User(_) | Scope::All => scope.pids(),
    }
}

/// These processes, and the processes that they started.
fn descendants(mut family: Vec<u32>) -> Vec<u32> {
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        for child in children(pid).unwrap_or_default() {
            // Processes start and end while they are listed.
            if family.len() < LISTED && !family.contains(&child) {
                family.push(child);
            }
        }
        next += 1;
    }
    family
}

/// Whether the process has ended, or runs another program.
pub fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, NotFound};
    let is_no_process = error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
    is_no_process || matches!(error.kind(), NotFound | Interrupted)
}
