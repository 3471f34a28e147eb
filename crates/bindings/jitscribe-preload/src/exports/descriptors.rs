//! Functions that close and duplicate descriptors.

use std::ffi::{c_int, c_uint};

use crate::{guest, real, span, watch};

/// Handles a descriptor that is about to be closed. Returns whether it is one of ours: then it stays open, because the program
/// has not opened a descriptor of this number.
fn closes_ours(fd: c_int) -> bool {
    if span::holds(fd) {
        guest::isolated(|| watch::closed(fd));
    }
    span::may_be_own(fd) && guest::isolated(|| watch::is_own(fd))
}

exported! {
    unsafe fn close(fd: c_int) -> c_int {
        if closes_ours(fd) {
            guest::set_errno(libc::EBADF);
            return -1;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { real::close(fd) }
    }

    unsafe fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
        // SAFETY: guaranteed by the caller.
        unsafe { close_between(first, last, flags) }
    }
}

/// `close_range`, except that our own descriptors stay open.
///
/// # Safety
/// As for the C function.
unsafe fn close_between(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    /// `CLOSE_RANGE_CLOEXEC`: nothing is closed yet, and what is ours is to be closed by then.
    const AT_EXEC: c_int = 4;
    if flags & AT_EXEC != 0 || first > last {
        // SAFETY: guaranteed by the caller.
        return unsafe { real::close_range(first, last, flags) };
    }
    guest::isolated(|| watch::closed_between(first, last));
    let mut from = first;
    while let Some(own) = own_between(from, last) {
        if own > from {
            // SAFETY: a part of the range that the caller closes.
            let done = unsafe { real::close_range(from, own - 1, flags) };
            if done != 0 {
                return done;
            }
        }
        if own == last {
            return 0;
        }
        from = own + 1;
    }
    // SAFETY: as above.
    unsafe { real::close_range(from, last, flags) }
}

/// The lowest of our own descriptors from `first` to `last`.
fn own_between(first: c_uint, last: c_uint) -> Option<c_uint> {
    let own = watch::own_fds().filter(|own| (first..=last).contains(own));
    own.filter(|&own| guest::isolated(|| watch::is_own(own as c_int))).min()
}

exported! {
    unsafe fn closefrom(first: c_int) {
        let from = c_uint::try_from(first).unwrap_or(0);
        // SAFETY: guaranteed by the caller. Without this system call (before Linux 5.9), the C library closes the descriptors
        // in another way, including our own.
        if unsafe { close_between(from, c_uint::MAX, 0) } != 0 {
            // SAFETY: guaranteed by the caller.
            unsafe { real::closefrom(first) }
        }
    }

    unsafe fn dup(fd: c_int) -> c_int {
        // SAFETY: guaranteed by the caller.
        let new = unsafe { real::dup(fd) };
        duplicated(fd, new);
        new
    }

    unsafe fn dup2(fd: c_int, new: c_int) -> c_int {
        replaced(fd, new);
        // SAFETY: guaranteed by the caller.
        let new = unsafe { real::dup2(fd, new) };
        duplicated(fd, new);
        new
    }

    unsafe fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
        replaced(fd, new);
        // SAFETY: guaranteed by the caller.
        let new = unsafe { real::dup3(fd, new, flags) };
        duplicated(fd, new);
        new
    }

    unsafe fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
        // SAFETY: guaranteed by the caller. An argument that was not passed is not read.
        let done = unsafe { real::fcntl(fd, command, argument) };
        controlled(fd, command, done);
        done
    }

    unsafe fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
        // SAFETY: as above.
        let done = unsafe { real::fcntl64(fd, command, argument) };
        controlled(fd, command, done);
        done
    }
}

#[inline]
fn controlled(fd: c_int, command: c_int, done: c_int) {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        duplicated(fd, done);
    }
}

/// The number `new` is about to become another file's.
#[inline]
fn replaced(fd: c_int, new: c_int) {
    if fd != new && fd >= 0 {
        if span::holds(new) {
            guest::isolated(|| watch::closed(new));
        }
        if span::may_be_own(new) && guest::isolated(|| watch::is_own(new)) {
            guest::isolated(|| watch::relocate_own_fd(new));
        }
    }
}

#[inline]
fn duplicated(fd: c_int, new: c_int) {
    if span::holds(fd) && new >= 0 && new != fd {
        guest::isolated(|| watch::duplicated(fd, new));
    }
}
