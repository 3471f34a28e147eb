//! Waiting where the system does not let a thread wait.
#![allow(unsafe_code)]

use std::time::Duration;

/// Sleeps for `time` if `error`, the result of a wait on a futex, means that the system call is forbidden, as by a filter of
/// system calls. Otherwise a thread that waits in a loop would spin.
pub fn sleep_if_refused(error: i32, time: Duration) {
    if matches!(error, libc::EAGAIN | libc::EINTR | libc::ETIMEDOUT) {
        return;
    }
    let _thread = crate::without_cancellation();
    let time = libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(1),
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the time lives during the call; the remaining time is not requested.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::sleep_if_refused;

    #[test]
    fn only_a_refused_futex_wait_sleeps() {
        let takes = |error| {
            let began = Instant::now();
            sleep_if_refused(error, Duration::from_secs(1));
            began.elapsed()
        };
        for error in [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT] {
            assert!(takes(error) < Duration::from_millis(900));
        }
        assert!(takes(libc::EPERM) >= Duration::from_secs(1));
    }
}
