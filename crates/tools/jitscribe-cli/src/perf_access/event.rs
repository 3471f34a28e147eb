//! The system call that perf records with.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

/// `PERF_TYPE_SOFTWARE`: an event that every machine has.
const SOFTWARE: u32 = 1;
/// The size of the first version of the attributes, which every kernel accepts.
const SIZE: usize = 64;
/// `disabled`, `exclude_kernel` and `exclude_hv`: a user without privileges may at most record user code.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;

/// Opens an event that counts the processor time of this thread, or of all processes on the first processor, in user code.
///
/// # Errors
/// The system's error: the event is not allowed.
pub fn open(all_processes: bool) -> Result<OwnedFd, Errno> {
    let (pid, cpu): (libc::pid_t, libc::c_int) = if all_processes { (-1, 0) } else { (0, -1) };
    // `struct perf_event_attr`: type, size, config, period, sample_type, read_format, and the flags. PERF_COUNT_SW_CPU_CLOCK is 0.
    let mut attributes = [0_u64; SIZE / 8];
    let mut first = [0_u8; 8];
    first[..4].copy_from_slice(&SOFTWARE.to_ne_bytes());
    first[4..].copy_from_slice(&(SIZE as u32).to_ne_bytes());
    attributes[0] = u64::from_ne_bytes(first);
    attributes[5] = FLAGS;
    let (no_group, close_on_exec): (libc::c_int, libc::c_ulong) = (-1, 1 << 3);
    // SAFETY: the attributes are as long as they say, and live until the call returns.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            pid,
            cpu,
            no_group,
            close_on_exec,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: the call has just opened this descriptor, which nothing else owns.
        Ok(number @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
