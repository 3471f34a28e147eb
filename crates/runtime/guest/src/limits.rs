//! Limits of the process.
#![allow(unsafe_code)]

/// The maximum size of the process's files (`RLIMIT_FSIZE`): exceeding it raises SIGXFSZ. `None` if there is no limit, or if
/// the system does not report it, for example because of a filter of system calls.
#[must_use]
pub fn file_size_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is an out-parameter.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
