//! macOS.
#![allow(unsafe_code)]

use std::time::Duration;

/// The value of an environment variable.
pub(crate) use fallible::variable;

/// Nanoseconds of `CLOCK_UPTIME_RAW`: of `mach_absolute_time`, which samply gives its samples.
pub(crate) fn nanoseconds() -> u64 {
    // SAFETY: it takes a number of a clock that exists since macOS 10.12, which is older than what Rust supports.
    unsafe { clock_gettime_nsec_np(libc::CLOCK_UPTIME_RAW) }
}

unsafe extern "C" {
    /// clock_gettime(3) of macOS.
    fn clock_gettime_nsec_np(clock: libc::clockid_t) -> u64;
}

/// Sleeps.
pub(crate) fn nap(time: Duration) {
    std::thread::sleep(time);
}

pub(crate) fn process_id() -> u32 {
    std::process::id()
}

/// The system's id of this thread: of its upper half, nothing is kept. Ids are counted from the start of the system on.
pub(crate) fn thread_id() -> u32 {
    let mut id = 0;
    // SAFETY: 0 means this thread; it writes to the number, and cannot fail for a thread that runs.
    unsafe { libc::pthread_threadid_np(0, &raw mut id) };
    id as u32
}

/// Whether the system gave the program more privileges than its caller has.
pub(crate) fn has_more_rights() -> bool {
    // SAFETY: it takes nothing.
    unsafe { libc::issetugid() != 0 }
}

/// Whether a debugger is attached.
pub(crate) fn is_traced() -> bool {
    /// `P_TRACED` of sys/proc.h.
    const TRACED: u32 = 0x800;
    let mut info = std::mem::MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as libc::c_int;
    let pid = process_id().cast_signed();
    // SAFETY: it writes at most `size` bytes, which are there.
    let filled = unsafe {
        libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), size)
    };
    // SAFETY: all of it is written; and any bits are valid, zeros to begin with.
    filled == size && unsafe { info.assume_init() }.pbi_flags & TRACED != 0
}

/// The log's memory has no limit of its own.
pub(crate) fn memory_limit() -> Option<u64> {
    None
}
