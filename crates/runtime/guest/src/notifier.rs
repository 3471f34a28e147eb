//! Waking a thread.
#![allow(unsafe_code)]

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Release},
};

/// One thread waits for it, and other threads notify it. It does not allocate, which `std::thread::park` may, and it
/// has no state that the child of a fork could not use.
#[derive(Debug, Default)]
pub struct Notifier(AtomicU32);

impl Notifier {
    /// A notifier that was not notified yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Wakes the waiting thread, or the next one that waits.
    pub fn notify(&self) {
        if self.0.swap(1, AcqRel) == 0 {
            self.wake();
        }
    }

    /// Waits until another thread calls [`Self::notify`]. Returns at once if one has done so since the last wait.
    pub fn wait(&self) {
        while self.0.swap(0, AcqRel) == 0 {
            self.sleep();
        }
    }

    /// Clears an earlier notification.
    pub fn reset(&self) {
        self.0.store(0, Release);
    }

    #[cfg(target_os = "linux")]
    fn wake(&self) {
        // SAFETY: the word exists during the call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    #[cfg(target_os = "linux")]
    fn sleep(&self) {
        if self.0.load(Acquire) != 0 {
            return;
        }
        // SAFETY: the word exists during the call; a NULL timeout means none.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                0,
                std::ptr::null::<libc::timespec>(),
            )
        };
        if answer == -1 {
            let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            crate::sleep_if_refused(error, std::time::Duration::from_secs(1));
        }
    }

    /// Does nothing: the waiting thread polls.
    #[cfg(not(target_os = "linux"))]
    fn wake(&self) {}

    #[cfg(not(target_os = "linux"))]
    fn sleep(&self) {
        if self.0.load(Acquire) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
