//! Has work done before a crash signal ends the process.
//!
//! ```no_run
//! crash_signal::prepare(|| { /* write down what is known: an ordinary thread runs this */ })?;
//! crash_signal::watch();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A signal handler may call next to nothing: not the allocator, nor whatever takes a lock, as the thread that was
//! interrupted may be in the middle of it. So the work is done by a thread that is made beforehand and waits; the
//! handler wakes it and waits in turn, by two futexes, and no longer than [`PATIENCE`]: if the crash holds what the
//! work needs, it ends as it would have without. The thread makes one allocation when it begins, so that allocators
//! that give threads memory of their own (glibc's does) have done so, and a crash within the allocator does no harm.
//!
//! # Other handlers
//!
//! [`watch`] leaves to the handler that was there whether the signal is a crash at all: runtimes turn a SIGSEGV into an
//! exception, or go on elsewhere. It is called first, and as the kernel would have called it. The work is done when
//! there was none; or when it has set the signal to its default and returns, as handlers do that want the process to
//! end. One that ends the process by `abort` is followed by SIGABRT, which is a crash of its own. What is installed
//! later replaces ours: a handler that passes on what it does not know passes it to ours.
//!
//! A handler that needs the work done while it runs (it has a debugger attach, or writes a core by itself) calls
//! [`tell`].
//!
//! On other systems than Linux there is nothing: [`prepare`] fails.

#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod worker;

use std::io;
use std::time::Duration;

/// How long a crash waits for the work at most.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Has `work` done with all that was given here before, whenever [`tell`] is called. It must bear to be called more
/// than once; it must not unwind.
///
/// # Errors
/// If no thread can be made, or on a system without.
pub fn prepare(work: impl Fn() + Send + Sync + 'static) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return worker::prepare(Box::new(work));
    #[cfg(not(target_os = "linux"))]
    {
        drop(work);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Has the work done now, and waits for it: whether it is done. For signal handlers, but from anywhere.
///
/// `false` if it takes longer than [`PATIENCE`], in the thread that does it, and in a process that has none: see
/// [`forked`].
pub fn tell() -> bool {
    #[cfg(target_os = "linux")]
    return worker::tell();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Calls [`tell`] before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process. A second call
/// does nothing. What is ignored stays ignored.
pub fn watch() {
    #[cfg(target_os = "linux")]
    signals::watch();
}

/// Makes a new thread in the child of a fork, which has none. Without, a crash there goes by as ever.
///
/// # Errors
/// As [`prepare`]; not if nothing was prepared.
pub fn forked() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return worker::begin();
    #[cfg(not(target_os = "linux"))]
    Ok(())
}
