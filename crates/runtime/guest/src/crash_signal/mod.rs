//! Runs work before a crash signal ends the process.
//!
//! ```no_run
//! jitscribe_guest::crash_signal::prepare(|| { /* an ordinary thread runs this */ })?;
//! jitscribe_guest::crash_signal::watch();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A signal handler may call almost nothing: neither the allocator, nor anything that takes a lock, because the
//! interrupted thread may hold it. So the work runs on a thread that is created beforehand and waits. The handler wakes
//! it and waits in turn, with two futexes, for at most five seconds: if the crashed thread holds what the work needs,
//! the process ends as it would have without this crate. The thread makes one allocation when it starts, so that
//! allocators with per-thread memory (such as glibc's) have set it up, and a crash within the allocator does no harm.
//!
//! # Other handlers
//!
//! With [`watch`], a previously installed handler decides whether the signal is a crash at all: runtimes turn a SIGSEGV
//! into an exception, or continue elsewhere. That handler runs first, called as the kernel would have called it. The
//! work runs if there was no handler, or if the handler sets the signal to SIG_DFL and returns, as handlers do that
//! want the process to end. A handler that ends the process with `abort` raises SIGABRT, which is a crash of its own. A
//! handler that is installed later replaces ours; if it chains to the previous handler, it calls ours.
//!
//! A handler that needs the work done while it runs (because it lets a debugger attach, or writes a core file itself)
//! calls [`run_now`].
//!
//! On systems other than Linux, [`prepare`] fails.

#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod worker;

use std::io;

#[cfg(target_os = "linux")]
pub use worker::PATIENCE;

/// Adds `work` to what runs whenever [`run_now`] is called. It may be called more than once, and must not unwind.
///
/// # Errors
/// If no thread can be created, or the system does not support this.
pub fn prepare(work: impl Fn() + Send + Sync + 'static) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let work = fallible::boxed(work).map_err(|_| io::ErrorKind::OutOfMemory)?;
        worker::prepare(work)
    }
    #[cfg(not(target_os = "linux"))]
    {
        drop(work);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Runs the work now, waits for it, and returns whether it is done. For signal handlers, but can be called from
/// anywhere.
///
/// `false` if the work takes longer than five seconds, on the thread that runs it, and in a process without this
/// thread: see [`forked`].
pub fn run_now() -> bool {
    #[cfg(target_os = "linux")]
    return worker::run_now();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Calls [`run_now`] before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process. A second call
/// does nothing. Signals that are ignored stay ignored.
pub fn watch() {
    #[cfg(target_os = "linux")]
    signals::watch();
}

/// Creates a new thread in the child of a fork, which has none. Without it, a crash of the child runs no work.
///
/// # Errors
/// As for [`prepare`]; none if nothing was prepared.
pub fn forked() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return worker::begin();
    #[cfg(not(target_os = "linux"))]
    Ok(())
}
