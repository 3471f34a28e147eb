//! Functions that close descriptors and give them other numbers.

use std::ffi::{c_int, c_uint};

use crate::{guest, real, span, watch};

/// Takes note of a descriptor that is about to be closed. Whether it is one of ours: then it stays open, as the program
/// has opened none of this number.
fn closes_ours(fd: c_int) -> bool {
    if span::holds(fd) {
        guest::quietly(|| watch::closed(fd));
    }
    span::may_be_own(fd) && guest::quietly(|| watch::is_own(fd))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if closes_ours(fd) {
        guest::set_errno(libc::EBADF);
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { real::close(fd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    /// `CLOSE_RANGE_CLOEXEC`: nothing is closed yet, and what is ours is to be closed by then.
    const AT_EXEC: c_int = 4;
    if flags & AT_EXEC != 0 || first > last {
        // SAFETY: the caller's promise.
        return unsafe { real::close_range(first, last, flags) };
    }
    guest::quietly(|| watch::closed_between(first, last));
    let mut from = first;
    while let Some(own) = own_between(from, last) {
        if own > from {
            // SAFETY: a part of what the caller wants closed.
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
    own.filter(|&own| guest::quietly(|| watch::is_own(own as c_int))).min()
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    let from = c_uint::try_from(first).unwrap_or(0);
    // SAFETY: the caller's promise. Without this system call (before Linux 5.9) the C library has a way of its own, and
    // what is ours is closed as well.
    if unsafe { close_range(from, c_uint::MAX, 0) } != 0 {
        // SAFETY: the caller's promise.
        unsafe { real::closefrom(first) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let new = unsafe { real::dup(fd) };
    duplicated(fd, new);
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, new: c_int) -> c_int {
    replaced(fd, new);
    // SAFETY: the caller's promise.
    let new = unsafe { real::dup2(fd, new) };
    duplicated(fd, new);
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int {
    replaced(fd, new);
    // SAFETY: the caller's promise.
    let new = unsafe { real::dup3(fd, new, flags) };
    duplicated(fd, new);
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller's promise. An argument that was not given is not looked at.
    let done = unsafe { real::fcntl(fd, command, argument) };
    controlled(fd, command, done);
    done
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: as above.
    let done = unsafe { real::fcntl64(fd, command, argument) };
    controlled(fd, command, done);
    done
}

#[inline]
fn controlled(fd: c_int, command: c_int, done: c_int) {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        duplicated(fd, done);
    }
}

/// The number `new` is about to be another file's.
#[inline]
fn replaced(fd: c_int, new: c_int) {
    if fd != new && fd >= 0 {
        if span::holds(new) {
            guest::quietly(|| watch::closed(new));
        }
        if span::may_be_own(new) && guest::quietly(|| watch::is_own(new)) {
            guest::quietly(|| watch::make_way(new));
        }
    }
}

#[inline]
fn duplicated(fd: c_int, new: c_int) {
    if span::holds(fd) && new >= 0 && new != fd {
        guest::quietly(|| watch::duplicated(fd, new));
    }
}
