//! System calls of the helper and its workers that have no safe interface.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;

/// Forks. The child gets `None`.
///
/// # Errors
/// The system's error.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the helper has a single thread, so in the child, no lock is held by a thread that does not exist there.
    // (In tests, the process has several threads. The C library keeps its own locks, including those of `malloc`, usable in
    // the child, and Rust's locks are not used before the fork.)
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(pid))
}

/// Ends this process immediately, without flushing buffers or running exit handlers inherited from the parent.
pub fn exit() -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(0) }
}

/// Whether this program gained privileges through its file (set-user-ID or file capabilities).
pub fn is_privileged_by_file() -> bool {
    // SAFETY: `getauxval` has no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Ends this process with SIGALRM after this many seconds, unless it has ended by then.
pub fn end_after(seconds: u32) {
    // SAFETY: neither call has preconditions; no handler is installed.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(seconds);
    }
}

/// Closes all descriptors from 3 on.
pub fn close_all() {
    // SAFETY: this is called at the start of the helper, where only standard input, output and error have owners, and by
    // `keep_only`, whose caller ends without dropping the owners of other descriptors.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if done == 0 {
        return;
    }
    // Before Linux 5.9.
    for number in 3..1024 {
        // SAFETY: as above.
        unsafe { libc::close(number) };
    }
}

/// Makes one descriptor the standard input, another the standard output, and closes all others except standard error. The caller
/// must use no other descriptor afterwards, and must end with [`exit`].
///
/// # Errors
/// The system's error.
pub fn keep_only(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    for (descriptor, number) in [(input, 0), (output, 1)] {
        // SAFETY: the descriptor is open. Only the standard library owns 0 and 1; it expects them to be open, and they stay open.
        if unsafe { libc::dup2(descriptor.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    close_all();
    Ok(())
}

/// Makes standard input and `other` duplicates of standard output.
///
/// # Errors
/// The system's error.
pub fn replace_by_output(other: BorrowedFd<'_>) -> io::Result<()> {
    for number in [0, other.as_raw_fd()] {
        // SAFETY: both descriptors stay open, and their owners own the duplicates. The caller no longer uses either as a socket.
        if unsafe { libc::dup2(1, number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes the kernel reject, permanently, all system calls except those that `program` allows.
pub fn set_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let count = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: count, filter: program.as_ptr().cast_mut() };
    // SAFETY: `program` points to a filter of `len` instructions, which the kernel copies and validates.
    let done = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
