//! Functions that open a file by its path.

use std::ffi::{c_char, c_int};

use libc::mode_t;

use super::kind_of;
use crate::{guest, real, watch};

/// Watches a file that was opened, if it is to be.
///
/// # Safety
/// `path` is that of the call, which succeeded or failed.
#[inline]
unsafe fn opened(fd: c_int, path: *const c_char, flags: c_int) {
    if fd < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return;
    }
    // SAFETY: a path that the C library took, or refused.
    if let Some(kind) = unsafe { kind_of(path) } {
        guest::quietly(|| watch::opened(fd, kind));
    }
}

macro_rules! opening {
    ($($name:ident($($argument:ident: $type:ty),*), $path:ident, $flags:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's promise. A mode that was not given is not looked at.
            let fd = unsafe { real::$name($($argument),*) };
            // SAFETY: the path of the call.
            unsafe { opened(fd, $path, $flags) };
            fd
        }
    )*};
}

opening! {
    open(path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    open64(path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t), path, flags;
    creat(path: *const c_char, mode: mode_t), path, libc::O_WRONLY;
    creat64(path: *const c_char, mode: mode_t), path, libc::O_WRONLY;
    __open_2(path: *const c_char, flags: c_int), path, flags;
    __open64_2(path: *const c_char, flags: c_int), path, flags;
    __openat_2(dir: c_int, path: *const c_char, flags: c_int), path, flags;
    __openat64_2(dir: c_int, path: *const c_char, flags: c_int), path, flags;
}
