//! This process's memory, read by the kernel: what is not there is an error, and not a signal.

use std::os::fd::OwnedFd;

use guest::WithoutCancellation;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread};

/// The memory of this process. Opening and reading it is async-signal-safe.
#[derive(Debug)]
pub(crate) struct OwnMemory {
    file: OwnedFd,
    // Dropped after the file, as closing it may change `errno`.
    _thread: WithoutCancellation,
}

impl OwnMemory {
    /// `None` if the system refuses it: without `/proc`, for example.
    pub(crate) fn open() -> Option<Self> {
        let thread = guest::without_cancellation();
        let file = open(c"/proc/self/mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self { file, _thread: thread })
    }

    /// Reads all of `buffer` from `address` on. `false` if not all of it is readable.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match pread(&self.file, rest, address.wrapping_add(done as u64)) {
                Ok(count) if count > 0 => done += count,
                Err(Errno::INTR) => {}
                _ => return false,
            }
        }
        true
    }
}
