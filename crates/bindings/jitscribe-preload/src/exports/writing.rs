//! Functions that write to a descriptor.

use std::ffi::{c_int, c_uint, c_void};

use libc::{iovec, off_t, size_t, ssize_t};

use crate::{guest, real, span, streams, watch};

/// Before a call that writes to a descriptor that may be watched.
#[cold]
pub(super) fn before_write(fd: c_int) {
    if watch::may_be_inherited() {
        guest::isolated(|| watch::will_write(fd));
    }
}

/// After such a call.
#[cold]
pub(super) fn after_write(fd: c_int) {
    guest::isolated(|| {
        streams::forget_records();
        watch::wrote(fd);
    });
}

macro_rules! writing {
    ($($name:ident($($argument:ident: $type:ty),*) -> $returned:ty, to $fd:ident;)*) => {$(
        exported! {
            unsafe fn $name($($argument: $type),*) -> $returned {
                if !span::holds($fd) {
                    // SAFETY: guaranteed by the caller.
                    return unsafe { real::$name($($argument),*) };
                }
                before_write($fd);
                // SAFETY: guaranteed by the caller.
                let done = unsafe { real::$name($($argument),*) };
                after_write($fd);
                done
            }
        }
    )*};
}

writing! {
    write(fd: c_int, bytes: *const c_void, size: size_t) -> ssize_t, to fd;
    writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, to fd;
    pwrite(fd: c_int, bytes: *const c_void, size: size_t, at: off_t) -> ssize_t, to fd;
    pwrite64(fd: c_int, bytes: *const c_void, size: size_t, at: off_t) -> ssize_t, to fd;
    pwritev(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t, to fd;
    pwritev64(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t, to fd;
    pwritev2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, to fd;
    pwritev64v2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, to fd;
    sendfile(to: c_int, from: c_int, at: *mut off_t, size: size_t) -> ssize_t, to to;
    sendfile64(to: c_int, from: c_int, at: *mut off_t, size: size_t) -> ssize_t, to to;
    copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t, flags: c_uint) -> ssize_t, to to;
    splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t, flags: c_uint) -> ssize_t, to to;
    ftruncate(fd: c_int, size: off_t) -> c_int, to fd;
    ftruncate64(fd: c_int, size: off_t) -> c_int, to fd;
}
