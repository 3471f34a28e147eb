//! A thread of a library's own in somebody else's process, to which none of the process's signals go.
//!
//! A signal that is sent to a process is handled by any thread that does not block it (signal(7)). The handlers of a runtime
//! count on their own threads: on another they miss what these keep for themselves, and maybe the alternate stack.

#![warn(missing_docs)]
#![deny(unsafe_code)]

#[cfg(unix)]
mod mask;

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of this name (of which Linux keeps 15 bytes) that does `work`.
///
/// What would be sent to it alone stays away as well; a fault of its own ends the process, with no handler asked.
///
/// # Errors
/// If the system gives no thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let start = || Builder::new().name(name.to_owned()).spawn(work);
    #[cfg(unix)]
    return mask::with_all_blocked(start);
    #[cfg(not(unix))]
    return start();
}
