//! Threads.
#![allow(unsafe_code)]

use std::io;

/// Starts a thread that runs `work` and receives no signals. Linux keeps the first 15 bytes of `name`.
///
/// A signal that is sent to a process is handled by any thread that does not block it (signal(7)). The signal handlers of a
/// runtime rely on running on its own threads: other threads lack the runtime's thread-local data, and maybe the alternate
/// stack. A fault of the thread itself ends the process, without calling a handler.
///
/// # Errors
/// If the system cannot create a thread, or an allocation fails.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    with_signals_blocked(|| start(name, work))
}

/// The argument of the thread.
#[cfg(unix)]
struct Start<F> {
    name: [u8; 16],
    work: F,
}

/// `std::thread::spawn` aborts the process when an allocation fails.
#[cfg(unix)]
fn start<F: FnOnce() + Send + 'static>(name: &str, work: F) -> io::Result<()> {
    use std::mem::MaybeUninit;
    /// The same as in `std`.
    const STACK: usize = 2 << 20;

    let mut start = Start { name: [0; 16], work };
    for (place, byte) in start.name.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    let start = fallible::boxed(start).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let start = Box::into_raw(start);
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised by the first call before they are used, and destroyed once. The function takes
    // back what `start` points to, which has its type; if no thread was created, there is no other reference to it.
    let failed = unsafe {
        let mut failed = libc::pthread_attr_init(attributes.as_mut_ptr());
        if failed == 0 {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
            libc::pthread_attr_setdetachstate(
                attributes.as_mut_ptr(),
                libc::PTHREAD_CREATE_DETACHED,
            );
            failed = libc::pthread_create(
                thread.as_mut_ptr(),
                attributes.as_ptr(),
                run::<F>,
                start.cast(),
            );
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        if failed != 0 {
            drop(Box::from_raw(start));
        }
        failed
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

/// What a thread begins with.
#[cfg(unix)]
extern "C" fn run<F: FnOnce()>(start: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: it was made for this function by `start`, which gave it away.
    let start = unsafe { Box::from_raw(start.cast::<Start<F>>()) };
    #[cfg(target_os = "linux")]
    // SAFETY: the name ends with a NUL within its 16 bytes.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, start.name.as_ptr());
    }
    let work = start.work;
    let _unchecked = crate::sanitizers::unchecked();
    // A panic ends this thread and nothing else.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    std::ptr::null_mut()
}

#[cfg(not(unix))]
fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Runs `action` with all signals blocked in this thread. A thread that it creates inherits this.
#[cfg(unix)]
fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    use std::mem::MaybeUninit;
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are filled by the calls, the first before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = action();
    // SAFETY: `before` was filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    done
}

/// There are none.
#[cfg(not(unix))]
fn with_signals_blocked<T>(action: impl FnOnce() -> T) -> T {
    action()
}

/// The kernel's id of this thread; where a filter of system calls refuses it, the process's.
#[cfg(target_os = "linux")]
#[must_use]
pub fn thread_id() -> u32 {
    // SAFETY: it takes nothing. It fails in such a case alone, and an error is no id.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or_else(|_| std::process::id())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Notifier, spawn};

    #[test]
    fn a_thread_wakes_when_notified() {
        static NOTIFIER: Notifier = Notifier::new();
        let (done, seen) = std::sync::mpsc::channel();
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        spawn("in-process-test", move || {
            for _ in 0..3 {
                NOTIFIER.wait();
                let name = std::fs::read_to_string("/proc/thread-self/comm");
                done.send(name.unwrap_or_default()).unwrap();
            }
            drop(theirs);
        })
        .unwrap();
        for _ in 0..3 {
            NOTIFIER.notify();
            let name = seen.recv().unwrap();
            assert!(cfg!(not(target_os = "linux")) || name == "in-process-test\n", "{name:?}");
        }
        // What it was given is dropped when it ends.
        assert!(seen.recv().is_err());
    }
}
